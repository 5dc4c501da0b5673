/**
 * Replays a recorded conversation under several policies, request by request, and adds up the tokens.
 *
 * At each reply of the model, the policy makes the context that is sent. Values that the recorded calls of that reply used and the context
 * does not show must be recovered before the reply:
 * - By recall, if the policy keeps originals: the model calls the recall tool, once per missing original. The real recall code answers, the
 *   codec writes the continuation, and the exchange is remembered as a hidden recall, so that the engine puts it back in later requests. A
 *   value that `read_memory` does not return is lost.
 * - Otherwise by running the tool again: the call and its whole result are appended and become part of the client's conversation, where
 *   the policy sees them in every later request. The value counts as lost all the same: in practice the file may have changed, and nothing
 *   made the model ask.
 * Each of these is a round trip with a short reply. The query is what the recording used; of several originals that contain it, the newest
 * is read. A real model may ask for less or more, and may pick the wrong original.
 */
import type { ReadContext } from '../codecs/codec.ts';
import { createSeenBodies } from '../codecs/earlier-bodies.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { tokensFoldedBy } from '../receipts/totals.ts';
import { commonLength, sha256 } from '../store/encrypted-store.ts';
import { type Client, createClient, rerunMissing } from './client.ts';
import type { Policy, SentContext } from './policies.ts';
import { type Sight, createSight, recallMissing } from './recall-missing.ts';
import type { Need, RecordedStep, Recording } from './recording.ts';
import { addStep, createBill, noTally, type StepFigures, type Tally, type Tokens } from './tally.ts';

export type Played = { readonly id: string; readonly source: string; readonly plays: readonly Play[] };

export type Play = {
  readonly policy: string;
  readonly tally: Tally;
  /** Tokens if missing values are never recovered; only for policies that keep no originals. */
  readonly careless: Tokens | undefined;
  /** Tokens of each request. */
  readonly contexts: readonly number[];
};

export type ReplayOptions = {
  /** Context window in tokens. */
  readonly window: number;
};

/** Replays a conversation under each policy. */
export async function replay(
  recording: Recording,
  policies: readonly ReplayPolicy[],
  { window }: ReplayOptions,
): Promise<Played> {
  const plays: Play[] = [];
  for (const policy of policies) {
    const { tally, contexts } = await play(recording, policy, { window });
    plays.push({
      policy: policy.name,
      tally,
      contexts,
      careless: await carelessTokens(recording, policy, tally, window),
    });
  }
  return { id: recording.id, source: recording.source, plays };
}

/** Replays again without recovery: results of repeated tool calls stay in the conversation, so their tokens cannot just be subtracted. */
async function carelessTokens(
  recording: Recording,
  policy: ReplayPolicy,
  tally: Tally,
  window: number,
): Promise<Tokens | undefined> {
  if (policy.hasMemory) return undefined;
  if (tally.recalls === 0) return tally.tokens;
  const { tally: careless } = await play(recording, policy, { window, skipsRecovery: true });
  return careless.tokens;
}

/** Tokens of a reply that is only a recall, or only a repeated tool call. */
const callTokens = 60;

/** Pauses between requests. Recordings contain no times, only where the cache had expired: longer than any cache lifetime, and shorter. */
const pauseMs = 7 * 24 * 60 * 60_000;
const workMs = 10_000;

type PlayOptions = {
  /** Context window in tokens, to count requests that a provider would reject. */
  readonly window: number;
  /** Recovers nothing, and continues as recorded. Default false. */
  readonly skipsRecovery?: boolean;
};

/** Replays one conversation under one policy. */
export async function play(
  recording: Recording,
  policy: ReplayPolicy,
  { window, skipsRecovery = false }: PlayOptions,
): Promise<{ readonly tally: Tally; readonly contexts: readonly number[] }> {
  const { codec } = recording.format;
  // Each request continues the one before, so only its new bytes are read.
  const seen = createSeenBodies({ commonLength });
  const reading: ReadContext = { digest: sha256, blocks: new Map(), seen };
  const read = (body: Uint8Array): Conversation => codec.read(body, reading);
  const session = policy.open(codec);
  const client = createClient(recording);
  const own = policy.recovery?.(recording, client);
  const sight = own?.sight ?? createSight(recording);
  const bill = createBill(recording.counter);

  async function recover(step: RecordedStep, sent: SentContext, missing: readonly Need[]) {
    if (missing.length === 0 || skipsRecovery) return { bodies: [], lost: missing.length };
    if (own) return own.recover(step, sent, missing);
    if (sent.prepared) return recallMissing({ recording, step, sent, prepared: sent.prepared, missing });
    return { ...rerunMissing({ recording, client, step, sent, missing }), lost: missing.length };
  }

  async function playStep(step: RecordedStep): Promise<StepFigures> {
    client.reach(step.at);
    now += step.isCold ? pauseMs : workMs;
    const sent = await session.send(client.request(read, now));
    const context = read(sent.body);
    const first = bill(context, step.isCold);
    const missing = step.needs.filter((need) => !sight.shows(context, need));
    const { bodies, lost } = await recover(step, sent, missing);
    const steps = sent.prepared?.report.steps ?? [];
    return {
      first,
      fixedTokens: context.preamble.reduce((sum, block) => sum + recording.counter.block(context, block), 0),
      folded: tokensFoldedBy({ steps }),
      later: bodies.map((body) => bill(read(body))),
      replyTokens: step.replyTokens,
      forSummary: sent.forSummary,
      needs: step.needs.length,
      missing: missing.length,
      lost,
      isOverWindow: first.context > window,
      isFold: steps.some(({ edits }) => edits > 0),
      isFailed: sent.prepared?.outcome.status === 'failed',
      isUnfit: sent.prepared?.report.unfit !== undefined,
    };
  }

  let now = 0;
  let tally = noTally;
  const contexts: number[] = [];
  for (const step of recording.steps) {
    const figures = await playStep(step);
    tally = addStep(tally, figures, callTokens);
    contexts.push(figures.first.context);
  }
  return { tally, contexts };
}

/** A policy that may recover missing values in another way than the replay does. */
export type ReplayPolicy = Policy & {
  readonly recovery?: (recording: Recording, client: Client) => Recovery;
};

/** A way of recovering missing values, for one conversation. */
export type Recovery = {
  readonly sight: Sight;
  /** Returns the continuations, and the number of values that nothing returned. */
  recover(
    step: RecordedStep,
    sent: SentContext,
    missing: readonly Need[],
  ): Promise<{ readonly bodies: readonly Uint8Array[]; readonly lost: number }>;
};
