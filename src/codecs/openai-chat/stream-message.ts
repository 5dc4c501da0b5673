/** Rebuilds the assistant message of one streamed completion, so that it can be sent back in a continuation. */
import { jsonBytes } from '../../conversation/splice.ts';
import { isRecord } from '../../conversation/arguments.ts';
import { numberAt, recordAt, stringIn } from '../event-json.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Stands for one call through all its fragments. An index alone does not: some servers give every call the same. */
export type CallKey = { readonly index: number };

export interface MessageRecorder {
  /** Takes one delta; returns the call each of its fragments belongs to, in the order of `callsOf`. */
  delta(delta: Fields): readonly CallKey[];
  /** The call as far as it has come, as a message would hold it. */
  call(key: CallKey): Fields;
  /** The name of the called tool; empty as long as it has not come. */
  nameOf(key: CallKey): string;
  /** The name in the one call of the form before tools; undefined as long as none has come. */
  functionName(): string | undefined;
  /** The message as JSON bytes. */
  turn(): Uint8Array;
}

/** Members of a delta that are joined in their own way. */
const handled: ReadonlySet<string> = new Set(['role', 'content', 'tool_calls', 'function_call']);

export function recordMessage(): MessageRecorder {
  let content: unknown = null;
  let others: Fields = {};
  let functionCall: unknown;
  const calls = new Map<CallKey, Fields>();
  const newest = new Map<number, CallKey>();

  function keyOf(fragment: Fields): CallKey {
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

/** The call fragments of a delta. */
export function callsOf(delta: Fields): readonly Fields[] {
  const calls = delta['tool_calls'];
  return Array.isArray(calls) ? (calls as readonly unknown[]).filter(isRecord) : [];
}

function startsAnother(call: Fields | undefined, fragment: Fields): boolean {
  const id = stringIn(fragment, 'id');
  const before = stringIn(call, 'id');
  return !!id && !!before && id !== before && calledName(fragment) !== '';
}

function calledName(call: Fields | undefined): string {
  return stringIn(recordAt(call, 'function'), 'name') ?? stringIn(recordAt(call, 'custom'), 'name') ?? '';
}

/** Ids, types and names come whole, as the official clients read them; arguments and inputs come in pieces. */
function joinedCall(call: Fields, { index: _index, ...fragment }: Fields): Fields {
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

/** Texts and lists come in pieces, objects member by member; anything else comes whole. */
function joined(before: unknown, piece: unknown): unknown {
  if (typeof before === 'string' && typeof piece === 'string') return before + piece;
  if (Array.isArray(before) && Array.isArray(piece))
    return [...(before as unknown[]), ...(piece as unknown[])];
  if (isRecord(before) && isRecord(piece)) return { ...before, ...piece };
  return piece ?? before;
}
