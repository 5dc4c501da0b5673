/** Replaces old tool results by stubs, oldest first, and keeps the originals. The call and its result stay paired. */
import type { Edit } from '../conversation/edit.ts';
import type { FoldView, Strategy } from './strategy.ts';
import { resultStub } from './lib/stub.ts';
import { byteLength, editableTexts, type EditableText } from './lib/editable-texts.ts';

export const offloadResults: Strategy = { name: 'offload-results', reach: 'history', propose };

function propose(view: FoldView): readonly Edit[] {
  // Folding a result removes no message.
  if (view.excess.unit === 'messages') return [];
  const edits: Edit[] = [];
  let saved = 0;
  for (const slot of editableTexts(view, 'tool-result')) {
    if (saved >= view.excess.amount) break;
    if (!isCandidate(view, slot)) continue;
    const text = slot.text();
    if (byteLength(text) < view.minResultBytes) continue;
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

/** True if a text may be offloaded. Most small texts are recognized by their literal, which is never shorter than the text. */
function isCandidate(view: FoldView, slot: EditableText): boolean {
  return (
    slot.literal.length - 2 >= view.minResultBytes &&
    !view.protects.message(slot.at.message) &&
    !view.protects.part(slot.at.message, slot.at.part) &&
    !view.protects.recalled(slot.at.message, slot.at.part)
  );
}
