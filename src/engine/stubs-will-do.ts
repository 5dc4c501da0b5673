/** Whether a fold to come will get by with stubs of tool results: then no message goes, and a summary would be written for nothing. Pure. */
import { lastMessageOf } from '../conversation/edit.ts';
import type { FoldView } from '../strategies/strategy.ts';
import { editableTexts } from '../strategies/lib/editable-texts.ts';

/** Tokens of a stub, about. */
const stubTokens = 60;

/** `view` asks for what will be too much when there are so many tokens more. They are taken to be of the same kind as what came last. */
export function stubsWillDo(view: FoldView, more: number): boolean {
  if (view.excess.unit === 'messages') return false;
  const folded = view.edits.reduce((last, edit) => Math.max(last, lastMessageOf(edit)), -1);
  let saved = 0;
  let savedOfNew = 0;
  for (const { at, part, message, literal } of editableTexts(view, 'tool-result')) {
    const isSmall = literal.length - 2 < view.compressionBytesThreshold;
    // Of a result in several texts all are counted with the first.
    if (isSmall || at.text > 0 || view.protects.part(at.message, at.part)) continue;
    const shown = view.shrunk(at);
    const tokens = shown === undefined ? view.measure.part(message, part) : view.measure.text(shown);
    const gain = Math.max(0, tokens - stubTokens);
    saved += gain;
    if (at.message > folded) savedOfNew += gain;
  }
  const { messages } = view.conversation;
  const tokensOfNew = messages
    .slice(folded + 1)
    .reduce((sum, { index }) => sum + view.measure.message(index), 0);
  return saved + (more * savedOfNew) / Math.max(1, tokensOfNew) >= view.excess.amount;
}
