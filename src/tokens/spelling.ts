/**
 * Spells the JSON of requests in the one way in which it is counted, whatever the wire format and the program that wrote it: definitions of tools,
 * arguments of calls, and items that no fold edits. So the messages of a framework count as the request that its SDK makes of
 * them. Pure.
 *
 * Some models read their tools as a TypeScript namespace, which takes a quarter less than the JSON of the request. Its layout is that of the renderer
 * published by the maker of these models (harmony, `json_schema_to_typescript`), indented as in published comparisons of such prompts with their
 * reported usage.
 */
import type { Block, Part, Span } from '../conversation/conversation.ts';
import { isRecord, type JsonRecord } from '../conversation/json-scan.ts';
import { bytesOf } from '../conversation/messages.ts';

/** Returns a definition as the model reads it: as TypeScript, or as JSON with the members of a function. */
export function definitionText(json: string, as: 'json' | 'namespace' | undefined): string {
  // In one format, tools of the provider are members of one object.
  const definition = parsed(json) ?? parsed(`{${json}}`);
  if (definition === undefined) return json;
  const rendered = as === 'namespace' ? renderTool(definition) : undefined;
  if (rendered !== undefined) return rendered;
  const called = functionIn(definition);
  if (called === undefined) return [providerTool, ...contentsIn(definition)].join('\n');
  const { name, description, schema, examples } = called;
  return JSON.stringify({ name, description, parameters: schema, input_examples: examples });
}

/** Stands for a tool that only its provider describes to the model. Its settings are counted besides. */
const providerTool = 'A tool of the provider';

/** Returns arguments that are an object without blanks between its members, as programs write them that keep arguments as a text. */
export function argumentsText(json: string): string {
  if (json.trim() === '') return '{}';
  const input = parsed(json);
  return input === undefined ? json : JSON.stringify(input);
}

/** Estimates the tokens of an item of unknown content by its values: they may be text, or base64 of anything. Names of members differ between programs. */
export function itemTokens(json: string): number {
  const item = json.length > maxParsedUnits ? undefined : parsed(json);
  if (item === undefined) return tokensOfValue(json);
  return contentsIn(item).reduce((sum, content) => sum + tokensOfValue(content), 0);
}

/** UTF-16 units. A longer item is estimated by its length, because reading it would take more than some milliseconds. */
const maxParsedUnits = 1_000_000;

function tokensOfValue(text: string): number {
  return Math.ceil(encoder.encode(text).length / VALUE_BYTES_PER_TOKEN);
}

const encoder = new TextEncoder();

/** JSON has 3 to 4 bytes a token. */
const VALUE_BYTES_PER_TOKEN = 4;

/** Returns the texts and numbers in a value, but those that only say what it is or what it belongs to. */
function contentsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return value === '' ? [] : [value];
  if (typeof value === 'number') return [String(value)];
  if (Array.isArray(value)) return value.flatMap(contentsIn);
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    // The names in a schema are read, too.
    key === 'tools' ? [JSON.stringify(inner)] : isLabel(key) ? [] : contentsIn(inner),
  );
}

/** True for members that programs name and fill differently: the type and the state of an item, ids, and a reply as a framework has it. */
function isLabel(key: string): boolean {
  return /^(?:type|name|status|cache_control|strict|origin|id)$|(?:_id|Id)$/.test(key);
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    // A spelling that our scanner accepts and this parser does not.
    return undefined;
  }
}

type FunctionDefinition = {
  readonly name: string;
  readonly description: unknown;
  readonly schema: unknown;
  readonly examples: unknown;
};

/** Returns the function that a definition describes, in any wire format; undefined for tools that are none: the provider's own, and free-form ones. */
function functionIn(definition: unknown): FunctionDefinition | undefined {
  if (!isRecord(definition)) return undefined;
  const { type, function: inner } = definition;
  const own = isRecord(inner) ? inner : definition;
  const { name, description, parameters, parametersJsonSchema, input_schema, input_examples: examples } = own;
  const schema = input_schema ?? parameters ?? parametersJsonSchema;
  const isFunction = type === undefined || type === 'function' || (type === 'custom' && schema !== undefined);
  return isFunction && typeof name === 'string' ? { name, description, schema, examples } : undefined;
}

/** Deeper schemas are cut off: nobody writes them, but somebody may send them. */
const maxDepth = 32;

/** Returns the definition as TypeScript; undefined for tools that are no functions: the provider's own, and free-form ones. */
export function renderTool(definition: unknown): string | undefined {
  if (!isRecord(definition)) return undefined;
  const { tools, type } = definition;
  if (type === 'namespace' && Array.isArray(tools)) {
    const rendered = tools.map(renderTool);
    return rendered.includes(undefined) ? undefined : rendered.join('');
  }
  const called = functionIn(definition);
  if (called === undefined) return undefined;
  const { name, description } = called;
  const schema = isRecord(called.schema) ? called.schema : {};
  const body = propertiesOf(schema, { root: schema, indent: '', depth: 0 });
  const signature = body === '' ? '()' : `(_: {\n${body}})`;
  return `${comment(description, '')}type ${name} = ${signature} => any;\n\n`;
}

type SchemaContext = { readonly root: JsonRecord; readonly indent: string; readonly depth: number };

/** Writes one property a line, each after its description. */
function propertiesOf(schema: JsonRecord, place: SchemaContext): string {
  const properties = isRecord(schema['properties']) ? schema['properties'] : {};
  const required = Array.isArray(schema['required']) ? new Set<unknown>(schema['required']) : undefined;
  let lines = '';
  for (const [key, value] of Object.entries(properties)) {
    const property = isRecord(value) ? value : {};
    const { title, description, examples, default: usual } = property;
    const { indent } = place;
    if (typeof title === 'string') lines += `${indent}// ${title}\n${indent}//\n`;
    lines += comment(description, indent);
    if (Array.isArray(examples) && examples.length > 0) {
      lines += `${indent}// Examples:\n${examples.map((one) => `${indent}// - ${JSON.stringify(one)}\n`).join('')}`;
    }
    const otherwise = usual === undefined ? '' : ` // default: ${JSON.stringify(usual)}`;
    lines += `${indent}${key}${required?.has(key) ? '' : '?'}: ${typeOf(property, place)},${otherwise}\n`;
  }
  return lines;
}

function typeOf(schema: JsonRecord, place: SchemaContext): string {
  if (place.depth > maxDepth) return 'any';
  const deeper = { ...place, depth: place.depth + 1 };
  const { $ref: reference, type, enum: values, nullable } = schema;
  if (typeof reference === 'string') return typeOf(referred(reference, place.root), deeper);
  const variants = schema['anyOf'] ?? schema['oneOf'];
  const spelled = Array.isArray(variants)
    ? variants.map((variant) => typeOf(isRecord(variant) ? variant : {}, deeper)).join(' | ')
    : Array.isArray(values) && values.length > 0
      ? values.map((one) => JSON.stringify(one)).join(' | ')
      : Array.isArray(type)
        ? type.map((one) => typeOf({ ...schema, type: one }, deeper)).join(' | ')
        : simpleType(schema, deeper);
  return nullable === true && !spelled.includes('null') ? `${spelled} | null` : spelled;
}

function simpleType(schema: JsonRecord, place: SchemaContext): string {
  const { type, items } = schema;
  switch (type) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'null':
      return type;
    case 'integer':
      return 'number';
    case 'array':
      return isRecord(items) ? `${typeOf(items, place)}[]` : 'any[]';
    case 'object': {
      const indent = `${place.indent}  `;
      const body = propertiesOf(schema, { ...place, indent });
      return body === '' ? 'object' : `{\n${body}${place.indent}}`;
    }
    default:
      return 'any';
  }
}

/** Finds a definition of the same schema, as `#/$defs/Name` names it. */
function referred(reference: string, root: JsonRecord): JsonRecord {
  let found: unknown = root;
  for (const key of reference.replace(/^#\/?/, '').split('/'))
    found = isRecord(found) ? found[key] : undefined;
  return isRecord(found) ? found : {};
}

function comment(text: unknown, indent: string): string {
  if (typeof text !== 'string' || text === '') return '';
  return `${text
    .split('\n')
    .map((line) => `${indent}// ${line}`)
    .join('\n')}\n`;
}

/** Bytes of base64 in a source that is known to be no text. */
const DATA_BYTES_PER_TOKEN = 800;

/** Estimates the tokens of content of an unknown kind. */
export function opaqueTokens(
  body: Uint8Array,
  block: Block,
  part: Extract<Part, { type: 'opaque' }>,
): number {
  const { span, data } = part;
  if (!data) return itemTokens(rawText(body, block, span));
  const around = [
    rawText(body, block, { ...span, end: data.start }),
    rawText(body, block, { ...span, start: data.end }),
  ];
  return itemTokens(around.join('""')) + Math.ceil(lengthOf(data) / DATA_BYTES_PER_TOKEN);
}

/**
 * Signed reasoning may be shown shorter than it is charged: the sealed copy is complete. Base64 takes four bytes for three of text, a token
 * some four of those.
 */
const SEALED_BYTES_PER_TOKEN = 5;

/** Returns the tokens of the sealed copy of reasoning; 0 without one. */
export function sealedTokens({ sealed }: Extract<Part, { type: 'reasoning' }>): number {
  return sealed ? Math.ceil((lengthOf(sealed) - '""'.length) / SEALED_BYTES_PER_TOKEN) : 0;
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Returns the JSON of a span. */
export const rawText = (body: Uint8Array, block: Block, span: Span): string =>
  decoder.decode(bytesOf(body, block, span));
const lengthOf = ({ start, end }: Span): number => end - start;
