/** The kinds of options there are: numbers, fractions, what can be turned off; each with what is told of it. Pure. */
import { z } from 'zod';

/** What is written down beside each option. */
export type Told = {
  /** Completes the sentence "... but must be". */
  readonly allowed: string;
  readonly about: string;
  /** For errors: never print the value. */
  readonly secret?: true;
  /** For the documentation, where the default is not a value. */
  readonly otherwise?: string;
};

export function told<T extends z.ZodType>(schema: T, meta: Told): T {
  return schema.meta(meta);
}

function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER) {
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  return { schema: z.int().min(least).max(most), allowed: `a whole number ${range}` };
}

export function whole(least: number, otherwise: number, about: string, most?: number) {
  const { schema, allowed } = wholeNumber(least, most);
  return told(schema.default(otherwise), { allowed, about });
}

/** A property of a model, which is not set unless it is said. */
export function tokens(about: string) {
  const { schema, allowed } = wholeNumber(1);
  return told(schema.optional(), { allowed, about });
}

export function fraction(otherwise: number, about: string) {
  const schema = z.number().gt(0).lte(1).default(otherwise);
  return told(schema, { allowed: 'a number above 0 and at most 1', about });
}

export function number(least: number, otherwise: number, about: string) {
  return told(z.number().min(least).default(otherwise), { allowed: `a number of at least ${least}`, about });
}

/** Options of a trigger, or `false` to turn it off. */
export function switchable<T extends z.ZodType>(schema: T, keys: string, about: string) {
  const meta: Told = { allowed: `false, or an object with ${keys}`, about };
  return { schema: z.union([z.literal(false), schema]), meta };
}
