/**
 * Rebuilds the assistant message of one streamed completion, so that it can be sent back in a continuation, and changes single
 * chunks so that every other byte stays.
 */
import { isRecord, type JsonRecord } from '../../conversation/json-record.ts';
import { scanArray } from '../../conversation/json-scan.ts';
import { applySplices, jsonBytes } from '../../conversation/splice.ts';
import {
  jsonList,
  memberBytes,
  numberAt,
  objectBytes,
  recordAt,
  setMembers,
  stringIn,
  withMembers,
} from '../event-json.ts';

/** Identifies one call through all its fragments. An index alone is not enough: some servers give every call the same. */
export type CallKey = { readonly index: number };

export interface MessageRecorder {
  /** Takes one delta. Returns the call that each of its fragments belongs to, in the order of `callsOf`. */
  delta(delta: JsonRecord): readonly CallKey[];
  /** Returns the call as far as it has arrived, as a message would hold it. */
  call(key: CallKey): JsonRecord;
  /** Returns the name of the called tool; empty until it has arrived. */
  nameOf(key: CallKey): string;
  /** Returns the name in the one call of the legacy function form; undefined until one has arrived. */
  functionName(): string | undefined;
  /** Returns the message as JSON bytes. */
  turn(): Uint8Array;
}

/** Members of a delta that are joined in their own way. */
const handled: ReadonlySet<string> = new Set(['role', 'content', 'tool_calls', 'function_call']);

export function recordMessage(): MessageRecorder {
  let content: unknown = null;
  let others: JsonRecord = {};
  let functionCall: unknown;
  const calls = new Map<CallKey, JsonRecord>();
  const newest = new Map<number, CallKey>();

  function keyOf(fragment: JsonRecord): CallKey {
    const index = numberAt(fragment, 'index');
    const before = newest.get(index);
    if (before && !startsAnother(calls.get(before), fragment)) return before;
    const key: CallKey = { index };
    newest.set(index, key);
    calls.set(key, {});
    return key;
  }

  return {
    delta(delta) {
      content = joined(content, delta['content'] ?? null);
      if (isRecord(delta['function_call']))
        functionCall = joinedCalled(functionCall ?? {}, delta['function_call']);
      for (const [key, value] of Object.entries(delta)) {
        if (!handled.has(key) && value !== null) others = { ...others, [key]: joined(others[key], value) };
      }
      return callsOf(delta).map((fragment) => {
        const key = keyOf(fragment);
        calls.set(key, joinedCall(calls.get(key) ?? {}, fragment));
        return key;
      });
    },
    call: (key) => calls.get(key) ?? {},
    nameOf: (key) => calledName(calls.get(key)),
    functionName: () => stringIn(functionCall, 'name'),
    turn() {
      const listed = [...calls].toSorted(([a], [b]) => a.index - b.index).map(([, call]) => call);
      return jsonBytes({
        role: 'assistant',
        content,
        ...others,
        ...(functionCall === undefined ? {} : { function_call: functionCall }),
        ...(listed.length > 0 ? { tool_calls: listed } : {}),
      });
    },
  };
}

/** Returns the call fragments of a delta. */
export function callsOf(delta: JsonRecord): readonly JsonRecord[] {
  const calls = delta['tool_calls'];
  return Array.isArray(calls) ? (calls as readonly unknown[]).filter(isRecord) : [];
}

function startsAnother(call: JsonRecord | undefined, fragment: JsonRecord): boolean {
  const id = stringIn(fragment, 'id');
  const before = stringIn(call, 'id');
  return !!id && !!before && id !== before && calledName(fragment) !== '';
}

function calledName(call: JsonRecord | undefined): string {
  return stringIn(recordAt(call, 'function'), 'name') ?? stringIn(recordAt(call, 'custom'), 'name') ?? '';
}

/** Ids, types and names arrive whole, as the official clients read them; arguments and inputs arrive in pieces. */
function joinedCall(call: JsonRecord, { index: _index, ...fragment }: JsonRecord): JsonRecord {
  const result: Record<string, unknown> = { id: '', type: 'function', ...call };
  for (const [key, value] of Object.entries(fragment)) {
    if (key === 'function' || key === 'custom') result[key] = joinedCalled(result[key], value);
    else if (value !== null && value !== '') result[key] = value;
  }
  return result;
}

function joinedCalled(before: unknown, piece: unknown): unknown {
  if (!isRecord(piece)) return before ?? piece;
  const result: Record<string, unknown> = { name: '', ...(isRecord(before) ? before : {}) };
  for (const [key, value] of Object.entries(piece)) {
    if (key === 'name') result[key] = value === '' || value === null ? result[key] : value;
    else result[key] = joined(result[key], value);
  }
  return result;
}

/** Texts and lists arrive in pieces, objects member by member; anything else arrives whole. */
function joined(before: unknown, piece: unknown): unknown {
  if (typeof before === 'string' && typeof piece === 'string') return before + piece;
  if (Array.isArray(before) && Array.isArray(piece))
    return [...(before as unknown[]), ...(piece as unknown[])];
  if (isRecord(before) && isRecord(piece)) return { ...before, ...piece };
  return piece ?? before;
}

const OPEN_BRACKET = '['.charCodeAt(0);
const OPEN_BRACE = '{'.charCodeAt(0);

export function firstChoice(chunk: JsonRecord): JsonRecord | undefined {
  const choices = chunk['choices'];
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isRecord(first) ? first : undefined;
}

/** True when a delta holds anything besides its role, its calls and a private call of the legacy function form. */
export function hasText(delta: JsonRecord, keepsFunction: boolean): boolean {
  return Object.entries(delta).some(
    ([key, value]) =>
      key !== 'role' &&
      key !== 'tool_calls' &&
      (key !== 'function_call' || keepsFunction) &&
      value !== null &&
      value !== '',
  );
}

/** Replaces the calls of a choice, and keeps or removes its role. */
export function withCalls(
  choice: Uint8Array,
  calls: readonly JsonRecord[],
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

/** Returns the choice as the end of a message without further content. */
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
