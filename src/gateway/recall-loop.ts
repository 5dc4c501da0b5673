/**
 * Answers the model's private recalls and asks it to go on, until it has something for the client. For complete responses and for
 * live streams alike: in a stream only the private call is held back, everything else goes on as it comes.
 */
import {
  type Codec,
  type ModelReply,
  type RecallAnswer,
  type StreamRelay,
  type ReplyUsage,
  awaitsRecall,
  recallsBeside,
} from '../codecs/codec.ts';
import { answerRecall } from '../engine/answer-recall.ts';
import type { Prepared } from '../engine/prepared.ts';
import { LeporelloError } from '../errors.ts';
import type { RecallReport } from '../receipts/receipt.ts';
import { addedUsage, noUsage } from '../receipts/usage.ts';
import { type HiddenRecallRecorder, recordHiddenRecalls } from './hidden-recall-recorder.ts';
import type { UpstreamResponse } from './http/http.ts';
import { peekBody, peekBytes } from './http/body.ts';
import { type Continuing, sendContinuation } from './send-with-retries.ts';
import { splitEvents } from './http/sse.ts';

/** One model call with all it needs to be continued. */
export type Exchange = Continuing & {
  readonly codec: Codec;
  readonly prepared: Prepared;
  readonly recall: RecallLimits;
  readonly note: ExchangeNotes;
};

/** What is told to the receipt while the exchange goes on. */
export type ExchangeNotes = {
  recalled(report: RecallReport): void;
  /** At the end of each round: what all rounds so far used. */
  used(usage: ReplyUsage | undefined): void;
  upstreamStatus(status: number): void;
  problem(text: string): void;
};

/** A response of at most this size (bytes) is read whole to look for calls; a model's reply is far smaller. A larger one goes on unread. */
const maxResponseBytes = 64 * 1024 * 1024;

/** The bytes for the client of a streamed response, as they come. Errors of the first response break the stream off. */
export async function* relayStream(exchange: Exchange, first: UpstreamResponse): AsyncGenerator<Uint8Array> {
  const relay = exchange.codec.openStream({ recallTool: exchange.prepared.recallTool });
  const recorder = recordHiddenRecalls(exchange.prepared, exchange.note, 'first');
  try {
    yield* relayRounds(exchange, first, relay, recorder);
  } finally {
    await recorder.left();
  }
}

async function* relayRounds(
  exchange: Exchange,
  first: UpstreamResponse,
  relay: StreamRelay,
  recorder: HiddenRecallRecorder,
): AsyncGenerator<Uint8Array> {
  const { codec, prepared, note } = exchange;
  const budget = openBudget(exchange);
  let sent = prepared.body;
  let response = first;
  for (let round = 1; ; round++) {
    let isRead = true;
    try {
      for await (const event of splitEvents(response.body)) {
        isRead &&= !event.isPiece;
        yield* relay.take(event);
      }
    } catch (error) {
      // What broke before any recall breaks for the client as it would have without us.
      if (round === 1) throw error;
      yield* await failed(exchange, relay, recorder, error);
      return;
    }
    const end = relay.end();
    note.used(relay.usage());
    if (!isRead) note.problem('an event of the response was too long to be read');
    if (end.status === 'done') {
      if (end.reply && isRead) await completed(exchange, recorder, end.reply, round, budget);
      else await (end.reply ? recorder.complete(end.reply) : recorder.left());
      yield* end.tail;
      return;
    }
    // A reply that was not read whole gives no turn to continue from.
    if (budget.isSpent(round) || !isRead) {
      await recorder.complete(end.reply);
      yield* relay.finish();
      return;
    }
    try {
      const answers = await answersTo(exchange, end.reply, round, budget);
      recorder.answered(end.reply, answers);
      sent = codec.continueWith(sent, end.reply, answers);
      response = await sendContinuation(exchange, sent);
      if (response.status !== 200) {
        yield* await refused(exchange, relay, recorder, response);
        return;
      }
    } catch (error) {
      yield* await failed(exchange, relay, recorder, error);
      return;
    }
  }
}

/**
 * Recalls beside the client's own calls are answered now, while what they ask for is at hand, and told to the model when the client's
 * results come back.
 */
async function completed(
  exchange: Exchange,
  recorder: HiddenRecallRecorder,
  last: ModelReply,
  round: number,
  budget: RecallBudget,
): Promise<void> {
  if (recallsBeside(last) && exchange.codec.isWhole(last)) {
    recorder.answered(last, await answersTo(exchange, last, round, budget));
  }
  await recorder.complete(last);
}

/** The body for the client of a complete response; `response` is the last upstream response, whose status and headers go with it. */
export async function relayWhole(
  exchange: Exchange,
  first: UpstreamResponse,
): Promise<{ readonly response: UpstreamResponse; readonly body: Uint8Array | AsyncIterable<Uint8Array> }> {
  const { codec, prepared, note } = exchange;
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
      return { response, body: peeked.body };
    }
    const body = peeked.bytes;
    const reply = response.status === 200 ? readReply(codec, body, prepared.recallTool) : undefined;
    if (!reply) return { response, body };
    note.used(sumUsage([...earlier, reply]));
    if (!codec.isWhole(reply) || !awaitsRecall(reply) || budget.isSpent(round)) {
      await completed(exchange, recorder, reply, round, budget);
      return { response, body: codec.writeResponse(body, earlier, reply) };
    }
    const answers = await answersTo(exchange, reply, round, budget);
    recorder.answered(reply, answers);
    sent = codec.continueWith(sent, reply, answers);
    earlier.push(reply);
    response = await sendContinuation(exchange, sent);
  }
}

function readReply(codec: Codec, body: Uint8Array, recallTool: string | undefined): ModelReply | undefined {
  try {
    return codec.readResponse(body, recallTool);
  } catch (error) {
    // A 200 in a shape nobody knows is the provider's business and the client's.
    if (LeporelloError.isInstance(error) && error.code === 'bad-response') return undefined;
    throw error;
  }
}

async function answersTo(
  { prepared, note }: Exchange,
  reply: ModelReply,
  round: number,
  budget: RecallBudget,
): Promise<readonly RecallAnswer[]> {
  const most = budget.forEach(round, reply.recalls.length);
  budget.spend(new TextDecoder().decode(reply.turn));
  const answers: RecallAnswer[] = [];
  for (const call of reply.recalls) {
    const { text, found, tokens } =
      typeof most === 'string'
        ? { text: most, found: false, tokens: prepared.counter?.count(most) ?? most.length }
        : await answerRecall(prepared, call.argumentsJson, most);
    budget.spend(text);
    note.recalled({ round, found, tokens });
    answers.push({ call, text });
  }
  return answers;
}

/** The provider does not go on: the client gets the provider's own error. */
async function refused(
  exchange: Exchange,
  relay: StreamRelay,
  recorder: HiddenRecallRecorder,
  { status, body }: UpstreamResponse,
): Promise<readonly Uint8Array[]> {
  const { text, body: rest } = await peekBody(body, maxErrorBytes);
  if (text === undefined) await rest[Symbol.asyncIterator]().return?.();
  const problem = `The upstream answered ${status} to a continuation.`;
  return ended(exchange, relay, recorder, { status, problem, said: text });
}

/** Error bodies are a few hundred bytes. */
const maxErrorBytes = 1024 * 1024;

async function failed(
  exchange: Exchange,
  relay: StreamRelay,
  recorder: HiddenRecallRecorder,
  error: unknown,
): Promise<readonly Uint8Array[]> {
  const problem = LeporelloError.isInstance(error) ? error.message : 'unexpected error in a continuation';
  return ended(exchange, relay, recorder, { status: 502, problem });
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
  // A client that left makes the upstream fail, too; what it has got by then it may keep.
  await (exchange.hasLeft() ? recorder.left() : recorder.forget());
  exchange.note.problem(problem);
  const message = `Leporello could not continue the response after a recall. ${problem}`;
  return relay.fail({ status, message }, said === undefined ? undefined : new TextEncoder().encode(said));
}

function sumUsage(replies: readonly ModelReply[]): ReplyUsage | undefined {
  const known = replies.flatMap((reply) => reply.usage ?? []);
  // A sum does not say what was sent: the usage of one reply stays as it is.
  return known.length > 1 ? known.reduce(addedUsage, noUsage) : known[0];
}

export type RecallLimits = {
  /** Rounds of recalls in one request; in one more the model is told that there are no more. */
  readonly maxRounds: number;
  /** Tokens one answer may have. */
  readonly maxTokens: number;
};

export interface RecallBudget {
  /** Tokens each of so many answers may have, or what to tell the model instead. */
  forEach(round: number, calls: number): number | string;
  /** Takes a text that the request grows by. */
  spend(text: string): void;
  /** True when the model goes on calling after it was told to stop. */
  isSpent(round: number): boolean;
}

/** Fewer tokens than this hold no more than the way to the rest. */
const leastAnswer = 200;

export function openBudget({
  prepared,
  recall,
}: {
  readonly prepared: Prepared;
  readonly recall: RecallLimits;
}): RecallBudget {
  let left = prepared.room ?? Number.POSITIVE_INFINITY;
  return {
    forEach(round, calls) {
      if (round > recall.maxRounds)
        return 'No more memory can be read in this answer. Go on with what is there.';
      const each = Math.min(recall.maxTokens, Math.floor(left / calls));
      return each < leastAnswer
        ? 'The context window has no room left to read memory. Go on with what is there.'
        : each;
    },
    spend(text) {
      left -= prepared.counter?.count(text) ?? text.length;
    },
    isSpent: (round) => round > recall.maxRounds + 1,
  };
}
