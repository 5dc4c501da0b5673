/**
 * Relays a streamed completion: every chunk goes on as it came, but for the fragments of a private recall call.
 * When continuations follow, the client sees one message: one role, call indices without gaps, one finish, usage of all rounds.
 */
import { jsonBytes } from '../../conversation/splice.ts';
import type {
  GatewayProblem,
  ModelReply,
  RelayEnd,
  StreamEvent,
  StreamOptions,
  StreamRelay,
} from '../codec.ts';
import { addUsage, eventBytes, isRecord, numberAt, recordAt, setMembers, stringIn } from '../event-json.ts';
import { clientFinish, errorBody, replyFrom, usageFrom } from './response.ts';
import { callsOf, type MessageRecorder, recordMessage } from './stream-message.ts';

type Chunk = Readonly<Record<string, unknown>>;

/** What one upstream response has said so far. */
type Round = {
  readonly number: number;
  readonly recorder: MessageRecorder;
  /** Client-side index of each upstream call; private ones have none. */
  readonly shown: Map<number, number>;
  readonly recalls: Set<number>;
  usage: unknown;
  finish: string | undefined;
  /** Calls whose name has come only in part and may still become the private one. */
  readonly undecided: Set<number>;
  /** Chunks that end the message, kept back once a private call was seen; a continuation starts with those of the round before. */
  ending: StreamEvent[];
  begun: boolean;
};

const encoder = new TextEncoder();

export function openStream({ recallTool }: StreamOptions): StreamRelay {
  let round = newRound(0);
  let nextIndex = 0;
  let firstId: string | undefined;
  let earlierUsage: unknown;

  function takeChunk(event: StreamEvent, chunk: Chunk): readonly Uint8Array[] {
    if (!round.begun) round.ending = [];
    round.begun = true;
    firstId ??= stringIn(chunk, 'id');
    if (isRecord(chunk['usage'])) round.usage = chunk['usage'];
    const choice = firstChoice(chunk);
    if (recallTool === undefined) return [event.raw];
    const delta = recordAt(choice, 'delta');
    round.recorder.delta(delta);
    const finish = stringIn(choice, 'finish_reason');
    round.finish = finish ?? round.finish;
    const routed = callsOf(delta).map(routeCall);
    const isPrivate = routed.length > 0 && routed.every((call) => call === undefined);
    if (finish !== undefined || choice === undefined) return atTheEnd(event, routed);
    if (isPrivate && !hasText(delta)) return [];
    // A continuation begins with a role and no content: the client has its role already.
    if (round.number > 0 && routed.length === 0 && !hasText(delta)) return [];
    return [rewritten(event, chunk, routed)];
  }

  /** Where a call fragment goes at the client: its index there, or nowhere. */
  function routeCall(fragment: Chunk): Chunk | undefined {
    const index = numberAt(fragment, 'index');
    if (round.recalls.has(index)) return undefined;
    const known = round.shown.get(index);
    if (known !== undefined) return { ...fragment, index: known };
    const { name, ...call } = round.recorder.callAt(index);
    if (name === recallTool) round.recalls.add(index);
    else if (recallTool?.startsWith(name)) round.undecided.add(index);
    else {
      round.shown.set(index, nextIndex);
      const whole = {
        index: nextIndex++,
        id: call.id,
        type: call.type,
        function: { name, arguments: call.arguments },
      };
      return round.undecided.has(index) ? whole : { ...fragment, index: whole.index };
    }
    return undefined;
  }

  function atTheEnd(event: StreamEvent, routed: readonly (Chunk | undefined)[]): readonly Uint8Array[] {
    if (round.recalls.size === 0 && round.number === 0) return [event.raw];
    // A last chunk that also carries fragments of the client's calls must not wait behind a recall.
    if (routed.some((call) => call !== undefined))
      return [rewritten(event, parseChunk(event.data) ?? {}, routed)];
    round.ending.push(event);
    return [];
  }

  /** The chunk with the client's own call indices, under the id of the first response. */
  function rewritten(event: StreamEvent, chunk: Chunk, routed: readonly (Chunk | undefined)[]): Uint8Array {
    const calls = routed.filter((call) => call !== undefined);
    const moved = callsOf(recordAt(firstChoice(chunk), 'delta')).some(
      (call, at) => call['index'] !== routed[at]?.['index'],
    );
    if (!moved && round.number === 0) return event.raw;
    const data = encoder.encode(event.data);
    const { tool_calls: _calls, ...delta } = recordAt(firstChoice(chunk), 'delta');
    const choice = {
      ...firstChoice(chunk),
      delta: calls.length > 0 ? { ...delta, tool_calls: calls } : delta,
    };
    const choices = moved ? { choices: jsonBytes([choice]) } : {};
    return eventBytes(
      event.event,
      setMembers(data, { ...choices, ...(firstId === undefined ? {} : { id: jsonBytes(firstId) }) }),
    );
  }

  function currentReply(): ModelReply {
    return replyFrom({
      turn: round.recorder.turn(),
      finish: round.finish,
      rawUsage: round.usage,
      recallTool,
    });
  }

  function ending(finish: string | null): readonly Uint8Array[] {
    const usage = addUsage(earlierUsage, round.usage);
    return round.ending.map((event) => closingChunk(event, finish, usage, firstId));
  }

  return {
    take(event) {
      if (event.data === '[DONE]') return atTheEnd(event, []);
      const chunk = parseChunk(event.data);
      return chunk && !('error' in chunk) ? takeChunk(event, chunk) : [event.raw];
    },
    end(): RelayEnd {
      const reply = currentReply();
      if (reply.recalls.length === 0 || reply.calls.length > 0 || reply.finish !== 'tool_calls') {
        return { status: 'done', tail: ending(clientFinish(reply)) };
      }
      earlierUsage = addUsage(earlierUsage, round.usage);
      round = { ...newRound(round.number + 1), ending: round.ending };
      return { status: 'recall', reply };
    },
    finish: () => ending('stop'),
    fail: (problem: GatewayProblem) => [eventBytes(undefined, errorBody(problem))],
    usage: () => usageFrom(addUsage(earlierUsage, round.usage)),
  };
}

function newRound(number: number): Round {
  return {
    number,
    recorder: recordMessage(),
    shown: new Map(),
    recalls: new Set(),
    undecided: new Set(),
    begun: false,
    usage: undefined,
    finish: undefined,
    ending: [],
  };
}

function closingChunk(
  event: StreamEvent,
  finish: string | null,
  usage: unknown,
  id: string | undefined,
): Uint8Array {
  const chunk = parseChunk(event.data);
  if (!chunk) return event.raw;
  const choice = firstChoice(chunk);
  const { tool_calls: _calls, ...delta } = recordAt(choice, 'delta');
  return eventBytes(
    event.event,
    setMembers(encoder.encode(event.data), {
      ...(choice ? { choices: jsonBytes([{ ...choice, delta, finish_reason: finish }]) } : {}),
      ...(isRecord(chunk['usage']) ? { usage: jsonBytes(usage) } : {}),
      ...(id === undefined ? {} : { id: jsonBytes(id) }),
    }),
  );
}

function firstChoice(chunk: Chunk): Chunk | undefined {
  const choices = chunk['choices'];
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isRecord(first) ? first : undefined;
}

function hasText(delta: Chunk): boolean {
  return Object.entries(delta).some(
    ([key, value]) => key !== 'role' && key !== 'tool_calls' && value !== null && value !== '',
  );
}

function parseChunk(data: string): Chunk | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
