/** What may be taken out of a conversation as a whole. */
import type { Message } from '../conversation/conversation.ts';
import { unitsOf } from '../conversation/turns.ts';
import type { FoldView } from './strategy.ts';
import { placesEdited } from './editable-texts.ts';

/** Units of which all that is not gone may go, oldest first, each as it is asked for. */
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
