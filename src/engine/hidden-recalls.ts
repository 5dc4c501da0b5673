/**
 * The conversation as the model knows it: with what it recalled in private put back where it stood in the client's copies of its
 * replies. Everything after this step (folds, counts, recalls) sees that conversation.
 */
import type { Codec, PlacedHiddenRecall, ReadContext } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { FoundRecalls, Reply } from '../store/hidden-recalls.ts';
import { newProblems } from './check.ts';

export type HiddenRecallRequest = { readonly codec: Codec; readonly reading: ReadContext };

/**
 * The conversation itself where nothing was recalled. Hidden recalls that would make it invalid are left out. `added`: how many messages stand in
 * front of those the client sent.
 */
export function withHiddenRecalls(
  request: HiddenRecallRequest,
  conversation: Conversation,
  found: readonly FoundRecalls<Copy>[],
  added = 0,
): Conversation {
  if (found.length === 0) return conversation;
  const hiddenRecalls = found
    .map(({ reply, turns }) => ({ at: reply.at + added, candidates: turns }))
    .toReversed();
  const whole = inserted(request, conversation, hiddenRecalls);
  return (
    whole ?? inserted(request, conversation, validOnes(request, conversation, hiddenRecalls)) ?? conversation
  );
}

/** A client's copy of a reply, and the index of its first message. */
export type Copy = Reply & { readonly at: number };

/** Where the client's copies of replies stand, the newest first: neighbouring messages of the model, behind some of another side. */
export function* copiesIn(messages: Conversation['messages'], links: readonly string[]): Generator<Copy> {
  const isReply = (index: number) => messages[index]?.role === 'assistant';
  for (let end = messages.length; end > 1; end--) {
    if (!isReply(end - 1)) continue;
    let at = end - 1;
    while (at > 0 && isReply(at - 1)) at--;
    if (at > 0) yield { at, before: links[at]!, through: links[end]! };
    end = at;
  }
}

/** Undefined when the result breaks a rule that the client's own conversation keeps. */
function inserted(
  { codec, reading }: HiddenRecallRequest,
  conversation: Conversation,
  hiddenRecalls: readonly PlacedHiddenRecall[],
): Conversation | undefined {
  const body = codec.insertHiddenRecalls(conversation, hiddenRecalls);
  if (body === conversation.body) return conversation;
  const whole = codec.read(body, reading);
  return newProblems(codec.rules, conversation, whole).length > 0 ? undefined : whole;
}

/** Of hidden recalls that cannot all be put back those that can, looked for by halves: most often all but one can. */
function validOnes(
  request: HiddenRecallRequest,
  conversation: Conversation,
  hiddenRecalls: readonly PlacedHiddenRecall[],
): readonly PlacedHiddenRecall[] {
  if (hiddenRecalls.length <= 1) return [];
  const middle = Math.floor(hiddenRecalls.length / 2);
  return [hiddenRecalls.slice(0, middle), hiddenRecalls.slice(middle)].flatMap((half) =>
    inserted(request, conversation, half) ? half : validOnes(request, conversation, half),
  );
}
