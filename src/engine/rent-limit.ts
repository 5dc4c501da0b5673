/**
 * Limits what idle content can cost, without looking for it. Most requests cost less than this limit would have to be, so they need no search. It depends
 * on the conversation and its fold alone, and is computed from remembered counts.
 */
import type { Message, Part } from '../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../conversation/edit.ts';
import { mediaOf, perMessage } from '../conversation/messages.ts';
import { placesEdited } from '../strategies/lib/editable-texts.ts';
import type { KeepForRequests, RentLimit } from '../triggers/trigger.ts';
import { repliesBegun, stubbedPartTokens } from './idle-content.ts';
import type { Draft, PlanInput } from './plan.ts';

/**
 * Limits the candidates of `idleContent` without looking at a part: as if everything that is sent were idle once its kind counts as unused. Only messages
 * with a long text can become smaller; all others are evicted as a whole.
 */
export function limitOfRent(
  { conversation, counter, minResultBytes: minBytes }: PlanInput,
  { sent, edits }: Pick<Draft, 'sent' | 'edits'>,
  { results, arguments: inputs, steps, recalls, replies: talk }: KeepForRequests,
): RentLimit {
  const { messages } = conversation;
  const counts = counter.messages(conversation);
  const sentCounts = counter.messages(sent);
  const begins = repliesBegun(messages);
  const longest = longestTexts(messages, longestIn);
  const left = leftAfter(edits, messages, minBytes);
  const [forTexts, forSteps] = [Math.min(results, inputs), Math.min(steps, recalls, talk)];
  const forAll = Math.min(forTexts, forSteps);
  const moved = sent.messages.length - messages.length;
  let rent = 0;
  let requests = 0;
  let behind = 0;
  for (let index = messages.length - 1; index >= 0; index--) {
    if (begins[index]) requests++;
    if (requests <= forAll) {
      behind += sentCounts[index + moved] ?? 0;
      continue;
    }
    const edited = left?.get(index);
    const tokens = Math.min(counts[index]!, edited ?? Number.POSITIVE_INFINITY);
    const age = Math.max(
      0,
      requests - (edited === undefined && longest[index]! >= minBytes ? forTexts : forSteps),
    );
    // A message with references is a candidate of one token.
    rent += tokens * age + Math.max(0, requests - forTexts);
    // The tokens of an edited message are estimated, so a fold may seem to evict more than is sent.
    if (edited !== undefined) behind -= Math.max(0, tokens - (sentCounts[index + moved] ?? 0));
  }
  return { rent, behind };
}

/** The bytes of the longest text of a message that a stub can replace. Any image or document counts as long. */
const longestTexts = perMessage<number>();

function longestIn({ parts }: Message): number {
  return parts.reduce((longest, part) => {
    if (mediaOf(part).length > 0) return Number.POSITIVE_INFINITY;
    const spans = part.type === 'tool-result' ? part.texts : part.type === 'tool-call' ? [part.input] : [];
    return spans.reduce((max, { start, end }) => Math.max(max, end - start), longest);
  }, 0);
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
