/**
 * Answers the model's recalls and lets the model continue, until its reply is for the client. This works for complete responses and for
 * streams: in a stream only the recall is held back, everything else is relayed as it arrives.
 */
import type { ModelReply, RecallAnswer, StreamRelay } from '../codecs/codec.ts';
import { holdText } from '../codecs/hold-text.ts';
import { awaitsRecall, recallsWithCalls } from '../codecs/shared-json.ts';
import type { KeptReply, RecallRound, Usage } from '../conversation/conversation.ts';
import { type PrivateTools, privateToolsOf } from '../conversation/turns.ts';
import type { PreparedRequest } from '../engine/types.ts';
import { LeporelloError, reasonOf } from '../errors.ts';
import { discardBody, maxErrorBytes, peekBody, peekBytes } from './http/body.ts';
import { type EventSplitter, type UpstreamResponse, createEventSplitter } from './http/http.ts';
import type { Exchange } from './options.ts';
import { sendContinuation, storeWaitMs, waitAtMost } from './send-with-retries.ts';
import { type RecallBudget, answersTo, openBudget, withoutLongAnswers } from '../recall/tool.ts';
import { addedUsage, noUsage } from '../receipts/cost.ts';

/** Bytes of a complete response that is read for recalls. A model's reply is far smaller; a larger response is relayed unread. */
const maxResponseBytes = 64 * 1024 * 1024;

/** Yields the client's bytes of a streamed response as they arrive. An error of the first response ends the stream with that error. */
export async function* relayStream(exchange: Exchange, first: UpstreamResponse): AsyncGenerator<Uint8Array> {
  const { codec, prepared, note } = exchange;
  const privateTools = privateToolsOf([prepared.recallTool, prepared.notesTool]);
  const budget = openBudget(exchange);
  let round = 1;
  const plain = passingOnErrors(codec.openStream({ privateTools }), (error) => {
    // A later round that cannot be read would begin a second message.
    if (round > 1) throw error;
    unread(exchange, error);
  });
  const isLastRound = () => budget.isSpent(round);
  const relay = prepared.wantsJson
    ? holdText(plain, { privateTools, mayRecall: prepared.searched().length > 0, isLastRound })
    : plain;
  const recorder = recordHiddenRecalls(prepared, note, 'first');
  let sent = prepared.body;
  let response = first;
  try {
    for (; ; round++) {
      const splitter = createEventSplitter();
      try {
        for await (const chunk of response.body) {
          for (const bytes of relayChunk(splitter, relay, chunk)) yield bytes;
        }
        const rest = splitter.end();
        if (rest !== undefined) yield* relay.take(rest);
        yield* relay.release?.() ?? [];
      } catch (error) {
        yield* relay.release?.() ?? [];
        // Before the first recall, the client sees the same error as without the gateway.
        if (round === 1) throw error;
        yield* await endedByError(exchange, relay, recorder, error);
        return;
      }
      const end = relay.end();
      const isRead = !splitter.isTooLong();
      note.used(relay.usage());
      if (!isRead) note.problem('an event of the response was too long to be read');
      if (end.status === 'done') {
        if (end.reply && isRead) await completed(exchange, recorder, end.reply, round, budget);
        else await (end.reply ? recorder.complete(end.reply) : recorder.disconnected());
        yield* end.tail;
        return;
      }
      // A reply that was not completely read cannot be continued.
      if (budget.isSpent(round) || !isRead) {
        await recorder.complete(end.reply);
        yield* relay.finish();
        return;
      }
      try {
        ({ sent, response } = await continued(exchange, recorder, budget, { sent, reply: end.reply, round }));
        if (response.status !== 200) {
          yield* await refused(exchange, relay, recorder, response);
          return;
        }
      } catch (error) {
        yield* await endedByError(exchange, relay, recorder, error);
        return;
      }
    }
  } finally {
    note.ended(relay.usage());
    await recorder.disconnected();
  }
}

/** Returns the same relay, but if its own code throws, `failed` is called, and from this event on all bytes pass through unread. */
function passingOnErrors(relay: StreamRelay, failed: (error: unknown) => void): StreamRelay {
  let isUnread = false;
  const give = <Instead>(error: unknown, instead: Instead): Instead => {
    failed(error);
    isUnread = true;
    return instead;
  };
  return {
    ...relay,
    take(event) {
      try {
        return isUnread ? [event.raw] : relay.take(event);
      } catch (error) {
        return give(error, [event.raw]);
      }
    },
    skip(bytes, from) {
      return isUnread ? from : relay.skip(bytes, from);
    },
    end() {
      const end = { status: 'done', tail: [], reply: undefined } as const;
      try {
        return isUnread ? end : relay.end();
      } catch (error) {
        return give(error, end);
      }
    },
  };
}

function unread({ note, failed }: Exchange, error: unknown): void {
  note.problem(`the response could not be read: ${reasonOf(error)}`);
  failed(error);
}

/** Returns what the client gets of a chunk. Events that follow each other unchanged are one slice of the chunk. */
export function relayChunk(
  splitter: EventSplitter,
  relay: StreamRelay,
  chunk: Uint8Array,
): readonly Uint8Array[] {
  const shown: Uint8Array[] = [];
  /** Begin and end of the unchanged events that are not yet in `shown`. */
  let begin = 0;
  let at = 0;
  while (at < chunk.length) {
    const skipped = splitter.isBetween() ? relay.skip(chunk, at) : at;
    if (skipped > at) {
      at = skipped;
      continue;
    }
    const { event, end } = splitter.next(chunk, at);
    const bytes = event === undefined ? [] : relay.take(event);
    const [first] = bytes;
    // An event that began in an earlier chunk is longer than its part of this one.
    const isUnchanged = bytes.length === 1 && first === event?.raw && first?.length === end - at;
    if (!isUnchanged) {
      if (begin < at) shown.push(chunk.subarray(begin, at));
      shown.push(...bytes);
      begin = end;
    }
    at = end;
  }
  if (begin < at) shown.push(begin === 0 ? chunk : chunk.subarray(begin));
  return shown;
}

/**
 * Ends a reply. Recalls next to calls of the client's tools are answered now, while their originals are available; the model gets these
 * answers with the next request, together with the client's results.
 */
async function completed(
  exchange: Exchange,
  recorder: HiddenRecallRecorder,
  last: ModelReply,
  round: number,
  budget: RecallBudget,
): Promise<void> {
  exchange.note.replied(last);
  if (recallsWithCalls(last) && exchange.codec.isComplete(last)) {
    recorder.answered(last, await answersTo(exchange, last, round, budget));
  }
  await recorder.complete(last);
}

/** Returns the client's body of a complete response, and the last upstream response, whose status and headers belong to it. */
export async function relayWhole(
  exchange: Exchange,
  first: UpstreamResponse,
): Promise<{ readonly response: UpstreamResponse; readonly body: Uint8Array | AsyncIterable<Uint8Array> }> {
  const { codec, prepared, note } = exchange;
  const privateTools = privateToolsOf([prepared.recallTool, prepared.notesTool]);
  const earlier: ModelReply[] = [];
  const recorder = recordHiddenRecalls(prepared, note, 'last');
  const budget = openBudget(exchange);
  let sent = prepared.body;
  let response = first;
  for (let round = 1; ; round++) {
    const peeked = await peekBytes(response.body, maxResponseBytes);
    if (peeked.status === 'broken') throw peeked.error;
    if (peeked.status === 'too long') {
      note.problem('the response was too long to be read');
      await recorder.disconnected();
      return { response, body: peeked.body };
    }
    const body = peeked.bytes;
    const reply = response.status === 200 ? readReply(exchange, body, privateTools) : undefined;
    if (!reply) {
      await (response.status === 200 ? recorder.disconnected() : recorder.forget());
      return { response, body };
    }
    note.used(sumUsage([...earlier, reply]));
    if (!codec.isComplete(reply) || !awaitsRecall(reply) || budget.isSpent(round)) {
      await completed(exchange, recorder, reply, round, budget);
      const isChanged = earlier.length > 0 || reply.recalls.length > 0;
      return { response, body: isChanged ? codec.writeResponse(body, earlier, reply) : body };
    }
    const shown = prepared.wantsJson ? { ...reply, hidesText: true as const } : reply;
    ({ sent, response } = await continued(exchange, recorder, budget, { sent, reply: shown, round }));
    earlier.push(shown);
  }
}

/** Reads a 200 response. Returns undefined for one that is relayed unread, because nothing in it is known to be private. */
function readReply(exchange: Exchange, body: Uint8Array, privateTools: PrivateTools): ModelReply | undefined {
  try {
    return exchange.codec.readResponse(body, privateTools);
  } catch (error) {
    // The response has an unknown shape.
    if (LeporelloError.isInstance(error) && error.code === 'bad-response') return undefined;
    const text = new TextDecoder().decode(body);
    if ([...privateTools].some((name) => text.includes(name))) throw error;
    unread(exchange, error);
    return undefined;
  }
}

/**
 * Answers the recalls of a round, and sends the request that goes on after it. If the provider finds that too long, the request is sent once more with
 * a sentence in place of the answers: a window that is unknown, or smaller than assumed, must not cost the client its reply.
 */
async function continued(
  exchange: Exchange,
  recorder: HiddenRecallRecorder,
  budget: RecallBudget,
  { sent, reply, round }: { readonly sent: Uint8Array; readonly reply: ModelReply; readonly round: number },
): Promise<{ readonly sent: Uint8Array; readonly response: UpstreamResponse }> {
  const { codec } = exchange;
  const send = async (answers: readonly RecallAnswer[]) => {
    recorder.answered(reply, answers);
    const next = codec.continueWith(sent, reply, answers);
    return { sent: next, response: await sendContinuation(exchange, next) };
  };
  const answers = await answersTo(exchange, reply, round, budget);
  const first = await send(answers);
  const { response } = first;
  if (response.status < 400 || response.status >= 500) return first;
  const { text, body } = await peekBody(response.body, maxErrorBytes);
  if (text === undefined || !codec.overflowIn(response.status, text))
    return { ...first, response: { ...response, body } };
  exchange.note.problem('what was recalled did not fit into the window');
  budget.exhaust();
  return send(withoutLongAnswers(answers));
}

/** Ends the stream when the provider refuses to continue: the client gets the provider's own error. */
async function refused(
  exchange: Exchange,
  relay: StreamRelay,
  recorder: HiddenRecallRecorder,
  { status, body }: UpstreamResponse,
): Promise<readonly Uint8Array[]> {
  const { text, body: rest } = await peekBody(body, maxErrorBytes);
  if (text === undefined) await discardBody(rest);
  const problem = `The upstream answered ${status} to a continuation.`;
  return ended(exchange, relay, recorder, { status, problem, said: text });
}

async function endedByError(
  exchange: Exchange,
  relay: StreamRelay,
  recorder: HiddenRecallRecorder,
  error: unknown,
): Promise<readonly Uint8Array[]> {
  if (LeporelloError.isInstance(error))
    return ended(exchange, relay, recorder, { status: 502, problem: error.message });
  exchange.failed(error);
  return ended(exchange, relay, recorder, {
    status: 500,
    problem: 'Its own code failed; its log says where.',
  });
}

async function ended(
  exchange: Exchange,
  relay: StreamRelay,
  recorder: HiddenRecallRecorder,
  {
    status,
    problem,
    said,
  }: { readonly status: number; readonly problem: string; readonly said?: string | undefined },
): Promise<readonly Uint8Array[]> {
  // A client that disconnects also makes the upstream fail; it may keep what it has received so far.
  await (exchange.hasLeft() ? recorder.disconnected() : recorder.forget());
  exchange.note.problem(problem);
  const message = `Leporello could not continue the response after a recall. ${problem}`;
  return relay.fail({ status, message }, said === undefined ? undefined : new TextEncoder().encode(said));
}

function sumUsage(replies: readonly ModelReply[]): Usage | undefined {
  const known = replies.flatMap((reply) => reply.usage ?? []);
  // A sum loses details of what was sent, so the usage of a single reply is returned unchanged.
  return known.length > 1 ? known.reduce(addedUsage, noUsage) : known[0];
}

// Recorder of hidden recalls: it collects those of one reply, and stores them for later requests of the conversation

/** Records the hidden recalls of one reply. */
export interface HiddenRecallRecorder {
  /** Adds a round: the model's recalls and their answers. Other answers to the same recalls replace these. */
  answered(reply: ModelReply, answers: readonly RecallAnswer[]): void;
  /** Stores the rounds of a complete reply; `last` is the model's last part of it. The client gets the end of the reply after this. */
  complete(last: ModelReply): Promise<void>;
  /**
   * Stores the rounds of a reply whose end was not read, as when the client disconnected: its history may contain the reply so far. Does nothing
   * after `complete` or `forget`.
   */
  disconnected(): Promise<void>;
  /** Drops the rounds after an error: the client does not keep the reply. A reply that the provider keeps can still be continued. */
  forget(): Promise<void>;
}

/** Answer to a recall that was not answered before the reply ended. The model reads it. */
const unanswered = 'Memory was not read: the answer had ended. Go on with what is there.';

/**
 * Opens a recorder. Its methods never reject, and wait for the store for at most `waitMs` milliseconds: while the store fails or hangs,
 * only this process remembers the recalls. A failure is noted, also a late one. `knows` says whether the client knows the id of the first
 * or of the last round of a reply that the provider keeps.
 */
export function recordHiddenRecalls(
  prepared: Pick<PreparedRequest, 'remember' | 'keepReply'>,
  note: { problem(text: string): void },
  knows: 'first' | 'last',
  waitMs = storeWaitMs,
): HiddenRecallRecorder {
  let rounds: RecallRound[] = [];
  let known: string | undefined;
  let kept: KeptReply | undefined;

  /** Notes a reply that a later request can continue. */
  function reached({ replyId }: ModelReply, pendingAnswers: readonly RecallAnswer[]): void {
    if (replyId === undefined) return;
    if (knows === 'last') known = replyId;
    else known ??= replyId;
    kept = { name: replyId, pendingAnswers };
  }

  async function keep(closing: Uint8Array | undefined): Promise<void> {
    const records: Promise<void>[] = [];
    if (rounds.length > 0) records.push(prepared.remember({ rounds, closing }));
    if (known !== undefined && kept && (kept.name !== known || kept.pendingAnswers.length > 0))
      records.push(prepared.keepReply(known, kept));
    rounds = [];
    kept = undefined;
    if (records.length === 0) return;
    const written = Promise.all(records).catch(() =>
      note.problem('the hidden recalls could not be stored for later requests'),
    );
    await waitAtMost(written, waitMs);
  }

  return {
    answered(reply, answers) {
      const { turn, hidesText } = reply;
      if (rounds.at(-1)?.turn === turn) rounds.pop();
      rounds.push({ turn, answers, ...(hidesText && { hidesText }) });
      reached(reply, answers);
    },
    complete(last) {
      const isAnswered = rounds.at(-1)?.turn === last.turn;
      if (!isAnswered)
        reached(
          last,
          last.recalls.map((call) => ({ call, text: unanswered })),
        );
      return keep(recallsWithCalls(last) ? undefined : last.turn);
    },
    disconnected: () => keep(undefined),
    forget() {
      rounds = [];
      return keep(undefined);
    },
  };
}
