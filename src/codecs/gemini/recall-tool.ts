/** The recall tool as a function declaration at the end of the client's own. */
import { bytesOf, type Conversation, type Part } from '../../conversation/conversation.ts';
import { scanArray } from '../../conversation/json-scan.ts';
import { jsonBytes, listSplices, type Splice } from '../../conversation/splice.ts';
import { LeporelloError } from '../../errors.ts';
import type { RecallTool } from '../codec.ts';
import { isRecord } from '../../conversation/arguments.ts';
import { startsWith } from '../read-body.ts';
import { shift } from '../write-body.ts';
import { namedMembers } from './names.ts';

/** A splice that adds the tool to the last list of functions. The conversation must offer at least one function. */
export function toolSplice(conversation: Conversation, tool: RecallTool): Splice {
  for (const block of conversation.toolNames.length > 0 ? conversation.preamble : []) {
    const bytes = bytesOf(conversation.body, block, { start: 0, end: block.span.end - block.span.start });
    const functions = block.parts.filter(
      (part) => part.type === 'tool-definition' && part.name !== undefined,
    );
    const last = functions.at(-1);
    if (!last) continue;
    const list = listAround(bytes, last);
    const styles = functions.map((part) => namedMembers(bytes, part.span));
    const jsonSchema = styles.some((named) => named?.has('parametersJsonSchema'));
    const insertion = { before: list.elements.length, bytes: declaration(tool, jsonSchema) };
    const [splice] = listSplices(list.elements, list.span.end - 1, () => false, [insertion]);
    if (splice) return { ...splice, span: shift(splice.span, block.span.start) };
  }
  throw new LeporelloError(
    'bad-edit',
    'The recall tool was to be added to a request that offers no functions.',
  );
}

/** The list in which a declaration stands. */
function listAround(bytes: Uint8Array, declared: Part) {
  const isOne = startsWith(bytes, { start: 0, end: 1 }, '{');
  const entries = isOne ? [{ start: 0, end: bytes.length }] : scanArray(bytes, 0).elements;
  const entry = entries.find(({ start, end }) => start < declared.span.start && declared.span.end <= end);
  const list = namedMembers(bytes, entry)?.get('functionDeclarations');
  if (!list) throw new LeporelloError('bad-edit', 'A function declaration stands in no list.');
  return scanArray(bytes, list.value.start);
}

/**
 * `parameters` is a Schema of the provider, which knows its types in capitals and refuses keywords it does not know;
 * `parametersJsonSchema` is plain JSON Schema, which older servers do not know. The client's own choice works with its server.
 */
function declaration({ name, description, parameters }: RecallTool, jsonSchema: boolean): Uint8Array {
  return jsonBytes(
    jsonSchema
      ? { name, description, parametersJsonSchema: parameters }
      : { name, description, parameters: asSchema(parameters) },
  );
}

const schemaKeys: ReadonlySet<string> = new Set([
  'type',
  'description',
  'properties',
  'required',
  'items',
  'enum',
  'format',
]);

function asSchema(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const known = Object.entries(schema).filter(([key]) => schemaKeys.has(key));
  return Object.fromEntries(known.map(([key, value]) => [key, schemaValue(key, value)]));
}

function schemaValue(key: string, value: unknown): unknown {
  if (key === 'type' && typeof value === 'string') return value.toUpperCase();
  if (key === 'items' && isRecord(value)) return asSchema(value);
  if (key !== 'properties' || !isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, isRecord(inner) ? asSchema(inner) : inner]),
  );
}
