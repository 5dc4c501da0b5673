/** What messages still take under the edits made so far: results and arguments that have a stub take little. Pure. */
import type { FoldView } from './strategy.ts';

/** Tokens of a message, by its index. */
export function remainingTokens(
  view: Pick<FoldView, 'conversation' | 'edits' | 'measure'>,
): (index: number) => number {
  const replaced = new Map<number, number>();
  for (const edit of view.edits) {
    if (edit.kind !== 'replace-text' && edit.kind !== 'replace-input') continue;
    const {
      message: index,
      part,
      stub,
    } = edit.kind === 'replace-text' ? { ...edit.at, stub: edit.stub } : { ...edit, stub: edit.input };
    const message = view.conversation.messages[index]!;
    const saved = view.measure.part(message, message.parts[part]!) - view.measure.text(stub);
    replaced.set(message.index, (replaced.get(message.index) ?? 0) + saved);
  }
  return (index) => Math.max(0, view.measure.message(index) - (replaced.get(index) ?? 0));
}
