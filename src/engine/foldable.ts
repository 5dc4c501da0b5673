/**
 * Counts what a fold could still take out of a request. Triggers that ask in tokens look at this and not at the whole, because no fold
 * removes tools, system text, what is protected or pinned, what the provider wants back as it was, or the stubs of earlier folds.
 */
import type { Message } from '../conversation/conversation.ts';
import { unitsOf } from '../conversation/turns.ts';
import { remainingTokens } from '../strategies/lib/free-units.ts';
import { placesEdited } from '../strategies/lib/editable-texts.ts';
import type { Draft, PlanInput } from './plan.ts';
import { savedByMessage } from './shrink.ts';

/**
 * Returns the tokens, in counts, of all units that may be dropped whole, and of the results that may be offloaded from the others. Costs a
 * pass over the messages, so it is for requests that are large enough for the answer to matter.
 */
export function foldableTokens(input: PlanInput, { edits, shrinks }: Draft): number {
  const { conversation, counter, protects, codec, compressionBytesThreshold: least } = input;
  const gone = placesEdited(edits);
  const saved = savedByMessage(shrinks);
  const remaining = remainingTokens({
    conversation,
    edits,
    measure: {
      text: (text) => counter.text(text),
      part: (block, part) => counter.part(conversation, block, part),
      message: (index) => counter.message(conversation, index) - (saved.get(index) ?? 0),
    },
  });

  const isFree = ({ index, role, parts }: Message): boolean =>
    role !== 'system' &&
    !protects.message(index) &&
    parts.every((_, part) => !protects.part(index, part)) &&
    codec.rules.mayEdit(conversation, { kind: 'drop-message', message: index, memory: undefined });

  const tokensOfResults = ({ index, parts, span }: Message): number => {
    if (protects.message(index)) return 0;
    const bytes = parts.reduce((sum, part, at) => {
      if (part.type !== 'tool-result' || protects.part(index, at) || protects.recalled(index, at)) return sum;
      const open = part.texts.filter(({ start, end }, text) => {
        if (end - start - 2 < least || gone.texts.has(`${index}.${at}.${text}`)) return false;
        const place = { message: index, part: at, text };
        return codec.rules.mayEdit(conversation, {
          kind: 'replace-text',
          at: place,
          stub: '',
          memory: undefined,
        });
      });
      return open.reduce((total, { start, end }) => total + end - start, sum);
    }, 0);
    return bytes === 0 ? 0 : (remaining(index) * bytes) / (span.end - span.start);
  };

  let tokens = 0;
  for (const unit of unitsOf(conversation)) {
    const open = unit.filter(({ index }) => !gone.messages.has(index));
    const tokensOf = open.every(isFree) ? ({ index }: Message) => remaining(index) : tokensOfResults;
    for (const message of open) tokens += tokensOf(message);
  }
  return Math.round(tokens);
}
