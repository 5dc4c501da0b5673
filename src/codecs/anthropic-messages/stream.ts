/**
 * Relays a streamed Anthropic message: every event goes on as it came, but for the blocks of a private recall call.
 * When continuations follow, the client sees one message: one start, block indices without gaps, one stop, usage of all rounds.
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
import {
  addUsage,
  eventBytes,
  isRecord,
  memberBytes,
  numberAt,
  recordAt,
  setMembers,
  stringIn,
  withMembers,
} from '../event-json.ts';
import { clientStop, errorBody, replyFrom, usageFrom } from './response.ts';
import { type BlockRecorder, recordBlocks } from './stream-blocks.ts';

/** What one upstream response has said so far. */
type Round = {
  readonly number: number;
  readonly recorder: BlockRecorder;
  /** Client-side index of each upstream block; held blocks have none. */
  readonly shown: Map<number, number>;
  /** Blocks of private calls. */
  readonly held: Set<number>;
  usage: unknown;
  /** The events that end the message, kept back once a block was held; a continuation starts with those of the round before. */
  ending: StreamEvent[];
  stopped: boolean;
  finish: string | undefined;
};

const encoder = new TextEncoder();

export function openStream({ recallTool }: StreamOptions): StreamRelay {
  let round = newRound(0);
  let nextIndex = 0;
  let earlierUsage: unknown;

  const handlers: Readonly<
    Record<string, (event: StreamEvent, data: Readonly<Record<string, unknown>>) => readonly Uint8Array[]>
  > = {
    message_start(event, data) {
      round.usage = recordAt(data, 'message')['usage'];
      round.ending = [];
      return round.number === 0 ? [event.raw] : [];
    },
    content_block_start(event, data) {
      const index = numberAt(data, 'index');
      const block = data['content_block'];
      if (recallTool === undefined) return [event.raw];
      if (isRecord(block))
        round.recorder.start(index, memberBytes(encoder.encode(event.data), 'content_block')!);
      if (stringIn(block, 'type') === 'tool_use' && stringIn(block, 'name') === recallTool) {
        round.held.add(index);
        return [];
      }
      // Upstream's own index, until a private call or an earlier round has moved the numbers.
      const shown = isPlain() ? index : nextIndex;
      nextIndex = shown + 1;
      round.shown.set(index, shown);
      return [reindexed(event, index)];
    },
    content_block_delta(event, data) {
      const index = numberAt(data, 'index');
      if (recallTool === undefined) return [event.raw];
      round.recorder.delta(index, data['delta']);
      return round.held.has(index) ? [] : [reindexed(event, index)];
    },
    content_block_stop(event, data) {
      const index = numberAt(data, 'index');
      if (recallTool === undefined) return [event.raw];
      return round.held.has(index) ? [] : [reindexed(event, index)];
    },
    message_delta(event, data) {
      round.finish = stringIn(data['delta'], 'stop_reason') ?? round.finish;
      // Its numbers are running totals of the message: they replace those of the start.
      if (isRecord(data['usage']))
        round.usage = { ...recordAt({ usage: round.usage }, 'usage'), ...data['usage'] };
      return atTheEnd(event);
    },
    message_stop(event) {
      round.stopped = true;
      return atTheEnd(event);
    },
    error(event) {
      // The client takes this as the end: nothing may follow.
      round.ending = [];
      return [event.raw];
    },
  };

  function isPlain(): boolean {
    return round.number === 0 && round.held.size === 0;
  }

  function atTheEnd(event: StreamEvent): readonly Uint8Array[] {
    if (isPlain()) return [event.raw];
    round.ending.push(event);
    return [];
  }

  function reindexed(event: StreamEvent, index: number): Uint8Array {
    const shown = round.shown.get(index) ?? index;
    if (shown === index) return event.raw;
    return eventBytes(event.event, setMembers(encoder.encode(event.data), { index: jsonBytes(shown) }));
  }

  function currentReply(): ModelReply {
    return replyFrom({
      turn: round.recorder.turn(),
      finish: round.finish,
      rawUsage: round.usage,
      recallTool,
    });
  }

  function ending(stop: string | null): readonly Uint8Array[] {
    const usage = addUsage(earlierUsage, round.usage);
    return round.ending.map((event) => {
      const data = parseData(event.data);
      return stringIn(data, 'type') === 'message_delta' ? closingDelta(event, usage, stop) : event.raw;
    });
  }

  return {
    take(event) {
      const data = parseData(event.data);
      const type = stringIn(data, 'type');
      const handler = type !== undefined && Object.hasOwn(handlers, type) ? handlers[type] : undefined;
      return handler && data ? handler(event, data) : [event.raw];
    },
    end(): RelayEnd {
      const reply = currentReply();
      if (
        reply.recalls.length === 0 ||
        reply.calls.length > 0 ||
        !round.stopped ||
        round.finish !== 'tool_use'
      ) {
        return { status: 'done', tail: ending(clientStop(reply)) };
      }
      const pending = round;
      earlierUsage = addUsage(earlierUsage, pending.usage);
      round = newRound(pending.number + 1);
      round.ending = pending.ending;
      return { status: 'recall', reply };
    },
    finish: () => ending('end_turn'),
    fail: (problem: GatewayProblem) => [eventBytes('error', errorBody(problem))],
    usage: () => usageFrom(addUsage(earlierUsage, round.usage)),
  };
}

function newRound(number: number): Round {
  return {
    number,
    recorder: recordBlocks(),
    shown: new Map(),
    held: new Set(),
    usage: undefined,
    ending: [],
    stopped: false,
    finish: undefined,
  };
}

/** The last message_delta with the usage of all rounds and a stop reason that fits what the client saw. */
function closingDelta(event: StreamEvent, usage: unknown, stop: string | null): Uint8Array {
  const data = encoder.encode(event.data);
  const delta = withMembers(memberBytes(data, 'delta') ?? jsonBytes({}), { stop_reason: jsonBytes(stop) });
  return eventBytes(event.event, withMembers(data, { delta, usage: jsonBytes(usage ?? {}) }));
}

function parseData(data: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
