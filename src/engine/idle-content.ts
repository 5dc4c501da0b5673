/**
 * Finds idle content: large texts, and complete steps, that are so many requests old that the model is unlikely to use them again; results that were fetched
 * again count as used for longer. It depends on the conversation alone, as every instance must find the same, and uses remembered counts, as it runs on every request.
 */
import { openNotes } from '../caches.ts';
import type { Message, Part, Span } from '../conversation/conversation.ts';
import { mediaOf, perMessage } from '../conversation/messages.ts';
import { runSteps, type Steps } from '../conversation/steps.ts';
import { type Edit, lastMessageOf } from '../conversation/edit.ts';
import { type KindOfStep, kindOfStep, kindsSoFar, sparingReads } from './at-work.ts';
import { repliesBegun, unitsOf, userSpeaks } from '../conversation/turns.ts';
import { groupBy } from '../es2024.ts';
import type { Draft, PlanInput } from './plan.ts';
import { openMedia, stubTokens, tokensOfTexts } from './protect.ts';
import { type Shrink, savedByMessage } from './references.ts';
import {
  type EditedPlaces,
  isDroppable,
  longArguments,
  placesEdited,
  type ToolCallPart,
} from '../strategies/lib/editable-texts.ts';
import type { EvictionCandidate, KeepForRequests, RentLimit } from '../triggers/trigger.ts';

/** The approximate tokens of a part with a stub in it. */
const stubbedPartTokens = 90;

/** Returns the candidates for eviction in the order of the conversation. There are none without a recall tool. */
export function idleContent(
  planned: PlanInput,
  start: Draft,
  keepForRequests: KeepForRequests,
  steps: IdleSteps = runSteps(finishedSteps(planned, start)),
): readonly EvictionCandidate[] {
  const input = { ...planned, protects: sparingReads(planned) };
  const { conversation, counter, protects, recallTool } = input;
  if (!recallTool) return [];
  const { messages } = conversation;
  const edited = placesEdited(start.edits);
  const behind = tokensBehind(start, counter);
  const candidates: EvictionCandidate[] = [];
  const saved = savedByMessage(start.shrinks);
  const counts = counter.messages(conversation);
  const tokensOf = (index: number) => counts[index]! - (saved.get(index) ?? 0);
  const references = referencesIn(start.shrinks);
  const media = runSteps(openMedia(input, edited));
  const isAgain = unitsFetchedAgain(input);
  // Some formats divide a reply into several messages. All are as old as the first.
  let repliesAfter = 0;
  const begins = repliesBegun(messages);
  for (let index = messages.length - 1; index >= 0; index--) {
    if (begins[index]) repliesAfter++;
    if (edited.messages.has(index)) continue;
    const message = messages[index]!;
    const isReply = message.role === 'assistant';
    const requests = repliesAfter + (isReply && !begins[index] ? 1 : 0);
    if (protects.message(index)) {
      references.keep(index);
      continue;
    }
    const minAge = isAgain.has(index) ? timesFetchedAgain * keepForRequests.results : 0;
    const step = steps[index];
    const editKept = step?.kind === 'edits' ? keepForRequests.editArguments : keepForRequests.arguments;
    const textAge = requests - Math.max(minAge, isReply ? editKept : keepForRequests.results);
    const texts =
      textAge <= 0
        ? 0
        : isReply
          ? idleArguments(input, edited, message) - references.all(index)
          : Math.max(
              references.minimum(index),
              idleResults(input, edited, message, tokensOf) - references.returning(index),
            ) + (media.get(index) ?? 0);
    if (texts > 0 && textAge > 0)
      candidates.push({
        evicts: 'texts',
        message: index,
        tokens: texts,
        requests: textAge,
        behind: behind(messages.length - index),
      });
    // The results of a step were sent with the request after its reply.
    const stepAge = requests - (isReply ? 1 : 0);
    const age = step?.isFree ? stepAge - Math.max(minAge, keepForRequests[step.kind]) : 0;
    if (step && age > 0) {
      const left =
        remainingAfterEdits(input, edited, message, tokensOf) - references.returning(index) - texts;
      if (left > 0) {
        const exchange = step.messages.reduce((sum, one) => sum + tokensOf(one.index), 0);
        const rest = { message: index, tokens: left, requests: age, behind: behind(messages.length - index) };
        candidates.push(
          step.kind === 'recalls' ? { evicts: 'recall', exchange, ...rest } : { evicts: 'message', ...rest },
        );
      }
    }
    if (texts === 0 && age <= 0) references.keep(index);
  }
  return candidates.toReversed();
}

/** A result that was fetched again counts as used for so many times as many requests as others. */
const timesFetchedAgain = 2;

/** Returns the messages of the steps whose results were fetched again. */
function unitsFetchedAgain({ conversation, fetchedAgain: all = [] }: PlanInput): ReadonlySet<number> {
  const again = new Set(all.map(({ message }) => message));
  if (again.size === 0) return again;
  const units = unitsOf(conversation).filter((unit) => unit.some(({ index }) => again.has(index)));
  return new Set(units.flat().map(({ index }) => index));
}

/** A step: a reply with the results of its calls. It is dropped as a unit. */
type IdleStep = {
  readonly kind: KindOfStep;
  readonly messages: readonly Message[];
  /** True if the step is complete and may be dropped. */
  readonly isFree: boolean;
};

/** The steps that may be dropped, by the index of each of their messages. */
export type IdleSteps = readonly (IdleStep | undefined)[];

const messagesPerStep = 500;

/** Finds the complete steps that may be dropped. It runs on every request, in one pass. */
export function* finishedSteps(input: PlanInput, { edits }: Pick<Draft, 'edits'>): Steps<IdleSteps> {
  const { conversation, codec, recallTool } = input;
  if (!recallTool) return [];
  const protects = sparingReads(input);
  const edited = placesEdited(edits).messages;
  const isFree = (message: Message) =>
    !edited.has(message.index) &&
    isDroppable(protects, message) &&
    !userSpeaks(conversation, message) &&
    codec.rules.mayEdit(conversation, { kind: 'drop-message', message: message.index, memory: undefined });
  const steps = Array.from<IdleStep | undefined>({ length: conversation.messages.length });
  let pauseAt = messagesPerStep;
  for (const messages of unitsOf(conversation)) {
    if (messages[0]!.index >= pauseAt) {
      yield;
      pauseAt += messagesPerStep;
    }
    if (messages[0]!.role !== 'assistant' || edited.has(messages[0]!.index)) continue;
    const kind = kindOfStep(conversation, messages, protects);
    // A step with an unanswered call is not complete.
    const isComplete = messages.length > 1 || kind === 'recalls' || kind === 'replies';
    const step = { kind, messages, isFree: isComplete && messages.every(isFree) };
    for (const { index } of messages) steps[index] = step;
  }
  return steps;
}

/** Returns the tokens that stubs would save in the results of this message. */
function idleResults(
  input: PlanInput,
  edited: EditedPlaces,
  message: Message,
  tokensOf: (index: number) => number,
): number {
  const { protects, minResultBytes: minBytes } = input;
  const { index, parts } = message;
  let [bytes, texts] = [0, 0];
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at]!;
    if (part.type !== 'tool-result' || protects.part(index, at) || protects.recalled(index, at)) continue;
    for (let text = 0; text < part.texts.length; text++) {
      const { start, end } = part.texts[text]!;
      if (end - start - 2 < minBytes) continue;
      if (edited.texts.size > 0 && edited.texts.has(`${index}.${at}.${text}`)) continue;
      bytes += end - start;
      texts++;
    }
  }
  return bytes === 0 ? 0 : tokensOfTexts(input, message, bytes, tokensOf(index)) - stubTokens * texts;
}

/** Tracks references while the conversation is visited from its end. */
function referencesIn(shrinks: readonly Shrink[]) {
  const returning = new Map<number, number>();
  const all = new Map<number, number>();
  for (const { refers = [] } of shrinks)
    for (const { message, tokens } of refers) all.set(message, (all.get(message) ?? 0) + tokens);
  const from = groupBy(
    shrinks.filter(({ refers }) => refers),
    ({ at }) => at.message,
  );
  return {
    /** Records that the references of this message stay. */
    keep(message: number): void {
      if (from.size === 0) return;
      for (const { refers = [] } of from.get(message) ?? [])
        for (const { message: to, tokens } of refers) returning.set(to, (returning.get(to) ?? 0) + tokens);
    },
    /** Tokens that return when the arguments of this call are replaced: its own result refers to them. */
    all: (message: number) => all.get(message) ?? 0,
    /** Tokens that return in later messages that refer to this one, when this one is dropped. */
    returning: (message: number) => returning.get(message) ?? 0,
    /** A message with references is a candidate, too: without its sources it would be sent in full. */
    minimum: (message: number) => (from.has(message) ? 1 : 0),
  };
}

/** Returns the tokens of a message under the edits made so far. */
function remainingAfterEdits(
  { conversation, counter }: PlanInput,
  edited: EditedPlaces,
  message: Message,
  tokensOf: (index: number) => number,
): number {
  if (edited.inputs.size === 0 && edited.texts.size === 0 && edited.media.size === 0)
    return tokensOf(message.index);
  const stubbed = message.parts.flatMap((part, at) =>
    mediaOf(part).filter((_, media) => edited.media.has(`${message.index}.${at}.${media}`)),
  );
  const won = stubbed.reduce(
    (sum, media) => sum + counter.media(conversation, message, media) - stubTokens,
    0,
  );
  const isStubbed = (part: Part, at: number) => {
    const key = `${message.index}.${at}`;
    return (
      edited.inputs.has(key) ||
      (part.type === 'tool-result' && part.texts.some((_, text) => edited.texts.has(`${key}.${text}`)))
    );
  };
  const whole = tokensOf(message.index) - won;
  return message.parts.some(isStubbed) ? Math.min(whole, stubbedPartTokens * message.parts.length) : whole;
}

/** Returns a function that counts the tokens of the last messages that are sent. Edited messages are always in front of unedited ones. */
function tokensBehind({ sent }: Draft, counter: PlanInput['counter']): (messages: number) => number {
  const counts = counter.messages(sent);
  const { length } = sent.messages;
  const sums = [0];
  return (messages) => {
    const wanted = Math.min(messages, length);
    for (let behind = sums.length; behind <= wanted; behind++)
      sums.push(sums[behind - 1]! + counts[length - behind]!);
    return sums[wanted]!;
  };
}

// Long arguments of calls. The saving is remembered with the call, because every request asks for every old message.

/** The approximate tokens of a stub in place of one argument. */
const argumentStubTokens = 80;

/** The tokens that stubs would save, by call, and then by counter and threshold. */
const argumentSavings = openNotes<ToolCallPart, Map<string, number>>('part');

/** Returns the tokens that stubs would save in the arguments of this message; 0 when it is protected or already edited. */
export function idleArguments(
  input: PlanInput,
  edited: Pick<EditedPlaces, 'messages' | 'parts' | 'inputs'>,
  message: Message,
): number {
  const { index, role, parts } = message;
  if (role !== 'assistant' || edited.messages.has(index) || input.protects.message(index)) return 0;
  return parts.reduce((sum, part, at) => {
    if (part.type !== 'tool-call') return sum;
    const saved = savedIn(input, message, part);
    if (saved === 0) return sum;
    const key = `${index}.${at}`;
    const isKept =
      edited.parts.has(key) ||
      edited.inputs.has(key) ||
      input.protects.part(index, at) ||
      input.protects.recalled(index, at) ||
      !input.codec.rules.mayEdit(input.conversation, {
        kind: 'replace-input',
        message: index,
        part: at,
        input: '{}',
        memory: '',
      });
    return isKept ? sum : sum + saved;
  }, 0);
}

function savedIn(
  { conversation, counter, minResultBytes: minBytes }: PlanInput,
  message: Message,
  call: ToolCallPart,
): number {
  if (call.input.end - call.input.start < minBytes) return 0;
  const key = `${counter.name} ${minBytes}`;
  const saved = argumentSavings.get(call) ?? new Map<string, number>();
  argumentSavings.set(call, saved);
  let tokens = saved.get(key);
  if (tokens === undefined) {
    const values = longArguments(conversation, message, call, minBytes)?.values ?? [];
    tokens = values.reduce((sum, { text }) => sum + Math.max(0, counter.text(text) - argumentStubTokens), 0);
    saved.set(key, tokens);
  }
  return tokens;
}

/**
 * Tells whether evicting idle content may pay; mostly it cannot, and then nothing is searched for. It looks at no part: as if everything that is sent
 * were idle once its kind counts as unused. Only messages with a long text can become smaller; all others are evicted as a whole.
 */
export function mayPay(
  { conversation, counter, protects, minResultBytes: minBytes }: PlanInput,
  { sent, edits, shrinks }: Pick<Draft, 'sent' | 'edits' | 'shrinks'>,
  keep: KeepForRequests,
  pays: (limit: RentLimit) => boolean,
): boolean {
  const { messages } = conversation;
  const counts = counter.messages(conversation);
  const sentCounts = counter.messages(sent);
  const begins = repliesBegun(messages);
  const longest = longestTexts(messages, longestIn);
  const left = leftAfter(edits, messages, minBytes);
  const referring = new Set(shrinks.flatMap(({ refers, at }) => (refers ? [at.message] : [])));
  const forAny = Math.min(keep.steps, keep.edits, keep.commands, keep.recalls, keep.replies);
  const moved = sent.messages.length - messages.length;
  /** `kinds`: those of all steps. Without them, each step counts as one of the kind that is unused first. */
  function reaches(kinds?: readonly KindOfStep[]): boolean {
    const limit = { rent: 0, behind: 0, tokens: 0 };
    let kind: KindOfStep = 'replies';
    let repliesAfter = 0;
    for (let index = messages.length - 1; index >= 0; index--) {
      const { role, parts } = messages[index]!;
      const isReply = role === 'assistant';
      if (begins[index]) repliesAfter++;
      // The last message of a reply says of what kind its step is, and the results behind it, if it has no calls.
      if (kinds && (!isReply || messages[index + 1]?.role !== 'assistant'))
        kind = kinds[index] === 'replies' ? (kinds[index + 1] ?? 'replies') : kinds[index]!;
      limit.behind += sentCounts[index + moved] ?? 0;
      const most = left?.get(index) ?? Number.POSITIVE_INFINITY;
      if (longest[index] === neverIdle || most === 0) continue;
      const requests = repliesAfter + (isReply && !begins[index] ? 1 : 0);
      const forStep = kinds ? keep[kind] : forAny;
      const forTexts = isReply ? Math.min(keep.arguments, keep.editArguments) : keep.results;
      const hasText = longest[index]! >= minBytes && most === Number.POSITIVE_INFINITY;
      const age = Math.max(requests - (isReply ? 1 : 0) - forStep, hasText ? requests - forTexts : 0);
      const isKept = kinds && parts.length > 0 && parts.every((_, at) => protects.part(index, at));
      const tokens = age > 0 && !isKept ? Math.min(counts[index]!, most) : 0;
      // A message with references is a candidate of one token.
      const reference = requests > keep.results && referring.has(index) ? 1 : 0;
      if (tokens + reference === 0) continue;
      limit.rent += tokens * Math.max(0, age) + reference * (requests - keep.results);
      limit.tokens += tokens + reference;
      limit.behind -= tokens + reference;
      if (pays(limit)) return true;
    }
    return false;
  }
  // A recall may be of any other kind by its words, so kinds tell nothing unless all results are plain.
  return reaches() && (!protects.hasPlainResults || reaches(kindsSoFar(conversation)));
}

/** The bytes of the longest text of a message that a stub can replace. Any image or document counts as long. */
const longestTexts = perMessage<number>();
/** Stands for a message that is never idle: of the system, or only of the user. */
const neverIdle = -1;

function longestIn({ role, parts }: Message): number {
  if (role === 'system') return neverIdle;
  const none = role === 'user' ? neverIdle : 0;
  return parts.reduce((longest, part) => {
    if (mediaOf(part).length > 0) return Number.POSITIVE_INFINITY;
    if (part.type !== 'tool-result' && part.type !== 'tool-call') return longest;
    const spans = part.type === 'tool-result' ? part.texts : [part.input];
    return spans.reduce((max, { start, end }) => Math.max(max, end - start), Math.max(longest, 0));
  }, none);
}

/** The most tokens that `idleContent` counts for each message that these edits change, unless they leave it a long text: none for dropped messages. */
const leftByEdits = openNotes<readonly Edit[], ReadonlyMap<number, number>>();

function leftAfter(
  edits: readonly Edit[],
  messages: readonly Message[],
  minBytes: number,
): ReadonlyMap<number, number> | undefined {
  if (edits.length === 0) return undefined;
  const known = leftByEdits.get(edits);
  if (known) return known;
  const edited = placesEdited(edits);
  const left = new Map<number, number>();
  const isLong = ({ start, end }: Span) => end - start >= minBytes;
  const isOpen = ({ index }: Message, part: Part, at: number): boolean => {
    if (part.type === 'tool-call') return isLong(part.input) && !edited.inputs.has(`${index}.${at}`);
    if (part.type !== 'tool-result' || part.media.length > 0) return mediaOf(part).length > 0;
    return part.texts.some((span, text) => isLong(span) && !edited.texts.has(`${index}.${at}.${text}`));
  };
  for (const edit of edits) {
    const message = messages[lastMessageOf(edit)];
    if (!message || edit.kind === 'insert-message' || left.has(message.index)) continue;
    const isStubbed = edit.kind === 'replace-text' || edit.kind === 'replace-input';
    if (edited.messages.has(message.index)) left.set(message.index, 0);
    else if (!isStubbed || message.parts.some((part, at) => isOpen(message, part, at)))
      left.set(message.index, Number.POSITIVE_INFINITY);
    else left.set(message.index, stubbedPartTokens * message.parts.length);
  }
  leftByEdits.set(edits, left);
  return left;
}
