/**
 * Tells quickly whether evicting idle content may pay. Mostly it cannot, and then nothing is searched for. It depends on the conversation and its fold alone,
 * and is computed from remembered counts.
 */
import type { Message, Part } from '../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../conversation/edit.ts';
import { mediaOf, perMessage } from '../conversation/messages.ts';
import { placesEdited } from '../strategies/lib/editable-texts.ts';
import type { KeepForRequests, RentLimit } from '../triggers/trigger.ts';
import { repliesBegun, stubbedPartTokens } from './idle-content.ts';
import type { Draft, PlanInput } from './plan.ts';

/**
 * Tells whether evicting idle content may pay, without looking at a part: as if everything that is sent were idle once its kind counts as unused. Only
 * messages with a long text can become smaller; all others are evicted as a whole. It asks `pays` for the content from each message on, from the newest
 * one back.
 */
export function mayPay(
  { conversation, counter, minResultBytes: minBytes }: PlanInput,
  { sent, edits }: Pick<Draft, 'sent' | 'edits'>,
  { results, arguments: inputs, steps, recalls, replies: talk }: KeepForRequests,
  pays: (limit: RentLimit) => boolean,
): boolean {
  const { messages } = conversation;
  const counts = counter.messages(conversation);
  const sentCounts = counter.messages(sent);
  const begins = repliesBegun(messages);
  const longest = longestTexts(messages, longestIn);
  const left = leftAfter(edits, messages, minBytes);
  const [forTexts, forSteps] = [Math.min(results, inputs), Math.min(steps, recalls, talk)];
  const moved = sent.messages.length - messages.length;
  const limit = { rent: 0, behind: 0, tokens: 0 };
  let requests = 0;
  for (let index = messages.length - 1; index >= 0; index--) {
    if (begins[index]) requests++;
    limit.behind += sentCounts[index + moved] ?? 0;
    const longestText = longest[index]!;
    if (longestText === neverIdle) continue;
    const edited = left?.get(index);
    const age = requests - (edited === undefined && longestText >= minBytes ? forTexts : forSteps);
    const tokens = age > 0 ? Math.min(counts[index]!, edited ?? Number.POSITIVE_INFINITY) : 0;
    // A message with references is a candidate of one token.
    const reference = requests > forTexts ? 1 : 0;
    limit.rent += tokens * Math.max(0, age) + reference * (requests - forTexts);
    limit.tokens += tokens + reference;
    limit.behind -= tokens + reference;
    if (tokens > 0 && pays(limit)) return true;
  }
  return false;
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
    const spans =
      part.type === 'tool-result' ? part.texts : part.type === 'tool-call' ? [part.input] : undefined;
    return spans
      ? spans.reduce((max, { start, end }) => Math.max(max, end - start), Math.max(longest, 0))
      : longest;
  }, none);
}

/** The most tokens that `idleContent` counts for each message that these edits change: none for dropped messages. Found once for a list of edits. */
const leftByEdits = new WeakMap<readonly Edit[], ReadonlyMap<number, number>>();

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
  const isOpen = ({ index }: Message, part: Part, at: number): boolean => {
    if (mediaOf(part).length > 0) return true;
    if (part.type === 'tool-call')
      return part.input.end - part.input.start >= minBytes && !edited.inputs.has(`${index}.${at}`);
    return (
      part.type === 'tool-result' &&
      part.texts.some(
        ({ start, end }, text) => end - start >= minBytes && !edited.texts.has(`${index}.${at}.${text}`),
      )
    );
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
