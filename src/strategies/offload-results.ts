/** Moves old tool results to memory, oldest first, and leaves a stub in place of each. The call and its result stay paired. */
import type { Edit } from '../conversation/edit.ts';
import type { FoldView, Strategy } from './strategy.ts';
import { resultStub } from './lib/stub.ts';
import { byteLength, openSlots, type TextSlot } from './lib/editable-texts.ts';

export const offloadResults: Strategy = { name: 'offload-results', reach: 'history', propose };

function propose(view: FoldView): readonly Edit[] {
  // A result that is folded leaves its message where it is.
  if (view.excess.unit === 'messages') return [];
  const edits: Edit[] = [];
  let saved = 0;
  for (const slot of openSlots(view, 'tool-result')) {
    if (saved >= view.excess.amount) break;
    if (!isCandidate(view, slot)) continue;
    const text = slot.text();
    if (byteLength(text) < view.compressionBytesThreshold) continue;
    const memory = view.idOf(slot.literal);
    const stub = resultStub({ text, memory, recallTool: view.recallTool });
    const gain = view.measure.text(view.shrunk(slot.at) ?? text) - view.measure.text(stub);
    const edit: Edit = { kind: 'replace-text', at: slot.at, stub, memory };
    if (gain <= 0 || !view.mayEdit(edit)) continue;
    edits.push(edit);
    saved += gain;
  }
  return edits;
}

/** The size of the literal tells most small texts without decoding them: no text is longer than its literal. */
function isCandidate(view: FoldView, slot: TextSlot): boolean {
  return (
    slot.literal.length - 2 >= view.compressionBytesThreshold &&
    !view.protects.message(slot.at.message) &&
    !view.protects.part(slot.at.message, slot.at.part) &&
    !view.protects.recalled(slot.at.message, slot.at.part)
  );
}
