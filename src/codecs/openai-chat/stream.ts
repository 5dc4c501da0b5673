/**
 * Relays a streamed completion: every chunk goes on as it came, but for the fragments of a private recall call.
 * When continuations follow, the client sees one message: one role, call indices without gaps, one finish, usage of all rounds.
 */
import { scanArray } from '../../conversation/json-scan.ts';
import { applySplices, jsonBytes } from '../../conversation/splice.ts';
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
  jsonList,
  memberBytes,
  numberAt,
  recordAt,
  setMembers,
  stringIn,
  withMembers,
} from '../event-json.ts';
import { clientFinish, errorBody, replyFrom, usageFrom } from './response.ts';
import { type CallKey, callsOf, type Fields, type MessageRecorder, recordMessage } from './stream-message.ts';

/** What one upstream response has said so far. */
type Round = {
  readonly number: number;
  readonly recorder: MessageRecorder;
  /** Client-side index of each call; private ones have none. */
  readonly shown: Map<CallKey, number>;
  readonly recalls: Set<CallKey>;
  /** Calls whose name has not come yet: they may still become the private one. */
  readonly unnamed: Set<CallKey>;
  usage: unknown;
  finish: string | undefined;
  /** Chunks that end the message, kept back once a private call was seen; a continuation starts with those of the round before. */
  ending: StreamEvent[];
  begun: boolean;
  failed: boolean;
};

/** What the client may see of a chunk's calls: the fragments as they came, and as they go on. */
type Routed = { readonly fragments: readonly Fields[]; readonly visible: readonly Fields[] };

const encoder = new TextEncoder();

export function openStream({ recallTool }: StreamOptions): StreamRelay {
  let round = newRound(0);
  let nextIndex = 0;
  let firstId: string | undefined;
  let earlierUsage: unknown;

  function takeChunk(event: StreamEvent, chunk: Fields): readonly Uint8Array[] {
    if (!Array.isArray(chunk['choices'])) return [event.raw];
    if (!round.begun) round.ending = [];
    round.begun = true;
    firstId ??= stringIn(chunk, 'id');
    if (isRecord(chunk['usage'])) round.usage = chunk['usage'];
    const choice = firstChoice(chunk);
    // Recalls are private only where the client asked for one reply.
    if (recallTool === undefined || numberAt(choice, 'index') !== 0) return [event.raw];
    if (!choice) return atTheEnd(event);
    const delta = recordAt(choice, 'delta');
    const keys = round.recorder.delta(delta);
    const fragments = callsOf(delta);
    const visible = fragments
      .map((fragment, at) => routeCall(fragment, keys[at]!))
      .filter((call) => call !== undefined);
    const finish = stringIn(choice, 'finish_reason');
    if (finish === undefined) return show(event, delta, { fragments, visible }, {});
    round.finish = finish;
    return takeLast(event, delta, { fragments, visible: [...visible, ...neverNamed()] });
  }

  /** Where a call fragment goes at the client: its index there, or nowhere. */
  function routeCall(fragment: Fields, key: CallKey): Fields | undefined {
    if (round.recalls.has(key)) return undefined;
    const known = round.shown.get(key);
    if (known !== undefined) return atIndex(fragment, known);
    const name = round.recorder.nameOf(key);
    if (name === recallTool) round.recalls.add(key);
    else if (name === '') round.unnamed.add(key);
    else
      return round.unnamed.delete(key)
        ? { ...round.recorder.call(key), index: newIndex(key) }
        : atIndex(fragment, newIndex(key));
    return undefined;
  }

  /** Upstream's own index, until a private call or an earlier round has moved the numbers. */
  function newIndex(key: CallKey): number {
    const index = isPlain() ? key.index : nextIndex;
    nextIndex = Math.max(nextIndex, index + 1);
    round.shown.set(key, index);
    return index;
  }

  function neverNamed(): readonly Fields[] {
    return [...round.unnamed].map((key) => ({ ...round.recorder.call(key), index: newIndex(key) }));
  }

  function isPlain(): boolean {
    return round.number === 0 && round.recalls.size === 0;
  }

  /** A last chunk may carry text and calls, which must not wait behind a recall. */
  function takeLast(event: StreamEvent, delta: Fields, routed: Routed): readonly Uint8Array[] {
    if (isPlain()) return show(event, delta, routed, {});
    const now = hasText(delta) || routed.visible.length > 0;
    round.ending.push(event);
    return now ? show(event, delta, routed, { finish_reason: nullBytes }) : [];
  }

  function atTheEnd(event: StreamEvent): readonly Uint8Array[] {
    if (isPlain()) return [event.raw];
    round.ending.push(event);
    return [];
  }

  /** The chunk without private calls, with the client's own call indices, under the id of the first response. */
  function show(
    event: StreamEvent,
    delta: Fields,
    { fragments, visible }: Routed,
    last: Readonly<Record<string, Uint8Array>>,
  ): readonly Uint8Array[] {
    const same = visible.length === fragments.length && visible.every((call, at) => call === fragments[at]);
    if (same && round.number === 0) return [event.raw];
    // A continuation begins with a role and no content: the client has its role already.
    if (visible.length === 0 && !hasText(delta)) return [];
    const role = round.number > 0 ? { role: undefined } : {};
    const calls = visible.length > 0 ? { tool_calls: jsonList(visible.map(jsonBytes)) } : {};
    const said = (choice: Uint8Array) =>
      setMembers(memberBytes(choice, 'delta') ?? jsonBytes({}), { ...role, tool_calls: undefined });
    const shown = changeChoice(encoder.encode(event.data), (choice) =>
      withMembers(choice, { ...last, delta: withMembers(said(choice), calls) }),
    );
    const usage = 'finish_reason' in last ? { usage: undefined } : {};
    return [eventBytes(event.event, setMembers(shown, { ...idMember(), ...usage }))];
  }

  function idMember(): Readonly<Record<string, Uint8Array>> {
    return firstId === undefined ? {} : { id: jsonBytes(firstId) };
  }

  function ending(finish: string | null): readonly Uint8Array[] {
    const usage = addUsage(earlierUsage, round.usage);
    return round.ending.map((event) => {
      const chunk = parseChunk(event.data);
      if (!chunk) return event.raw;
      // What the last chunk said is out already.
      const closed = { delta: jsonBytes({}), logprobs: nullBytes, finish_reason: jsonBytes(finish) };
      const data = changeChoice(encoder.encode(event.data), (choice) => setMembers(choice, closed));
      const total = isRecord(chunk['usage']) ? { usage: jsonBytes(usage) } : {};
      return eventBytes(event.event, setMembers(data, { ...idMember(), ...total }));
    });
  }

  function currentReply(): ModelReply {
    const { recorder, finish, usage } = round;
    return replyFrom({ turn: recorder.turn(), finish, rawUsage: usage, recallTool });
  }

  return {
    take(event) {
      if (event.data === '[DONE]') return atTheEnd(event);
      const chunk = parseChunk(event.data);
      if (!chunk) return [event.raw];
      if (!isRecord(chunk['error'])) return takeChunk(event, chunk);
      // The client takes this as the end.
      round = { ...round, begun: true, failed: true, ending: [] };
      return [event.raw];
    },
    end(): RelayEnd {
      const reply = currentReply();
      if (round.failed || !isToBeAnswered(reply))
        return { status: 'done', tail: ending(clientFinish(reply)) };
      earlierUsage = addUsage(earlierUsage, round.usage);
      round = { ...newRound(round.number + 1), ending: round.ending };
      return { status: 'recall', reply };
    },
    finish: () => ending('stop'),
    fail: (problem: GatewayProblem) => [eventBytes(undefined, errorBody(problem))],
    usage: () => usageFrom(addUsage(earlierUsage, round.usage)),
  };
}

const nullBytes = jsonBytes(null);

/** Only recalls, and whole: a reply that was cut off may hold half a call. Not every server says `tool_calls` for the rest. */
function isToBeAnswered(reply: ModelReply): boolean {
  const whole = reply.finish !== undefined && reply.finish !== 'length' && reply.finish !== 'content_filter';
  return whole && reply.recalls.length > 0 && reply.calls.length === 0;
}

function newRound(number: number): Round {
  return {
    number,
    recorder: recordMessage(),
    shown: new Map(),
    recalls: new Set(),
    unnamed: new Set(),
    usage: undefined,
    finish: undefined,
    ending: [],
    begun: false,
    failed: false,
  };
}

function atIndex(fragment: Fields, index: number): Fields {
  return numberAt(fragment, 'index') === index ? fragment : { ...fragment, index };
}

/** Changes the first choice of a chunk, byte for byte the rest. */
function changeChoice(chunk: Uint8Array, change: (choice: Uint8Array) => Uint8Array): Uint8Array {
  const choices = memberBytes(chunk, 'choices');
  const first = choices?.[0] === OPEN_BRACKET ? scanArray(choices, 0).elements[0] : undefined;
  if (!choices || !first) return chunk;
  const bytes = change(choices.subarray(first.start, first.end));
  return setMembers(chunk, { choices: applySplices(choices, [{ span: first, bytes }]) });
}

const OPEN_BRACKET = '['.charCodeAt(0);

function firstChoice(chunk: Fields): Fields | undefined {
  const choices = chunk['choices'];
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isRecord(first) ? first : undefined;
}

/** True when a delta says anything beside its role and its calls. */
function hasText(delta: Fields): boolean {
  return Object.entries(delta).some(
    ([key, value]) => key !== 'role' && key !== 'tool_calls' && value !== null && value !== '',
  );
}

function parseChunk(data: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
