/**
 * Replaces long texts in the arguments of old calls by stubs, oldest first: files that were written, patches, scripts. Other arguments keep their
 * spelling, and the call stays a call with valid JSON.
 */
import { bytesOf, type Part } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { type PartPlace, newestBatch, pairCalls, placeKey } from '../conversation/turns.ts';
import { applySplices, literalBytes } from '../conversation/json-scan.ts';
import { longArguments, placesEdited } from './lib/editable-texts.ts';
import type { FoldView, Strategy } from './strategy.ts';
import { argumentStub } from './lib/stub.ts';

export const stubArguments: Strategy = { name: 'stub-arguments', reach: 'history', propose };

function propose(view: FoldView): readonly Edit[] {
  if (view.excess.unit === 'messages') return [];
  const edits: Edit[] = [];
  let saved = 0;
  for (const place of finishedCalls(view)) {
    if (saved >= view.excess.amount) break;
    const stubbed = stub(view, place);
    if (!stubbed || !view.mayEdit(stubbed.edit)) continue;
    edits.push(stubbed.edit);
    saved += stubbed.gain;
  }
  return edits;
}

/** Returns calls with results before the newest batch that are neither dropped, stubbed, pinned nor recalls. */
function finishedCalls(view: FoldView): readonly PartPlace[] {
  const { messages, parts, inputs } = placesEdited(view.edits);
  const newest = newestBatch(view.conversation);
  return pairCalls(view.conversation).pairs.flatMap(({ call, result }) => {
    const key = placeKey(call);
    const isOpen =
      result !== undefined &&
      !newest.has(result.message) &&
      !messages.has(call.message) &&
      !parts.has(key) &&
      !inputs.has(key) &&
      !view.protects.message(call.message) &&
      !view.protects.part(call.message, call.part) &&
      !view.protects.recalled(call.message, call.part);
    return isOpen ? [call] : [];
  });
}

function stub(view: FoldView, place: PartPlace): { readonly edit: Edit; readonly gain: number } | undefined {
  const { conversation } = view;
  const message = conversation.messages[place.message]!;
  const call: Part = message.parts[place.part]!;
  if (call.type !== 'tool-call') return undefined;
  const long = longArguments(conversation, message, call, view.minResultBytes);
  if (!long) return undefined;
  const memory = view.idOf(bytesOf(conversation.body, message, call.input));
  let gain = 0;
  const splices = long.values.flatMap(({ span, text, path }) => {
    const note = argumentStub({ text, memory, path, recallTool: view.recallTool });
    const won = view.measure.text(text) - view.measure.text(note);
    if (won <= 0) return [];
    gain += won;
    return [{ span, bytes: literalBytes(note) }];
  });
  const json = applySplices(long.json, splices);
  if (json.length >= long.json.length) return undefined;
  const input = new TextDecoder().decode(json);
  return { edit: { kind: 'replace-input', ...place, input, memory }, gain };
}
