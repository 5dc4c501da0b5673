/**
 * Reads the arguments that a model sent to the recall tool, as leniently as possible without guessing: models send numbers as
 * strings, arrays for ranges, ids in quotes. Pure, never throws.
 */
import { isRecord } from '../conversation/json-scan.ts';

export type RecallArguments =
  | {
      readonly of: 'one';
      readonly id: string;
      readonly query: string | undefined;
      /** As the model sent it, a list joined by commas; `parseRange` reads it. */
      readonly lines: string | undefined;
      readonly path: string | undefined;
    }
  | { readonly of: 'all'; readonly query: string };

type ParsedArguments =
  | { readonly status: 'ok'; readonly value: RecallArguments }
  /** A sentence for the model that says the right form. */
  | { readonly status: 'bad'; readonly why: string };

const form =
  'Send a JSON object with the id of a stub, such as {"id":"ID"}, and if only a part is wanted "query":"words", ' +
  '"lines":"10-40" or "path":"$.items[0]".';

/** Characters. It also bounds how much the patterns below scan. */
const maxIdLength = 200;

export function parseArguments(argumentsJson: string): ParsedArguments {
  const sent = unwrapped(argumentsJson);
  const fields: Record<string, unknown> = isRecord(sent) ? sent : { id: sent };
  const id = cleanId(textOf(fields['id']) ?? '');
  const [query, lines, path] = [fields['query'], fields['lines'], fields['path']].map(textOf);
  if (id !== '') return { status: 'ok', value: { of: 'one', id, query, lines, path } };
  // Lines and paths refer to one text.
  if (query === undefined || lines !== undefined || path !== undefined)
    return { status: 'bad', why: `No id was given. ${form}` };
  return { status: 'ok', value: { of: 'all', query } };
}

/** Returns the value sent, even if it was encoded as JSON twice; undefined for anything but an object or a bare id. */
function unwrapped(argumentsJson: string): unknown {
  let value: unknown = argumentsJson;
  for (let layer = 0; layer < 2 && typeof value === 'string'; layer++) {
    const inner = parsed(value);
    if (inner === undefined) return isBareId(value) ? value : undefined;
    value = inner.value;
  }
  return value;
}

function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function isBareId(text: string): boolean {
  return text.length <= maxIdLength && /^[\s\w"'`<>[\]:=.-]+$/.test(text);
}

/**
 * Returns a text, a number or a short list of them as text; undefined for nothing, and the type's name (which is no range or
 * path) for anything else.
 */
function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value.trim() === '' ? undefined : value;
  if (typeof value === 'number') return String(value);
  if (!Array.isArray(value)) return typeof value;
  const items = value.slice(0, 8).map((item) => (typeof item === 'number' ? String(item) : item));
  return items.length === 0
    ? undefined
    : items.map((item) => (typeof item === 'string' ? item : typeof item)).join(',');
}

/** Models copy ids together with their surroundings in the stub. */
function cleanId(id: string): string {
  return bare(bare(id.trim().slice(0, maxIdLength)).replace(/^id\s*[:=]/i, ''));
}

function bare(text: string): string {
  return text.replaceAll(/^[\s"'`<>[\](){},.;]+|[\s"'`<>[\](){},.;]+$/g, '');
}
