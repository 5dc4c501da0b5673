/**
 * Which results of a conversation are dead weight: large, and so many requests old that they are not likely to be used again. Reckoned from
 * the conversation alone, so that every instance reckons the same, and from remembered counts, so that it is cheap on every request.
 */
import type { Message } from '../conversation/conversation.ts';
import { touched } from '../strategies/text-slots.ts';
import type { Dead } from '../triggers/trigger.ts';
import type { Draft, PlanInput } from './plan.ts';

/** Tokens of a stub and of the wrapping that stays. */
const stubTokens = 90;

/** `usedFor`: requests for which a result counts as used after it came. */
export function deadWeight(input: PlanInput, start: Draft, usedFor: number): readonly Dead[] {
  const { conversation, counter, protects } = input;
  const gone = touched(start.edits);
  const isOpen = ({ index, role, parts }: Message) =>
    role === 'tool' &&
    !gone.messages.has(index) &&
    !protects.message(index) &&
    parts.every(
      (part, at) =>
        part.type === 'tool-result' &&
        part.texts.every((_, text) => !gone.texts.has(`${index}.${at}.${text}`)) &&
        !protects.part(index, at) &&
        !protects.recalled(index, at),
    );
  const behind = tokensBehind(start, counter);
  const dead: Dead[] = [];
  let requests = 0;
  for (let index = conversation.messages.length - 1; index >= 0; index--) {
    const message = conversation.messages[index]!;
    if (message.role === 'assistant' && conversation.messages[index - 1]?.role !== 'assistant') requests++;
    if (requests <= usedFor || !isOpen(message)) continue;
    const tokens = counter.message(conversation, index) - stubTokens * message.parts.length;
    if (tokens <= 0) continue;
    dead.push({
      message: index,
      tokens,
      requests: requests - usedFor,
      behind: behind(conversation.messages.length - index),
    });
  }
  return dead.toReversed();
}

/** Tokens of the last so many messages that are sent; edits stand in front of what they leave alone. */
function tokensBehind({ sent }: Draft, counter: PlanInput['counter']): (messages: number) => number {
  const sums = [0];
  for (let index = sent.messages.length - 1; index >= 0; index--)
    sums.push(sums.at(-1)! + counter.message(sent, index));
  return (messages) => sums[Math.min(messages, sums.length - 1)]!;
}
