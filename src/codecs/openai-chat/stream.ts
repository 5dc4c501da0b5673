/**
 * Relays a streamed completion: every chunk is passed on unchanged, except for the fragments of a private recall call. When
 * continuations follow, the client sees one message: one role, call indices without gaps, one finish, usage of all rounds.
 */
import type { GatewayProblem, ModelReply, StreamEvent, StreamOptions, StreamRelay } from '../codec.ts';
import {
  awaitsRecall,
  addUsage,
  eventBytes,
  numberAt,
  recordAt,
  setMembers,
  skippingDeltas,
  stringIn,
} from '../shared-json.ts';
import {
  changeChoice,
  clientFinish,
  closedChoice,
  contentOf,
  errorBody,
  firstChoice,
  hasText,
  isComplete,
  replyFrom,
  usageFrom,
  withCalls,
} from './response.ts';
import { providerError } from '../provider-errors.ts';
import { type JsonRecord, isRecord, jsonBytes, parseRecord } from '../../conversation/json-scan.ts';
import type { PrivateTools } from '../../conversation/turns.ts';

/** The state of the relay over all rounds. */
type ChatRelay = {
  readonly privateTools: PrivateTools;
  round: ChatRound;
  nextIndex: number;
  /** The id of the first response, which becomes that of the one message the client sees. */
  id: string | undefined;
  hasRole: boolean;
  earlierUsage: unknown;
};

/** The state of one upstream response. */
type ChatRound = {
  readonly number: number;
  readonly recorder: MessageRecorder;
  /** Client-side index of each call; private ones have none. */
  readonly shown: Map<CallKey, number>;
  readonly recalls: Set<CallKey>;
  /** True when the client does not get texts. */
  hidesText: boolean;
  /** True when the one call of the legacy function form is private. Its name comes with its first fragment. */
  recallsFunction: boolean;
  /** Calls whose name has not arrived yet: they may still turn out private. */
  readonly unnamed: Set<CallKey>;
  usage: unknown;
  finish: string | undefined;
  /** Chunks that end the message, held back once a private call was seen; a continuation starts with those of the round before. */
  ending: StreamEvent[];
  hasBegun: boolean;
  failed: boolean;
};

/** A delta with its call fragments, as received and as the client sees them. */
type DeltaCalls = {
  readonly delta: JsonRecord;
  readonly fragments: readonly JsonRecord[];
  readonly visible: readonly JsonRecord[];
};

const encoder = new TextEncoder();

export function openStream({ privateTools }: StreamOptions): StreamRelay {
  const relaying: ChatRelay = {
    privateTools,
    round: newRound(0),
    nextIndex: 0,
    id: undefined,
    hasRole: false,
    earlierUsage: undefined,
  };
  const usage = () => addUsage(relaying.earlierUsage, relaying.round.usage);
  return skippingDeltas({
    take: (event, data) => take(relaying, event, data),
    isPlain: () => isPlain(relaying),
    textKeyOf,
    newestKeys: 'obfuscation|[a-z_]+_tokens',
    keepsText: privateTools.size > 0,
    end() {
      const { round } = relaying;
      const reply = replyOf(relaying);
      if (round.failed || !isComplete(reply) || !awaitsRecall(reply)) {
        const tail = ending(relaying, clientFinish(reply), usage());
        return {
          status: 'done',
          tail,
          reply: round.failed || round.finish === undefined ? undefined : reply,
        };
      }
      relaying.earlierUsage = usage();
      relaying.round = { ...newRound(round.number + 1), ending: round.ending };
      return { status: 'recall', reply };
    },
    finish: () => ending(relaying, 'stop', usage()),
    fail: (problem: GatewayProblem, providerBody) => [
      eventBytes(undefined, providerError(providerBody)?.whole ?? errorBody(problem)),
    ],
    usage: () => usageFrom(usage()),
    contentOf,
    hideText: () => void (relaying.round.hidesText = true),
  });
}

function take(relaying: ChatRelay, event: StreamEvent, chunk: JsonRecord | undefined): readonly Uint8Array[] {
  if (event.data === '[DONE]') return keepOrSend(relaying, event);
  if (chunk && isRecord(chunk['error'])) {
    // The client takes this as the end.
    relaying.round = { ...relaying.round, hasBegun: true, failed: true, ending: [] };
    return [event.raw];
  }
  return chunk && Array.isArray(chunk['choices']) ? takeChunk(relaying, event, chunk) : [event.raw];
}

/** Returns the key of the only text in the delta of the only choice; undefined for a chunk with anything else. */
function textKeyOf(chunk: JsonRecord): string | undefined {
  const { choices } = chunk;
  const choice = firstChoice(chunk);
  if (!Array.isArray(choices) || choices.length !== 1 || isRecord(chunk['error'])) return undefined;
  if (numberAt(choice, 'index') !== 0 || stringIn(choice, 'finish_reason') !== undefined) return undefined;
  const said = Object.entries(recordAt(choice, 'delta')).filter(
    ([key, value]) => key !== 'role' && value !== null && value !== '',
  );
  const [key, text] = said.length === 1 ? said[0]! : [];
  return typeof text === 'string' && /^\w+$/.test(key!) ? key : undefined;
}

function takeChunk(relaying: ChatRelay, event: StreamEvent, chunk: JsonRecord): readonly Uint8Array[] {
  const { round } = relaying;
  if (!round.hasBegun) round.ending = [];
  round.hasBegun = true;
  relaying.id ??= stringIn(chunk, 'id');
  if (isRecord(chunk['usage'])) round.usage = chunk['usage'];
  const choice = firstChoice(chunk);
  // Recalls are private only when the client asked for one reply.
  if (relaying.privateTools.size === 0 || numberAt(choice, 'index') !== 0) return [event.raw];
  if (!choice) return keepOrSend(relaying, event);
  const delta = recordAt(choice, 'delta');
  const keys = round.recorder.delta(delta);
  round.recallsFunction ||= relaying.privateTools.has(round.recorder.functionName() ?? '');
  const fragments = callsOf(delta);
  const visible = fragments
    .map((fragment, at) => routeCall(relaying, fragment, keys[at]!))
    .filter((call) => call !== undefined);
  const finish = stringIn(choice, 'finish_reason');
  if (finish === undefined) return show(relaying, event, { delta, fragments, visible }, false);
  round.finish = finish;
  return showLast(relaying, event, { delta, fragments, visible: [...visible, ...neverNamed(relaying)] });
}

/** Returns a call fragment under its client-side index; undefined when the client does not get it. */
function routeCall(relaying: ChatRelay, fragment: JsonRecord, key: CallKey): JsonRecord | undefined {
  const { round, privateTools } = relaying;
  if (round.recalls.has(key)) return undefined;
  const known = round.shown.get(key);
  if (known !== undefined) return atIndex(fragment, known);
  const name = round.recorder.nameOf(key);
  if (privateTools.has(name)) round.recalls.add(key);
  else if (name === '') round.unnamed.add(key);
  else {
    const index = newIndex(relaying, key);
    return round.unnamed.delete(key) ? { ...round.recorder.call(key), index } : atIndex(fragment, index);
  }
  return undefined;
}

/** Returns upstream's own index, until a private call or an earlier round has shifted the indices. */
function newIndex(relaying: ChatRelay, key: CallKey): number {
  const index = isPlain(relaying) ? key.index : relaying.nextIndex;
  relaying.nextIndex = Math.max(relaying.nextIndex, index + 1);
  relaying.round.shown.set(key, index);
  return index;
}

/** Returns the call under this index; the call itself if it already has it (a missing index is 0). */
function atIndex(call: JsonRecord, index: number): JsonRecord {
  return numberAt(call, 'index') === index ? call : { ...call, index };
}

function neverNamed(relaying: ChatRelay): readonly JsonRecord[] {
  const { unnamed, recorder } = relaying.round;
  return [...unnamed].map((key) => ({ ...recorder.call(key), index: newIndex(relaying, key) }));
}

/** True as long as nothing was private: then everything is passed on unchanged. */
function isPlain({ round }: ChatRelay): boolean {
  return round.number === 0 && round.recalls.size === 0 && !round.recallsFunction;
}

/** A last chunk may carry text and calls, which must not wait for a recall. */
function showLast(relaying: ChatRelay, event: StreamEvent, said: DeltaCalls): readonly Uint8Array[] {
  if (isPlain(relaying)) return show(relaying, event, said, false);
  relaying.round.ending.push(event);
  return show(relaying, event, said, true);
}

function keepOrSend(relaying: ChatRelay, event: StreamEvent): readonly Uint8Array[] {
  if (isPlain(relaying)) return [event.raw];
  relaying.round.ending.push(event);
  return [];
}

/**
 * Returns the chunk without private calls, with the client's own call indices, under the id of the first response. The end of a
 * message in a `split` chunk comes later.
 */
function show(
  relaying: ChatRelay,
  event: StreamEvent,
  said: DeltaCalls,
  split: boolean,
): readonly Uint8Array[] {
  const { delta, fragments, visible } = said;
  const kept = { keepsFunction: !relaying.round.recallsFunction, keepsText: !relaying.round.hidesText };
  const isSame =
    visible.length === fragments.length &&
    visible.every((call, at) => call === fragments[at]) &&
    (kept.keepsFunction || !isRecord(delta['function_call'])) &&
    (kept.keepsText || !delta['content']);
  const keepsRole = !relaying.hasRole;
  relaying.hasRole ||= stringIn(delta, 'role') !== undefined;
  if (isSame && relaying.round.number === 0 && !split) return [event.raw];
  const bringsRole = keepsRole && relaying.hasRole;
  if (visible.length === 0 && !bringsRole && !hasText(delta, kept)) return [];
  const shown = changeChoice(encoder.encode(event.data), (choice) =>
    withCalls(split ? setMembers(choice, { finish_reason: jsonBytes(null) }) : choice, visible, {
      keepsRole,
      ...kept,
    }),
  );
  // Running totals of a continuation would be lower than those of the first response, so only the end tells the sum.
  const keepsUsage = !split && relaying.round.number === 0;
  return [underFirstId(relaying, event, shown, keepsUsage ? {} : { usage: undefined })];
}

/** Returns the end of the message for the client, who has already received what the last chunk said. */
function ending(relaying: ChatRelay, finish: string | null, usage: unknown): readonly Uint8Array[] {
  return relaying.round.ending.map((event) => {
    const chunk = parseRecord(event.data);
    if (!chunk) return event.raw;
    const closed = changeChoice(encoder.encode(event.data), (choice) => closedChoice(choice, finish));
    return underFirstId(relaying, event, closed, isRecord(chunk['usage']) ? { usage: jsonBytes(usage) } : {});
  });
}

function underFirstId(
  { id }: ChatRelay,
  event: StreamEvent,
  chunk: Uint8Array,
  members: Readonly<Record<string, Uint8Array | undefined>>,
): Uint8Array {
  const first = id === undefined ? {} : { id: jsonBytes(id) };
  return eventBytes(event.event, setMembers(chunk, { ...first, ...members }));
}

function replyOf({ round, privateTools }: ChatRelay): ModelReply {
  const { recorder, finish, usage } = round;
  return replyFrom({ turn: recorder.turn(), finish, rawUsage: usage, privateTools });
}

function newRound(number: number): ChatRound {
  return {
    number,
    recorder: recordMessage(),
    shown: new Map(),
    recalls: new Set(),
    unnamed: new Set(),
    recallsFunction: false,
    hidesText: false,
    usage: undefined,
    finish: undefined,
    ending: [],
    hasBegun: false,
    failed: false,
  };
}

// The assistant message of one streamed completion, rebuilt so that it can be sent back in a continuation

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

function recordMessage(): MessageRecorder {
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
function callsOf(delta: JsonRecord): readonly JsonRecord[] {
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
