/**
 * Renders a function definition as the prompt of models that read their tools as a TypeScript namespace, which takes a quarter
 * less than the JSON of the request. The layout is that of the renderer published by the maker of these models (harmony,
 * `json_schema_to_typescript`), indented as in published comparisons of such prompts with their reported usage. Pure.
 */
import { isRecord, type JsonRecord } from '../conversation/json-scan.ts';

/** Deeper schemas are cut off: nobody writes them, but somebody may send them. */
const maxDepth = 32;

/** Returns the definition as TypeScript; undefined for tools that are no functions: the provider's own, and free-form ones. */
export function renderTool(definition: unknown): string | undefined {
  if (!isRecord(definition)) return undefined;
  const { function: inner, tools, type } = definition;
  if (type === 'namespace' && Array.isArray(tools)) {
    const rendered = tools.map(renderTool);
    return rendered.includes(undefined) ? undefined : rendered.join('');
  }
  if (type !== undefined && type !== 'function') return undefined;
  const { name, description, parameters } = isRecord(inner) ? inner : definition;
  if (typeof name !== 'string') return undefined;
  const schema = isRecord(parameters) ? parameters : {};
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
