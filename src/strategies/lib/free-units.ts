/** Finds the messages that may be dropped, and counts the tokens that messages still have under the edits made so far. */
import type { Message } from '../../conversation/conversation.ts';
import { unitsOf } from '../../conversation/turns.ts';
import type { FoldView } from '../strategy.ts';
import { placesEdited } from './editable-texts.ts';

/** Yields the units (messages that must be dropped together) that may be dropped, oldest first. */
export function* freeUnits(view: FoldView): Generator<readonly Message[]> {
  const gone = placesEdited(view.edits).messages;
  for (const unit of unitsOf(view.conversation)) {
    const open = unit.filter(({ index }) => !gone.has(index));
    if (open.length > 0 && open.every((message) => isFree(view, message))) yield open;
  }
}

function isFree(view: FoldView, message: Message): boolean {
  return (
    message.role !== 'system' &&
    !view.protects.message(message.index) &&
    message.parts.every((_, part) => !view.protects.part(message.index, part)) &&
    view.mayEdit({ kind: 'drop-message', message: message.index, memory: undefined })
  );
}

/** Returns a function that counts a message's tokens by index: results and arguments with a stub count as the stub. */
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
