/**
 * Relays a streamed reply (`alt=sse`): every chunk is passed on unchanged, except for the part of a private recall call. When
 * continuations follow, the client sees one reply: one id, one finish, usage of all rounds. The JSON array that streams without
 * `alt=sse` is not server-sent events and never gets here. The reply is rebuilt, to be sent back in a continuation: text that
 * came in pieces is joined; every part with more than text keeps its bytes ("don't merge one part with a signature with
 * another").
 */
import { type JsonRecord, isRecord, jsonBytes, objectsOf } from '../../conversation/json-scan.ts';
import type {
  GatewayProblem,
  ModelReply,
  RelayEnd,
  StreamEvent,
  StreamOptions,
  StreamRelay,
} from '../codec.ts';
import {
  awaitsRecall,
  addUsage,
  eventBytes,
  jsonList,
  memberBytes,
  numberAt,
  recordAt,
  setMembers,
  skippingDeltas,
  stringIn,
  withMembers,
  type JsonElement,
} from '../shared-json.ts';
import { providerError } from '../provider-errors.ts';
import {
  callIn,
  candidateContent,
  changeCandidate,
  emptyText,
  errorBody,
  firstCandidate,
  hideRecalls,
  isComplete,
  isText,
  partsOf,
  replyFrom,
  saidIn,
  usageFrom,
} from './response.ts';
import type { PrivateTools } from '../../conversation/turns.ts';

/** The state of one upstream response. */
type GeminiRound = {
  readonly number: number;
  readonly recorder: ContentRecorder;
  hide: (part: JsonElement) => JsonElement | undefined;
  recalled: boolean;
  usage: unknown;
  finish: string | undefined;
  /** Chunks that end the reply, held back once a private call was seen; a continuation starts with those of the round before. */
  ending: StreamEvent[];
  begun: boolean;
  failed: boolean;
};

const encoder = new TextEncoder();

export function openStream({ privateTools }: StreamOptions): StreamRelay {
  let round = newRound(0, privateTools);
  let firstId: string | undefined;
  let earlierUsage: unknown;

  function takeChunk(event: StreamEvent, chunk: JsonRecord): readonly Uint8Array[] {
    if (!round.begun) round.ending = [];
    round.begun = true;
    firstId ??= stringIn(chunk, 'responseId');
    // Its numbers are running totals of this response and replace those of the chunk before.
    if (isRecord(chunk['usageMetadata']))
      round.usage = { ...(round.usage as object), ...chunk['usageMetadata'] };
    const candidate = firstCandidate(chunk);
    if (privateTools.size === 0 || numberAt(candidate, 'index') !== 0) return [event.raw];
    if (!candidate) return isPlain() ? [event.raw] : keep(event);
    const data = encoder.encode(event.data);
    const parts = partsOf(candidateContent(data) ?? jsonBytes({}));
    round.recorder.add(parts);
    round.recalled ||= parts.some(({ value }) => privateTools.has(callIn(value)?.name ?? ''));
    const visible = parts.flatMap((part) => round.hide(part) ?? []);
    const finish = stringIn(candidate, 'finishReason');
    round.finish = finish ?? round.finish;
    if (isPlain()) return [event.raw];
    const isSame = visible.length === parts.length && visible.every((part, at) => part === parts[at]);
    if (finish === undefined && isSame && round.number === 0) return [event.raw];
    const shown = visible.length > 0 ? [show(event, data, visible)] : [];
    return finish === undefined ? shown : [...shown, ...keep(event)];
  }

  function keep(event: StreamEvent): readonly Uint8Array[] {
    round.ending.push(event);
    return [];
  }

  function isPlain(): boolean {
    return round.number === 0 && !round.recalled;
  }

  /** Returns the chunk without private calls and without an end, under the id of the first response. */
  function show(event: StreamEvent, data: Uint8Array, visible: readonly JsonElement[]): Uint8Array {
    const parts = jsonList(visible.map(({ bytes }) => bytes));
    const open = changeCandidate(data, (candidate) =>
      setMembers(withParts(candidate, parts), { finishReason: undefined, finishMessage: undefined }),
    );
    return eventBytes(event.event, ofOneReply(open));
  }

  /** Sets the id of the first response and the usage of all rounds so far. */
  function ofOneReply(data: Uint8Array): Uint8Array {
    const id = firstId === undefined ? {} : { responseId: jsonBytes(firstId) };
    const usage = { usageMetadata: jsonBytes(addUsage(earlierUsage, round.usage) ?? {}) };
    return setMembers(data, { ...id, ...(round.number > 0 ? usage : {}) });
  }

  function ending(finish: string | undefined): readonly Uint8Array[] {
    return round.ending.map((event) => {
      // The client has already received what the last chunk said.
      const closed = changeCandidate(encoder.encode(event.data), (candidate) => {
        const said = withParts(candidate, jsonList([emptyText]));
        return finish === undefined ? said : setMembers(said, { finishReason: jsonBytes(finish) });
      });
      return eventBytes(event.event, ofOneReply(closed));
    });
  }

  function currentReply(): ModelReply {
    const { recorder, finish, usage } = round;
    return replyFrom({ turn: recorder.turn(), finish, rawUsage: usage, privateTools });
  }

  return skippingDeltas({
    take(event, chunk) {
      if (chunk && isRecord(chunk['error'])) {
        // The client takes this as the end.
        round = { ...round, begun: true, failed: true, ending: [] };
        return [event.raw];
      }
      const isReply = chunk && (Array.isArray(chunk['candidates']) || isRecord(chunk['usageMetadata']));
      return isReply ? takeChunk(event, chunk) : [event.raw];
    },
    isPlain,
    textKeyOf(chunk) {
      const { candidates, error } = chunk;
      if (!Array.isArray(candidates) || candidates.length !== 1 || isRecord(error)) return undefined;
      const candidate = firstCandidate(chunk);
      const { parts } = recordAt(candidate, 'content');
      if (!Array.isArray(parts) || parts.length !== 1 || !isOnlyText(parts[0])) return undefined;
      const isDelta =
        numberAt(candidate, 'index') === 0 &&
        stringIn(candidate, 'finishReason') === undefined &&
        stringIn(parts[0], 'text') !== undefined;
      return isDelta ? 'text' : undefined;
    },
    newestKeys: '[a-zA-Z]*[tT]okenCount',
    keepsText: privateTools.size > 0,
    end(): RelayEnd {
      const reply = currentReply();
      if (round.failed || !isComplete(reply) || !awaitsRecall(reply))
        return {
          status: 'done',
          tail: ending(undefined),
          reply: round.failed || round.finish === undefined ? undefined : reply,
        };
      earlierUsage = addUsage(earlierUsage, round.usage);
      round = { ...newRound(round.number + 1, privateTools), ending: round.ending };
      return { status: 'recall', reply };
    },
    finish: () => ending('STOP'),
    fail: (problem: GatewayProblem, providerBody) => [
      eventBytes(undefined, providerError(providerBody)?.whole ?? errorBody(problem)),
    ],
    usage: () => usageFrom(addUsage(earlierUsage, round.usage)),
    contentOf(chunk) {
      const parts = objectsOf(recordAt(firstCandidate(chunk), 'content')['parts']);
      const said = parts.flatMap((part) => saidIn(part) ?? []).filter(({ isThought }) => !isThought);
      const text = said.map((piece) => piece.text).join('');
      return { text: text || undefined, calls: parts.flatMap((part) => callIn(part)?.name ?? []) };
    },
    hideText() {
      const { hide } = round;
      round.hide = (part) => (isText(part) ? undefined : hide(part));
      round.recalled = true;
    },
  });
}

function newRound(number: number, privateTools: PrivateTools): GeminiRound {
  return {
    number,
    recorder: recordContent(),
    hide: hideRecalls(privateTools),
    recalled: false,
    usage: undefined,
    finish: undefined,
    ending: [],
    begun: false,
    failed: false,
  };
}

function withParts(candidate: Uint8Array, parts: Uint8Array): Uint8Array {
  const content = memberBytes(candidate, 'content');
  const isObject = content?.[0] === '{'.charCodeAt(0);
  return withMembers(candidate, {
    content: withMembers(isObject ? content : jsonBytes({ role: 'model' }), { parts }),
  });
}

interface ContentRecorder {
  add(parts: readonly JsonElement[]): void;
  /** Returns the content as JSON bytes. */
  turn(): Uint8Array;
}

function recordContent(): ContentRecorder {
  const done: Uint8Array[] = [];
  let open: { text: string; readonly isThought: boolean } | undefined;
  const close = () => {
    if (open && open.text !== '')
      done.push(jsonBytes({ text: open.text, ...(open.isThought ? { thought: true } : {}) }));
    open = undefined;
  };
  return {
    add(parts) {
      for (const { bytes, value } of parts) {
        const piece = isOnlyText(value) ? saidIn(value) : undefined;
        if (piece?.text === '') continue;
        if (!piece || piece.isThought !== open?.isThought) close();
        if (!piece) done.push(bytes);
        else open = { text: (open?.text ?? '') + piece.text, isThought: piece.isThought };
      }
    },
    turn() {
      close();
      return withMembers(jsonBytes({ role: 'model' }), { parts: jsonList(done) });
    },
  };
}

/** True for a part with text or a thought and nothing else. */
function isOnlyText(value: unknown): boolean {
  return isRecord(value) && Object.keys(value).every((key) => key === 'text' || key === 'thought');
}
