/**
 * Finds the long texts in the arguments of calls: file contents, patches, commands. Each is found by its place in the bytes, so that the rest
 * keeps its spelling.
 */
import { parseRecord, scanArray, scanObject } from '../../conversation/json-scan.ts';
import {
  type Conversation,
  decodeLiteral,
  inputOf,
  type Message,
  type Part,
} from '../../conversation/conversation.ts';
import { byteLength } from './editable-texts.ts';

type ToolCallPart = Part & { readonly type: 'tool-call' };

/** The arguments of a call, with their long texts in order. */
export type LongArguments = {
  /** The object as JSON text in UTF-8. */
  readonly json: Uint8Array;
  readonly values: readonly LongValue[];
};

export type LongValue = {
  /** The place of the string literal in the JSON text. */
  readonly span: ToolCallPart['span'];
  readonly text: string;
  /** The path to the value, such as `$.edits[0].new_string`. */
  readonly path: string;
};

/** Maximum depth of the search: tools take flat arguments, and depth must not exhaust the stack. */
const maxDepth = 8;

/** Finds texts of at minBytes `minBytes`; undefined if the arguments are no object or contain none. */
export function longArguments(
  { body }: Conversation,
  message: Message,
  call: ToolCallPart,
  minBytes: number,
): LongArguments | undefined {
  // A text is never longer than its literal, nor than the arguments.
  if (call.input.end - call.input.start - 2 < minBytes) return undefined;
  const input = inputOf(body, message, call);
  // A model wrote the arguments: they may be invalid JSON, or contain half a character, which cannot be encoded.
  if (!input.isWellFormed() || parseRecord(input) === undefined) return undefined;
  const json = new TextEncoder().encode(input);
  const values = [...longValues(json, json.indexOf('{'.charCodeAt(0)), '$', minBytes, maxDepth)];
  return values.length > 0 ? { json, values } : undefined;
}

function* longValues(
  json: Uint8Array,
  start: number,
  path: string,
  minBytes: number,
  depth: number,
): Generator<LongValue> {
  for (const { span, path: place } of childrenOf(json, start, path)) {
    if (span.end - span.start - 2 < minBytes) continue;
    const first = String.fromCharCode(json[span.start]!);
    if (first !== '"') {
      if (depth > 0) yield* longValues(json, span.start, place, minBytes, depth - 1);
      continue;
    }
    const text = decodeLiteral(json.subarray(span.start, span.end));
    if (byteLength(text) >= minBytes) yield { span, text, path: place };
  }
}

function childrenOf(
  json: Uint8Array,
  start: number,
  path: string,
): readonly { readonly span: ToolCallPart['span']; readonly path: string }[] {
  switch (String.fromCharCode(json[start]!)) {
    case '{': {
      const { members } = scanObject(json, start);
      // With two members of the same name, a path would lead to the last one.
      if (new Set(members.map(({ key }) => key)).size < members.length) return [];
      return members.map(({ key, value }) => ({ span: value, path: path + step(key) }));
    }
    case '[':
      return scanArray(json, start).elements.map((span, index) => ({ span, path: `${path}[${index}]` }));
    default:
      return [];
  }
}

function step(key: string): string {
  return /^[A-Za-z_]\w{0,63}$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}
