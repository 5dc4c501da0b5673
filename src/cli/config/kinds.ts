/** Builds the schemas of options by kind (whole numbers, fractions, switches), each with its description. */
import { z } from 'zod';

/** Description of an option, for errors and for the documentation. */
export type OptionDescription = {
  /** Completes the sentence "... but must be". */
  readonly allowed: string;
  /** Says in a sentence what the option does. */
  readonly about: string;
  /** True for a secret: errors never print its value. */
  readonly secret?: true;
  /** Describes the default in the documentation, if it is not a value. */
  readonly otherwise?: string;
};

/** Attaches a description to a schema. */
export function described<T extends z.ZodType>(schema: T, meta: OptionDescription): T {
  return schema.meta(meta);
}

function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER) {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  return { schema: z.int().min(min).max(max), allowed: `a whole number ${range}` };
}

/** Describes a whole number with a default. */
export function whole(min: number, otherwise: number, about: string, max?: number) {
  const { schema, allowed } = wholeNumber(min, max);
  return described(schema.default(otherwise), { allowed, about });
}

/** Describes a number of tokens without a default. */
export function tokens(about: string) {
  const { schema, allowed } = wholeNumber(1);
  return described(schema.optional(), { allowed, about });
}

/** Describes a fraction above 0 and at most 1. */
export function fraction(otherwise: number, about: string) {
  const schema = z.number().gt(0).lte(1).default(otherwise);
  return described(schema, { allowed: 'a number above 0 and at most 1', about });
}

/** Describes a number with a minimum and a default. */
export function number(min: number, otherwise: number, about: string) {
  return described(z.number().min(min).default(otherwise), { allowed: `a number of at least ${min}`, about });
}

/** Describes an object of options, or `false` to turn the feature off. */
export function switchable<T extends z.ZodType>(schema: T, keys: string, about: string) {
  const meta: OptionDescription = { allowed: `false, or an object with ${keys}`, about };
  return { schema: z.union([z.literal(false), schema]), meta };
}
