/** The long texts in the arguments of calls: file contents, patches, commands. Found by place, so that all beside them keeps its spelling. */
import { argumentsIn } from '../../conversation/json-record.ts';
import {
  type Conversation,
  decodeLiteral,
  inputOf,
  type Message,
  type Part,
} from '../../conversation/conversation.ts';
import { scanArray, scanObject } from '../../conversation/json-scan.ts';
import { byteLength } from './editable-texts.ts';

type ToolCallPart = Part & { readonly type: 'tool-call' };

/** Arguments that are an object, with the texts of at least so many bytes in it, in their order. */
export type LongArguments = {
  /** The object as JSON text in UTF-8. */
  readonly json: Uint8Array;
  readonly values: readonly LongValue[];
};

export type LongValue = {
  /** Where the string literal stands in the JSON text. */
  readonly span: ToolCallPart['span'];
  readonly text: string;
  /** The way to it, such as `$.edits[0].new_string`. */
  readonly path: string;
};

/** Deeper than this nobody looks: tools take flat arguments, and depth must not be able to exhaust the stack. */
const deepest = 8;

/** Undefined where the arguments are no object, or hold nothing that long. */
export function longArguments(
  { body }: Conversation,
  message: Message,
  call: ToolCallPart,
  least: number,
): LongArguments | undefined {
  // No text is longer than the literal it stands in, nor than the arguments it is part of.
  if (call.input.end - call.input.start - 2 < least) return undefined;
  const input = inputOf(body, message, call);
  // What a literal holds was written by a model: it may be no JSON, and half a character would not survive being encoded.
  if (!input.isWellFormed() || argumentsIn(input) === undefined) return undefined;
  const json = new TextEncoder().encode(input);
  const values = [...longValues(json, json.indexOf('{'.charCodeAt(0)), '$', least, deepest)];
  return values.length > 0 ? { json, values } : undefined;
}

function* longValues(
  json: Uint8Array,
  start: number,
  path: string,
  least: number,
  depth: number,
): Generator<LongValue> {
  for (const { span, path: place } of childrenOf(json, start, path)) {
    if (span.end - span.start - 2 < least) continue;
    const first = String.fromCharCode(json[span.start]!);
    if (first !== '"') {
      if (depth > 0) yield* longValues(json, span.start, place, least, depth - 1);
      continue;
    }
    const text = decodeLiteral(json.subarray(span.start, span.end));
    if (byteLength(text) >= least) yield { span, text, path: place };
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
      // Of two members of one name a path would lead to the last.
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
