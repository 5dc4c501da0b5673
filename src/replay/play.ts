/**
 * Replays one recorded conversation under one policy, request by request, and adds up what it took.
 *
 * At each reply of the model the policy makes the context that is sent. What the recorded calls of that reply used and the context does
 * not show has to be had back before the reply can be made:
 * - from memory, where the policy has one: the model calls the recall tool, once for each original that is missing. The answer comes from
 *   the real recall code, goes into a continuation that the codec writes, and is remembered as a hidden recall, so that it stands in later
 *   requests where the engine puts it. A value that `read_memory` does not bring is lost.
 * - else by running the tool again: call and whole result go behind what was sent, and are part of the conversation as the client has
 *   it, where the policy sees them in every later request. The value counts as lost all the same: in life the file may have changed, and
 *   nothing told the model to ask.
 * Each of these is a round trip with a short reply. What is asked for is what the recording used, and of several originals that hold it
 * the newest is asked: a model may ask for less or for more, and may err in which.
 */
import type { ReadContext } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { sha256 } from '../store/digest.ts';
import { createBill } from './bill.ts';
import { createClient } from './client.ts';
import { messageText, holds } from './needs.ts';
import type { Policy, SentContext } from './policies.ts';
import { recallMissing } from './recall-missing.ts';
import type { Need, RecordedStep, Recording } from './recording.ts';
import { rerunMissing } from './rerun-missing.ts';
import { addStep, noTally, type StepFigures, type Tally } from './tally.ts';

/** Tokens of a reply that is nothing but a recall, or a tool run again. */
const callTokens = 60;

/** Recordings say no times, only what was not cached any more: longer than any provider keeps it, and shorter. */
const pauseMs = 7 * 24 * 60 * 60_000;
const workMs = 10_000;

export type PlayOptions = {
  /** Tokens: to tell requests that no provider would take. */
  readonly window: number;
  /** Has nothing back, and goes on as recorded. Default false. */
  readonly doesWithout?: boolean;
};

export async function play(
  recording: Recording,
  policy: Policy,
  { window, doesWithout = false }: PlayOptions,
): Promise<{ readonly tally: Tally; readonly contexts: readonly number[] }> {
  const { codec } = recording.format;
  const reading: ReadContext = { digest: sha256, outlines: new Map() };
  const read = (body: Uint8Array): Conversation => codec.read(body, reading);
  const session = policy.open(codec);
  const client = createClient(recording);
  const sight = createSight(recording);
  const bill = createBill(recording.counter);

  async function bringBack(step: RecordedStep, sent: SentContext, missing: readonly Need[]) {
    if (missing.length === 0 || doesWithout) return { bodies: [], lost: missing.length };
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
    const { bodies, lost } = await bringBack(step, sent, missing);
    return {
      first,
      later: bodies.map((body) => bill(read(body))),
      replyTokens: step.replyTokens,
      needs: step.needs.length,
      missing: missing.length,
      lost,
      isOverWindow: first.context > window,
      isFold: (sent.prepared?.report.steps ?? []).some(({ edits }) => edits > 0),
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

interface Sight {
  shows(context: Conversation, need: Need): boolean;
}

function createSight({ conversation }: Recording): Sight {
  const digests = conversation.messages.map(({ digest }) => digest);
  const recorded = new Set(digests);
  const texts = new Map<string, string>();
  const standing = new WeakMap<
    Conversation,
    { readonly has: ReadonlySet<string>; readonly anew: readonly string[] }
  >();

  function standingIn(context: Conversation) {
    const known = standing.get(context);
    if (known) return known;
    const anew = context.messages
      .filter(({ digest }) => !recorded.has(digest))
      .map((message) => {
        const text = texts.get(message.digest) ?? messageText(context, message);
        texts.set(message.digest, text);
        return text;
      });
    const seen = { has: new Set(context.messages.map(({ digest }) => digest)), anew };
    standing.set(context, seen);
    return seen;
  }

  return {
    shows(context, need) {
      const { has, anew } = standingIn(context);
      return (
        need.in.some((index) => has.has(digests[index]!)) || anew.some((text) => holds(text, need.value))
      );
    },
  };
}
