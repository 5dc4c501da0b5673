/** Lists the options of the configuration, derived from the schema: key, variable, how text is parsed, description. */
import type { OptionDescription } from './kinds.ts';
import { configSchema } from './schema.ts';

export type Option = OptionDescription & {
  /** Path in the file: `triggers.tokenBudget.targetTokens`. */
  readonly key: string;
  readonly variable: string;
  readonly reads: 'text' | 'number' | 'boolean' | 'list' | 'json' | 'switch' | 'text-or-json';
  /** The default; undefined if there is none. */
  readonly fallback: unknown;
};

/** The part of a zod schema that this file reads. */
type Schema = {
  readonly def: {
    readonly type: string;
    readonly shape?: Readonly<Record<string, Schema>>;
    readonly innerType?: Schema;
    readonly valueType?: Schema;
    readonly options?: readonly Schema[];
    readonly defaultValue?: unknown;
  };
  meta(): Partial<OptionDescription> | undefined;
};

/** How text is parsed, by the type of the schema. */
const readings: Readonly<Record<string, Option['reads']>> = {
  number: 'number',
  boolean: 'boolean',
  array: 'list',
  record: 'json',
  union: 'switch',
};

const root = configSchema as unknown as Schema;

/** All options in the order of the schema; an object comes before its own options. */
export const options: readonly Option[] = optionsIn(root, []);

/** Returns the variable of an option: `LEPORELLO_` and the key in capitals, with `_` between words. */
function variableOf(key: string): string {
  return `LEPORELLO_${key.replaceAll('.', '_').replaceAll(/[A-Z]/g, '_$&').toUpperCase()}`;
}

/** Parses the text of a variable or a flag. Text of the wrong kind is returned unchanged, and the schema rejects it. */
export function valueOf({ reads }: Option, text: string): unknown {
  switch (reads) {
    case 'text':
      return text;
    case 'number':
      return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(text.trim()) ? Number(text) : text;
    case 'boolean':
      return booleanOf(text);
    case 'list':
      return text.trimStart().startsWith('[')
        ? jsonOf(text)
        : text
            .split(',')
            .map((item) => item.trim())
            .filter((item) => item !== '');
    case 'json':
      return jsonOf(text);
    case 'text-or-json':
      return text.trimStart().startsWith('{') ? jsonOf(text) : text;
    case 'switch':
      return booleanOf(text) === true ? {} : jsonOf(text);
  }
}

/** The option at a path of a configuration. An option without a description has that of the nearest parent. */
export type OptionAtPath = {
  readonly description: OptionDescription | undefined;
  readonly fallback: unknown;
  /** The names of its options, if it is an object. */
  readonly keys: readonly string[];
};

/** Finds the option at a path. */
export function describeAt(path: readonly PropertyKey[]): OptionAtPath {
  let schema: Schema | undefined = root;
  let description: OptionDescription | undefined;
  for (const key of path) {
    schema = schema && childOf(unwrapped(schema), key);
    description = (schema && descriptionOf(schema)) ?? description;
  }
  return {
    description,
    fallback: schema?.def.defaultValue,
    keys: Object.keys((schema && shapeOf(unwrapped(schema))) ?? {}),
  };
}

function optionsIn(schema: Schema, path: readonly string[]): readonly Option[] {
  const inner = unwrapped(schema);
  const children = Object.entries(shapeOf(inner) ?? {}).flatMap(([key, child]) =>
    optionsIn(child, [...path, key]),
  );
  const description = descriptionOf(schema);
  if (description === undefined) return children;
  const key = path.join('.');
  const mayBeText = inner.def.options?.some((option) => option.def.type === 'string') === true;
  const reads = mayBeText ? 'text-or-json' : (readings[inner.def.type] ?? 'text');
  const own = { ...description, key, variable: variableOf(key), reads, fallback: schema.def.defaultValue };
  return [own, ...children];
}

/** Returns the schema without wrappers such as defaults. */
function unwrapped(schema: Schema): Schema {
  return schema.def.innerType === undefined ? schema : unwrapped(schema.def.innerType);
}

/** Returns the shape of an object, or of the object in "false or an object". */
function shapeOf({ def }: Schema): Readonly<Record<string, Schema>> | undefined {
  return def.shape ?? def.options?.find((option) => option.def.shape !== undefined)?.def.shape;
}

function childOf(schema: Schema, key: PropertyKey): Schema | undefined {
  return schema.def.valueType ?? shapeOf(schema)?.[String(key)];
}

function descriptionOf(schema: Schema): OptionDescription | undefined {
  const { allowed, about, ...rest } = schema.meta() ?? {};
  return allowed === undefined || about === undefined ? undefined : { allowed, about, ...rest };
}

function booleanOf(text: string): unknown {
  const word = text.trim().toLowerCase();
  if (word === 'true' || word === 'false') return word === 'true';
  return text;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
