/** One chunk of a streamed completion: what it says, and changes to it that leave every other byte as it came. */
import { scanArray } from '../../conversation/json-scan.ts';
import { applySplices, jsonBytes } from '../../conversation/splice.ts';
import { isRecord } from '../../conversation/arguments.ts';
import { jsonList, memberBytes, objectBytes, setMembers, withMembers } from '../event-json.ts';
import type { Fields } from './stream-message.ts';

const OPEN_BRACKET = '['.charCodeAt(0);
const OPEN_BRACE = '{'.charCodeAt(0);

export function parseChunk(data: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function firstChoice(chunk: Fields): Fields | undefined {
  const choices = chunk['choices'];
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isRecord(first) ? first : undefined;
}

/** True when a delta says anything beside its role, its calls, and a private call of the form before tools. */
export function hasText(delta: Fields, keepsFunction: boolean): boolean {
  return Object.entries(delta).some(
    ([key, value]) =>
      key !== 'role' &&
      key !== 'tool_calls' &&
      (key !== 'function_call' || keepsFunction) &&
      value !== null &&
      value !== '',
  );
}

/** The choice with other calls, or none, and with or without its role. */
export function withCalls(
  choice: Uint8Array,
  calls: readonly Fields[],
  { keepsRole, keepsFunction }: { readonly keepsRole: boolean; readonly keepsFunction: boolean },
): Uint8Array {
  const delta = setMembers(objectBytes(choice, 'delta'), {
    ...(keepsRole ? {} : { role: undefined }),
    ...(keepsFunction ? {} : { function_call: undefined }),
    tool_calls: undefined,
  });
  const list = calls.length > 0 ? { tool_calls: jsonList(calls.map(jsonBytes)) } : {};
  return withMembers(choice, { delta: withMembers(delta, list) });
}

/** The choice as the end of a message that says nothing more. */
export function closedChoice(choice: Uint8Array, finish: string | null): Uint8Array {
  return setMembers(choice, {
    delta: jsonBytes({}),
    logprobs: jsonBytes(null),
    finish_reason: jsonBytes(finish),
  });
}

/** Changes the first choice of a chunk. */
export function changeChoice(chunk: Uint8Array, change: (choice: Uint8Array) => Uint8Array): Uint8Array {
  const choices = memberBytes(chunk, 'choices');
  const first = choices?.[0] === OPEN_BRACKET ? scanArray(choices, 0).elements[0] : undefined;
  if (!choices || !first || choices[first.start] !== OPEN_BRACE) return chunk;
  const bytes = change(choices.subarray(first.start, first.end));
  return setMembers(chunk, { choices: applySplices(choices, [{ span: first, bytes }]) });
}
