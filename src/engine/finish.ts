/**
 * Finishes the body of a request: compares it with the previous request of its conversation, and marks it for the provider's cache when that
 * pays off. It adds folded lines to the report of an edit that failed without them. It sends nothing itself.
 */
import { type Caches, createCaches } from '../caches.ts';
import type { CacheMarks, Codec } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { type Edit, lastMessageOf, leavesOriginals } from '../conversation/edit.ts';
import { perMessage, textOf } from '../conversation/messages.ts';
import { runInSlices, type Steps } from '../conversation/steps.ts';
import { lastAssistant } from '../conversation/turns.ts';
import { type Draft, type FoldPlan, type PlanInput, draft as draftOf } from './plan.ts';
import { newFault, newProblems, noteSound } from './protect.ts';
import type {
  CacheHabit,
  EngineOptions,
  EngineRequest,
  FinishOptions,
  FoundLastRequest,
  LastSent,
  PackedRequest,
  SentMessages,
  SentRequest,
} from './types.ts';
import type { FoldReport } from '../receipts/receipt.ts';
import { saysTextNotFound } from '../outline/outcome.ts';
import { placesEdited } from '../strategies/lib/editable-texts.ts';
import { type FailureReport, repairsOf } from '../strategies/lib/failed-edits.ts';
import type { Fold, Trial } from '../store/folds.ts';
import type { Demand, Economy } from '../triggers/trigger.ts';

type FinishInput = {
  readonly request: { readonly codec: Codec; readonly refusal?: object };
  /** The conversation as the client sent it. */
  readonly conversation: Conversation;
  /** The prefix hashes of the client's conversation. */
  readonly clientLinks: readonly string[];
  /** The conversation with hidden recalls, which the draft was made of. */
  readonly fullConversation: Conversation;
  /** The draft to send. Its `tokens` are those that the provider is expected to count. */
  readonly draft: Draft;
  readonly prices: Pick<Economy, 'read' | 'write' | 'minCachedTokens'> | undefined;
  /** True when the provider refused our edits in this conversation. */
  readonly foldingDisabled: boolean;
};

export type FinishedBody = {
  readonly body: Uint8Array;
  readonly report: Pick<FoldReport, 'bytesAfter' | 'cacheMarks' | 'unstableFrom'>;
};

export type BodyFinisher = (input: FinishInput) => FinishedBody;

/** Creates the function that finishes bodies, and records each request in `lastSent`. */
export function createBodyFinisher(
  { cacheMarks = true, clock = () => 0, mode }: FinishOptions,
  lastSent: LastSent,
): BodyFinisher {
  const mayMark = cacheMarks && mode !== 'observe';
  return function finish(input) {
    const { request, conversation, clientLinks, draft, foldingDisabled } = input;
    // If the provider keeps the history, requests of different conversations begin alike.
    if (conversation.previousReplyId !== undefined || clientLinks.length < 2) return finished(draft.body);
    const found = lastSent.find(clientLinks);
    const now = requestAfter(found, input, clock());
    lastSent.record(clientLinks, now, found);
    // A request after a refusal differs from the previous one on purpose.
    if (foldingDisabled || request.refusal) return finished(draft.body);
    const unstable = found && unstableFrom(found.request, now, draft);
    const toMark = mayMark && !conversation.marked ? messagesMarkedIn(input, now) : undefined;
    const { body, sent } = draft;
    // Without edits, `sent` may lack the recall tool, which moves the messages but changes none.
    const marked = toMark && request.codec.cacheMarks?.set(body, toMark, sent.messages);
    return finished(marked?.body ?? body, marked?.count, unstable);
  };
}

function finished(body: Uint8Array, cacheMarks = 0, unstable?: number): FinishedBody {
  return { body, report: { bytesAfter: body.length, cacheMarks, unstableFrom: unstable } };
}

function messagesMarkedIn({ request, draft, prices }: FinishInput, now: SentRequest) {
  return messagesToMark({
    marks: request.codec.cacheMarks,
    prices,
    habit: now.habit,
    tokens: draft.tokens,
    messages: now.messages.length,
    earlier: now.earlier,
  });
}

/** Returns the record of this request, compared with the previous one of its conversation. */
function requestAfter(found: FoundLastRequest | undefined, input: FinishInput, at: number): SentRequest {
  const { request, conversation, fullConversation, draft } = input;
  const now = {
    messages: sentMessages(draft.sent),
    edits: draft.edits,
    length: fullConversation.messages.length,
    preamble: preambleOf(conversation),
    offers: draft.offers,
    at,
  };
  if (!found) return { ...now, earlier: undefined, habit: noCacheHabit };
  const { request: last, isAgain } = found;
  const common = commonMessages(last.messages, now.messages);
  if (isAgain) {
    const { earlier = 0, habit } = last;
    return { ...now, earlier: earlier > 0 && earlier <= common ? earlier : undefined, habit };
  }
  const isAheadIntact = last.preamble === now.preamble && last.offers === now.offers;
  const isIntact = isAheadIntact && common === last.messages.length;
  const wasKept = isIntact && at - last.at < (request.codec.cacheMarks?.keptMs ?? 0);
  return {
    ...now,
    earlier: isIntact ? common : undefined,
    habit: habitAfter(last.habit, wasKept),
  };
}

// Cache marks, for clients that set none and providers that cache only marked content. Marked content costs more the first time and less later, so it
// pays off only if it is read again. The earlier requests of the conversation tell whether it will be.

export const noCacheHabit: CacheHabit = { followed: 0, kept: 0 };

/** The number of requests that the share is averaged over. It is small, so that a pause, or a change of habit, has a short effect. */
const habitLength = 4;

/** Updates the habit with one more request. */
export function habitAfter({ followed, kept }: CacheHabit, wasKept: boolean): CacheHabit {
  const weight = 1 / Math.min(followed + 1, habitLength);
  return { followed: followed + 1, kept: kept + (Number(wasKept) - kept) * weight };
}

/**
 * True when marks are expected to pay off: a mark costs `write` - 1 now, and saves 1 - `read` if the next request finds the marked prefix.
 * If cache writes cost nothing extra, the provider caches by itself.
 */
function marksPay({ kept }: CacheHabit, { read, write }: Pick<Economy, 'read' | 'write'>): boolean {
  return write > 1 && kept * (1 - read) > write - 1;
}

/** Tokens. For unknown models, the largest minimum of any known model is used. */
const defaultMinCachedTokens = 4_096;

type MarkRequest = {
  /** Undefined when the provider caches by itself. */
  readonly marks: CacheMarks | undefined;
  /** Relative to an uncached prompt token; undefined when unknown, and then nothing is marked. */
  readonly prices: Pick<Economy, 'read' | 'write' | 'minCachedTokens'> | undefined;
  readonly habit: CacheHabit;
  /** Tokens of the whole prompt. */
  readonly tokens: number;
  /** The number of messages that are sent, and how many of them the previous request was sent with. */
  readonly messages: number;
  readonly earlier: number | undefined;
};

/**
 * Returns the messages to set a mark after; undefined for none. They are the newest message, for the next request; and the newest message
 * of the previous request, for this one, because providers look for cached prefixes only a short way before a mark.
 */
function messagesToMark(request: MarkRequest): readonly number[] | undefined {
  const { marks, prices, habit, tokens, messages, earlier } = request;
  if (
    !marks ||
    !prices ||
    !marksPay(habit, prices) ||
    tokens < (prices.minCachedTokens ?? defaultMinCachedTokens)
  )
    return undefined;
  return [...new Set([...(earlier ? [earlier] : []), messages])].map((count) => count - 1);
}

// Stability: content that was sent before must be sent the same way again, except for folds. The check only reports.

type ComparedRequest = Pick<SentRequest, 'messages' | 'preamble' | 'offers'>;

/**
 * Returns the index of the first message whose sent bytes changed although the client's message did not. Undefined when there is none, or
 * when a fold explains the change: a new one, or one that another gateway made in between. A
 * later fold may have no more edits than before, because a summary takes in earlier ones. A fold directly after the messages explains a
 * change, too, because some formats join neighboring messages. Returns 0 when the recall tool was removed, or added
 * with nothing to recall, because tools precede all messages.
 */
function unstableFrom(
  last: SentRequest,
  now: ComparedRequest,
  { edits, shrinks }: Pick<Draft, 'edits' | 'shrinks'>,
): number | undefined {
  const isNeeded = () => leavesOriginals(edits) || leavesOriginals(shrinks);
  // If the client changed its tools or its model, the whole prompt is new anyway.
  const isFlipped = last.offers !== now.offers && last.preamble === now.preamble;
  if (isFlipped && !(now.offers && isNeeded())) return 0;
  const common = commonMessages(last.messages, now.messages);
  if (common === last.messages.length) return undefined;
  const editsOnPrefix = edits.filter((edit) => lastMessageOf(edit) <= last.length);
  return isLaterFold(editsOnPrefix, last.edits) ? undefined : common;
}

/** True when the edits are those of a later fold: others than before, and each place that was edited before still is. */
function isLaterFold(edits: readonly Edit[], before: readonly Edit[]): boolean {
  const now = placesEdited(edits);
  const then = placesEdited(before);
  const isGone = (place: string) => now.messages.has(Number(place.slice(0, place.indexOf('.'))));
  const isKept = (kind: 'parts' | 'texts' | 'inputs') =>
    [...then[kind]].every((place) => now[kind].has(place) || isGone(place));
  return (
    [...then.messages].every((message) => now.messages.has(message)) &&
    isKept('parts') &&
    isKept('texts') &&
    isKept('inputs') &&
    JSON.stringify(edits) !== JSON.stringify(before)
  );
}

// The last request of each conversation that this process sent, found by its prefix hashes. It holds digests and counts, never content, and is
// only compared with the next request. After a restart it is empty.

const digestsOf = perMessage<string>();

function sentMessages({ messages }: Pick<Conversation, 'messages'>): SentMessages {
  return { digests: digestsOf(messages, (message) => message.canonical), length: messages.length };
}

/** Returns the number of first messages that are the same in both. */
function commonMessages(one: SentMessages, other: SentMessages): number {
  const length = Math.min(one.length, other.length);
  if (one.digests === other.digests) return length;
  let common = 0;
  while (common < length && one.digests[common] === other.digests[common]) common++;
  return common;
}

/** Identifies the client's model, tools and system text. */
export function preambleOf({ model, preamble }: Pick<Conversation, 'model' | 'preamble'>): string {
  return [model, ...preamble.map((block) => block.digest)].join(' ');
}

export function packedRequest(link: string, { messages, ...request }: SentRequest): PackedRequest {
  const { digests, length } = messages;
  return {
    link,
    text: JSON.stringify({ ...request, messages: { digests: digests.slice(0, length), length } }),
  };
}

/** Creates an empty memory. */
export function createLastSent(caches: Caches = createCaches()): LastSent {
  // A request of another thread stays packed until it is found.
  const requests = caches<SentRequest | string>('last requests', (sent) =>
    typeof sent === 'string' ? sent.length : 60 * sent.messages.length + 150 * sent.edits.length,
  );
  /** The last answer, because a request asks twice. Each `record` forgets it. */
  let latest: { readonly link: string; readonly found: FoundLastRequest | undefined } | undefined;
  function newestOf(clientLinks: readonly string[]): FoundLastRequest | undefined {
    // The first hash covers no message.
    for (let matched = clientLinks.length - 1; matched > 0; matched--) {
      const sent = requests.get(clientLinks[matched]!);
      if (sent === undefined) continue;
      const request = typeof sent === 'string' ? (JSON.parse(sent) as SentRequest) : sent;
      return { request, matched, isAgain: matched === clientLinks.length - 1 };
    }
    return undefined;
  }
  return {
    find(clientLinks) {
      const link = clientLinks.at(-1)!;
      if (latest?.link !== link) latest = { link, found: newestOf(clientLinks) };
      return latest.found;
    },
    record(clientLinks, request, found) {
      latest = undefined;
      if (found) requests.delete(clientLinks[found.matched]!);
      requests.set(clientLinks.at(-1)!, request);
    },
    packed(links) {
      const link = links.findLast((one) => requests.has(one));
      const sent = link === undefined ? undefined : requests.get(link);
      if (sent === undefined) return undefined;
      return typeof sent === 'string' ? { link: link!, text: sent } : packedRequest(link!, sent);
    },
    adopt({ link, text }, replaced) {
      latest = undefined;
      if (replaced !== undefined) requests.delete(replaced);
      requests.set(link, text);
    },
  };
}

// Failed edits. If the newest result says that the text to replace was not found, and the lines that the edit must match were folded, they are added
// to that result: at the end of the request they cost no cache. The addition is recorded with the fold, so that every later request has the same bytes.

/**
 * Adds the folded lines that a failed edit must match to its result. `plan` is the fold of this request, if it needs one. Returns `plan` if there is
 * nothing to add, or if the request would be longer than without folds, or than `atMost` tokens.
 */
export async function withRepairedEdits(
  input: PlanInput,
  start: Draft,
  plan: FoldPlan | undefined,
  atMost: number,
  reports: readonly FailureReport[],
): Promise<FoldPlan | undefined> {
  const from = plan?.draft ?? start;
  const { conversation, codec, counter, slices } = input;
  const edits = await runInSlices(repairsOf(conversation, from, reports), slices);
  if (edits.length === 0) return plan;
  const repaired = await draftOf(input, [...from.edits, ...edits]);
  const isTooLong =
    repaired.tokens > Math.min(atMost, counter.total(conversation)) ||
    repaired.body.length > conversation.body.length;
  if (isTooLong || newProblems(codec.rules, conversation, repaired.sent).length > 0) return plan;
  if (newFault(codec.rules, conversation.body, repaired.body) !== undefined) return plan;
  noteSound(repaired.edits);
  const step = { strategy: 'repair-edit', edits: edits.length, tokensSaved: from.tokens - repaired.tokens };
  return { draft: repaired, steps: [...(plan?.steps ?? []), step] };
}

/** Bytes of the longest text that may report a failed edit. */
const maxReportBytes = 20_000;

/** Returns the results and texts after the newest reply that say that the text of an edit was not found. */
export function* reportsOfFailedEdits(conversation: Conversation): Steps<readonly FailureReport[]> {
  const { body, messages } = conversation;
  const reports: FailureReport[] = [];
  for (let index = (lastAssistant(conversation) ?? messages.length) + 1; index < messages.length; index++) {
    const message = messages[index]!;
    for (const [at, part] of message.parts.entries()) {
      yield;
      if (part.type !== 'tool-result' && (part.type !== 'text' || message.role !== 'user')) continue;
      for (const [text, span] of part.texts.entries()) {
        if (span.end - span.start > maxReportBytes) continue;
        const report = textOf(body, message, span);
        if (saysTextNotFound(report)) reports.push({ at: { message: index, part: at, text }, report });
      }
    }
  }
  return reports;
}

// The holdout experiment.

/**
 * Returns the experiment that a conversation is part of. It enters when it would be folded for the first time without having to be, because
 * that is where the arms part. Its folds record that, so all requests that begin with its messages agree.
 */
export function trialOf(
  { holdout, mode }: Pick<EngineOptions, 'holdout' | 'mode'>,
  { tenant, session, refusal }: EngineRequest,
  { memory: { clientLinks }, found, start, input }: TrialInputs,
  { demand, isPlanned, stored }: Decided & { readonly stored: { readonly foundFolds: StoredFolds } },
): Trial | undefined {
  const known = knownTrial(found, stored.foundFolds);
  if (known || !holdout || refusal || mode === 'observe') return known;
  // Once folded, a conversation is the same in both arms; without its history, it begins like many others.
  const isFirst = start.edits.length === 0 && !found?.fold.edits.length;
  if (!isFirst || input.conversation.previousReplyId !== undefined) return undefined;
  if (!isPlanned || demand?.force !== false) return undefined;
  const drawn = holdout.draw(tenant, `holdout ${session ?? clientLinks.at(-1)!}`);
  return { unit: drawn.toString(36), isControl: drawn < holdout.rate, at: clientLinks.length - 1 };
}

/** Returns the experiment that the conversation is part of already: also that of a fold that is not repeated now. */
export function knownTrial(found: TrialInputs['found'], { folds }: StoredFolds): Trial | undefined {
  return found?.fold.trial ?? folds.find(({ fold }) => fold.trial)?.fold.trial;
}

type StoredFolds = { readonly folds: readonly { readonly fold: Pick<Fold, 'trial'> }[] };

type Decided = { readonly demand: Demand | undefined; readonly isPlanned: boolean };

type TrialInputs = {
  readonly memory: { readonly clientLinks: readonly string[] };
  readonly found: { readonly fold: Pick<Fold, 'trial' | 'edits'> } | undefined;
  readonly start: Pick<Draft, 'edits'>;
  readonly input: Pick<PlanInput, 'conversation'>;
};
