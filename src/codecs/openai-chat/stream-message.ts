/** Rebuilds the assistant message of one streamed completion, so that it can be sent back in a continuation. */
import { jsonBytes } from '../../conversation/splice.ts';
import { isRecord, numberAt, recordAt, stringIn } from '../event-json.ts';

export interface MessageRecorder {
  delta(delta: Readonly<Record<string, unknown>>): void;
  /** The call at this index as far as it has come. */
  callAt(index: number): Readonly<CallState>;
  turn(): Uint8Array;
}

type CallState = { id: string; type: string; name: string; arguments: string };

/** Members that are lists or objects of their own, or that a message does not hold. */
const handled: ReadonlySet<string> = new Set(['role', 'content', 'tool_calls']);

export function recordMessage(): MessageRecorder {
  let content: string | null = null;
  const others: Record<string, unknown> = {};
  const calls = new Map<number, CallState>();
  return {
    delta(delta) {
      const text = stringIn(delta, 'content');
      if (text !== undefined) content = (content ?? '') + text;
      for (const call of callsOf(delta)) applyCall(calls, call);
      for (const [key, value] of Object.entries(delta)) {
        // Reasoning and refusals come in pieces of text; what is not text comes whole.
        if (handled.has(key) || value === null) continue;
        const before = others[key];
        others[key] = typeof value === 'string' && typeof before === 'string' ? before + value : value;
      }
    },
    callAt: (index) => calls.get(index) ?? emptyCall(),
    turn() {
      const listed = [...calls]
        .toSorted(([a], [b]) => a - b)
        .map(([, call]) => ({
          id: call.id,
          type: call.type,
          function: { name: call.name, arguments: call.arguments },
        }));
      return jsonBytes({
        role: 'assistant',
        content,
        ...others,
        ...(listed.length > 0 ? { tool_calls: listed } : {}),
      });
    },
  };
}

/** The call fragments of a delta, with the index each belongs to. */
export function callsOf(
  delta: Readonly<Record<string, unknown>>,
): readonly Readonly<Record<string, unknown>>[] {
  const calls = delta['tool_calls'];
  return Array.isArray(calls) ? (calls as readonly unknown[]).filter(isRecord) : [];
}

function emptyCall(): CallState {
  return { id: '', type: 'function', name: '', arguments: '' };
}

function applyCall(calls: Map<number, CallState>, fragment: Readonly<Record<string, unknown>>): void {
  const index = numberAt(fragment, 'index');
  const call = calls.get(index) ?? emptyCall();
  calls.set(index, call);
  const called = recordAt(fragment, 'function');
  call.id = stringIn(fragment, 'id') || call.id;
  call.type = stringIn(fragment, 'type') || call.type;
  call.name += stringIn(called, 'name') ?? '';
  call.arguments += stringIn(called, 'arguments') ?? '';
}
