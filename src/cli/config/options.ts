/** The options of the configuration as a flat list, read off the schema: key, variable, how text is read, what is told of it. Pure. */
import type { Told } from './kinds.ts';
import { configSchema } from './schema.ts';

export type Option = Told & {
  /** Where it stands in the file: `triggers.tokenBudget.target`. */
  readonly key: string;
  readonly variable: string;
  readonly reads: 'text' | 'number' | 'boolean' | 'list' | 'json' | 'switch' | 'text-or-json';
  /** Undefined where there is none. */
  readonly fallback: unknown;
};

/** As much of a schema of zod as is looked at here. */
type Schema = {
  readonly def: {
    readonly type: string;
    readonly shape?: Readonly<Record<string, Schema>>;
    readonly innerType?: Schema;
    readonly valueType?: Schema;
    readonly options?: readonly Schema[];
    readonly defaultValue?: unknown;
  };
  meta(): Partial<Told> | undefined;
};

/** How text is read, by the type of the schema. */
const readings: Readonly<Record<string, Option['reads']>> = {
  number: 'number',
  boolean: 'boolean',
  array: 'list',
  record: 'json',
  union: 'switch',
};

const root = configSchema as unknown as Schema;

/** Every option, in the order of the schema; a trigger stands before its own options. */
export const options: readonly Option[] = optionsIn(root, []);

/** `LEPORELLO_` and the key in capitals, its words parted by `_`. */
function variableOf(key: string): string {
  return `LEPORELLO_${key.replaceAll('.', '_').replaceAll(/[A-Z]/g, '_$&').toUpperCase()}`;
}

/** What text of a variable or a flag stands for. Text of the wrong kind stays as it is, for the schema to refuse. */
export function valueOf({ reads }: Option, text: string): unknown {
  switch (reads) {
    case 'text':
      return text;
    case 'number':
      return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text.trim()) ? Number(text) : text;
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

/** What stands at a path of a configuration. `told` is of the nearest thing above, where it has none of its own. */
export type Described = {
  readonly told: Told | undefined;
  readonly fallback: unknown;
  /** The names of its own options. */
  readonly keys: readonly string[];
};

export function describeAt(path: readonly PropertyKey[]): Described {
  let schema: Schema | undefined = root;
  let told: Told | undefined;
  for (const key of path) {
    schema = schema && childOf(unwrapped(schema), key);
    told = (schema && toldOf(schema)) ?? told;
  }
  return {
    told,
    fallback: schema?.def.defaultValue,
    keys: Object.keys((schema && shapeOf(unwrapped(schema))) ?? {}),
  };
}

function optionsIn(schema: Schema, path: readonly string[]): readonly Option[] {
  const inner = unwrapped(schema);
  const children = Object.entries(shapeOf(inner) ?? {}).flatMap(([key, child]) =>
    optionsIn(child, [...path, key]),
  );
  const told = toldOf(schema);
  if (told === undefined) return children;
  const key = path.join('.');
  const mayBeText = inner.def.options?.some((option) => option.def.type === 'string') === true;
  const reads = mayBeText ? 'text-or-json' : (readings[inner.def.type] ?? 'text');
  const own = { ...told, key, variable: variableOf(key), reads, fallback: schema.def.defaultValue };
  return [own, ...children];
}

/** Without defaults and the like around it. */
function unwrapped(schema: Schema): Schema {
  return schema.def.innerType === undefined ? schema : unwrapped(schema.def.innerType);
}

/** Of the object itself, or of the one in "false or an object". */
function shapeOf({ def }: Schema): Readonly<Record<string, Schema>> | undefined {
  return def.shape ?? def.options?.find((option) => option.def.shape !== undefined)?.def.shape;
}

function childOf(schema: Schema, key: PropertyKey): Schema | undefined {
  return schema.def.valueType ?? shapeOf(schema)?.[String(key)];
}

function toldOf(schema: Schema): Told | undefined {
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
