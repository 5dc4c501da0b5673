/**
 * Relays a streamed Anthropic message: every event is passed on unchanged, except for the blocks of a private recall call. When
 * continuations follow, the client sees one message: one start, block indices without gaps, one stop, usage of all rounds.
 */
import { clientStop, errorBody, isComplete, replyFrom, usageFrom } from './response.ts';
import type { GatewayProblem, ModelReply, StreamEvent, StreamOptions, StreamRelay } from '../codec.ts';
import {
  awaitsRecall,
  addUsage,
  eventBytes,
  jsonList,
  numberAt,
  objectBytes,
  recordAt,
  setMembers,
  skippingDeltas,
  stringIn,
  withMembers,
} from '../shared-json.ts';
import { providerError } from '../provider-errors.ts';
import { type JsonRecord, isRecord, jsonBytes, parseRecord } from '../../conversation/json-scan.ts';
import type { PrivateTools } from '../../conversation/turns.ts';

/** The state of the relay over all rounds. */
type AnthropicRelay = {
  readonly privateTools: PrivateTools;
  round: AnthropicRound;
  nextIndex: number;
  earlierUsage: unknown;
};

/** The state of one upstream response. */
type AnthropicRound = {
  readonly number: number;
  readonly recorder: BlockRecorder;
  /** Client-side index of each upstream block; held blocks have none. */
  readonly shown: Map<number, number>;
  /** Blocks of private calls, which the client does not get. */
  readonly held: Set<number>;
  /** True when the client does not get texts either. */
  hidesText: boolean;
  usage: unknown;
  finish: string | undefined;
  stopped: boolean;
  /** The events that end the message, held back once a block was held; a continuation starts with those of the round before. */
  ending: StreamEvent[];
};

type EventHandler = (relaying: AnthropicRelay, event: StreamEvent, data: JsonRecord) => readonly Uint8Array[];

const encoder = new TextEncoder();

export function openStream({ privateTools }: StreamOptions): StreamRelay {
  const relaying: AnthropicRelay = {
    privateTools,
    round: newRound(0),
    nextIndex: 0,
    earlierUsage: undefined,
  };
  const usage = () => addUsage(relaying.earlierUsage, relaying.round.usage);
  return skippingDeltas({
    take(event, data) {
      const type = stringIn(data, 'type');
      const handler = type !== undefined && Object.hasOwn(handlers, type) ? handlers[type] : undefined;
      return handler && data ? handler(relaying, event, data) : [event.raw];
    },
    isPlain: () => isPlain(relaying.round),
    textKeyOf: (data) => {
      const key =
        stringIn(data, 'type') === 'content_block_delta'
          ? textKeys[stringIn(data['delta'], 'type') ?? '']
          : undefined;
      return key !== undefined && stringIn(data['delta'], key) !== undefined ? key : undefined;
    },
    newestKeys: '-',
    keepsText: privateTools.size > 0,
    end() {
      const { round } = relaying;
      const reply = replyOf(relaying);
      if (!round.stopped || !isComplete(reply) || !awaitsRecall(reply)) {
        const tail = ending(round, clientStop(reply), usage());
        return { status: 'done', tail, reply: round.stopped ? reply : undefined };
      }
      relaying.earlierUsage = usage();
      relaying.round = { ...newRound(round.number + 1), ending: round.ending };
      return { status: 'recall', reply };
    },
    finish: () => ending(relaying.round, 'end_turn', usage()),
    fail(problem: GatewayProblem, providerBody) {
      const reported = providerError(providerBody);
      const type = { type: jsonBytes('error') };
      return [eventBytes('error', reported ? withMembers(reported.whole, type) : errorBody(problem))];
    },
    usage: () => usageFrom(usage()),
    contentOf(data) {
      const block = recordAt(data, 'content_block');
      const text = stringIn(block, 'text') ?? stringIn(data['delta'], 'text');
      return { text, calls: block['type'] === 'tool_use' ? [stringIn(block, 'name') ?? ''] : [] };
    },
    hideText() {
      relaying.round.hidesText = true;
    },
  });
}

/** The keys of the texts of deltas, by their types. */
const textKeys: Readonly<Record<string, string | undefined>> = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  input_json_delta: 'partial_json',
};

const handlers: Readonly<Record<string, EventHandler>> = {
  message_start(relaying, event, data) {
    const { round } = relaying;
    const message = recordAt(data, 'message');
    round.usage = message['usage'];
    round.ending = [];
    return round.number === 0 ? [event.raw] : [];
  },
  content_block_start: startBlock,
  content_block_delta(relaying, event, data) {
    if (relaying.privateTools.size > 0) relaying.round.recorder.delta(numberAt(data, 'index'), data['delta']);
    return passBlock(relaying, event, data);
  },
  content_block_stop: passBlock,
  message_delta(relaying, event, data) {
    const { round } = relaying;
    round.finish = stringIn(data['delta'], 'stop_reason') ?? round.finish;
    // Its numbers are running totals of the message and replace those of the start. Null replaces nothing.
    const totals = Object.entries(recordAt(data, 'usage')).filter(([, total]) => total !== null);
    if (totals.length > 0) round.usage = { ...recordAt(round, 'usage'), ...Object.fromEntries(totals) };
    return keepOrSend(relaying, event);
  },
  message_stop(relaying, event) {
    relaying.round.stopped = true;
    return keepOrSend(relaying, event);
  },
  error({ round }, event) {
    // The client takes this as the end: nothing may follow.
    round.ending = [];
    return [event.raw];
  },
};

function startBlock(relaying: AnthropicRelay, event: StreamEvent, data: JsonRecord): readonly Uint8Array[] {
  const { round, privateTools } = relaying;
  if (privateTools.size === 0) return [event.raw];
  const index = numberAt(data, 'index');
  const block = data['content_block'];
  if (isRecord(block)) round.recorder.start(index, objectBytes(encoder.encode(event.data), 'content_block'));
  const type = stringIn(block, 'type');
  const isRecall = type === 'tool_use' && privateTools.has(stringIn(block, 'name') ?? '');
  if (isRecall || (type === 'text' && round.hidesText)) {
    round.held.add(index);
    return [];
  }
  // Upstream's own index, until a private call or an earlier round has shifted the indices.
  const shown = isPlain(round) ? index : relaying.nextIndex;
  relaying.nextIndex = shown + 1;
  round.shown.set(index, shown);
  return [reindexed(round, event, index)];
}

function passBlock({ round }: AnthropicRelay, event: StreamEvent, data: JsonRecord): readonly Uint8Array[] {
  const index = numberAt(data, 'index');
  return round.held.has(index) ? [] : [reindexed(round, event, index)];
}

function reindexed(round: AnthropicRound, event: StreamEvent, index: number): Uint8Array {
  const shown = round.shown.get(index) ?? index;
  if (shown === index) return event.raw;
  return eventBytes(event.event, setMembers(encoder.encode(event.data), { index: jsonBytes(shown) }));
}

function keepOrSend({ round }: AnthropicRelay, event: StreamEvent): readonly Uint8Array[] {
  if (isPlain(round)) return [event.raw];
  round.ending.push(event);
  return [];
}

/** True as long as nothing was private: then everything is passed on unchanged. */
function isPlain(round: AnthropicRound): boolean {
  return round.number === 0 && round.held.size === 0;
}

/** Returns the events that end the message for the client. */
function ending(round: AnthropicRound, stop: string | null, usage: unknown): readonly Uint8Array[] {
  return round.ending.map((event) =>
    stringIn(parseRecord(event.data), 'type') === 'message_delta'
      ? closingDelta(event, usage, stop)
      : event.raw,
  );
}

/** Returns the last message_delta with the usage of all rounds and a stop reason that fits what the client saw. */
function closingDelta(event: StreamEvent, usage: unknown, stop: string | null): Uint8Array {
  const data = encoder.encode(event.data);
  const delta = withMembers(objectBytes(data, 'delta'), { stop_reason: jsonBytes(stop) });
  return eventBytes(event.event, withMembers(data, { delta, usage: jsonBytes(usage ?? {}) }));
}

function replyOf({ round, privateTools }: AnthropicRelay): ModelReply {
  const { recorder, finish, usage } = round;
  return replyFrom({ turn: recorder.turn(), finish, rawUsage: usage, privateTools });
}

function newRound(number: number): AnthropicRound {
  return {
    number,
    recorder: recordBlocks(),
    shown: new Map(),
    held: new Set(),
    hidesText: false,
    usage: undefined,
    finish: undefined,
    stopped: false,
    ending: [],
  };
}

// The content blocks of one streamed message, rebuilt so that the turn can be sent back verbatim: blocks that arrived whole keep
// their bytes, blocks that arrived in deltas are joined. https://docs.anthropic.com/en/docs/build-with-claude/streaming

type BlockState = {
  /** The block as its start event gave it. */
  readonly start: Uint8Array;
  /** Members that arrive in deltas, with their value so far. */
  readonly members: Map<string, unknown>;
  readonly citations: unknown[];
  /** The input as JSON text: its numbers must keep their spelling. */
  input: string;
};

export interface BlockRecorder {
  /** Starts a block. `block` is the JSON of the content block in the start event. */
  start(index: number, block: Uint8Array): void;
  delta(index: number, delta: unknown): void;
  /** Returns the content array as JSON bytes, blocks in order of their index. */
  turn(): Uint8Array;
}

const decoder = new TextDecoder();

function recordBlocks(): BlockRecorder {
  const states = new Map<number, BlockState>();
  return {
    start(index, block) {
      states.set(index, { start: block, members: new Map(), citations: [], input: '' });
    },
    delta(index, delta) {
      const state = states.get(index);
      if (state) applyDelta(state, delta);
    },
    turn() {
      const ordered = [...states].toSorted(([a], [b]) => a - b).map(([, state]) => blockBytes(state));
      return jsonList(ordered);
    },
  };
}

function applyDelta(state: BlockState, delta: unknown): void {
  const kind = stringIn(delta, 'type');
  const { members } = state;
  switch (kind) {
    case 'text_delta':
      members.set('text', `${textOf(state, 'text')}${stringIn(delta, 'text') ?? ''}`);
      break;
    case 'thinking_delta':
      members.set('thinking', `${textOf(state, 'thinking')}${stringIn(delta, 'thinking') ?? ''}`);
      break;
    case 'input_json_delta':
      state.input += stringIn(delta, 'partial_json') ?? '';
      break;
    case 'citations_delta':
      state.citations.push(isRecord(delta) ? delta['citation'] : undefined);
      break;
    case 'signature_delta':
    case 'compaction_delta':
      // These carry the final value of each member they name, null included.
      for (const [key, value] of Object.entries(isRecord(delta) ? delta : {}))
        if (key !== 'type') members.set(key, value);
      break;
    case undefined:
    default:
      // A delta of an unknown kind: the client gets it, but the rebuilt turn lacks it.
      break;
  }
}

function textOf({ members, start }: BlockState, key: string): string {
  const text = members.get(key) ?? stringIn(JSON.parse(decoder.decode(start)), key);
  return typeof text === 'string' ? text : '';
}

function blockBytes({ start, members, citations, input }: BlockState): Uint8Array {
  const values = [...members].map(([key, value]): [string, Uint8Array] => [key, jsonBytes(value)]);
  return withMembers(start, {
    ...Object.fromEntries(values),
    ...(citations.length > 0 ? { citations: jsonBytes(citations) } : {}),
    ...(isObject(input) ? { input: encoder.encode(input) } : {}),
  });
}

/**
 * True for the JSON of an object. A message that stopped at its token limit leaves half an input; then the `{}` of the start
 * event is used.
 */
function isObject(json: string): boolean {
  try {
    return isRecord(JSON.parse(json));
  } catch {
    return false;
  }
}
