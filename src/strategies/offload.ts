/**
 * Implements two strategies that replace old content by stubs, oldest first, and keep the originals: tool results, and long texts in the
 * arguments of calls, such as files that were written, patches and scripts.
 */
import type { Edit } from '../conversation/edit.ts';
import type { Steps } from '../conversation/steps.ts';
import type { FoldView, Strategy } from './strategy.ts';
import {
  type MinBytesOptions,
  type EditableText,
  type ToolCallPart,
  minBytesStrategy,
  byteLength,
  editableTexts,
  longArguments,
  placesEdited,
} from './lib/editable-texts.ts';
import { resultStub, argumentStub } from './lib/stubs.ts';
import type { Part } from '../conversation/conversation.ts';
import { bytesOf, inputOf } from '../conversation/messages.ts';
import { type CallWords, callWords } from '../outline/step-line.ts';
import { type PartPlace, newestBatch, pairCalls, placeKey } from '../conversation/turns.ts';
import { type Splice, applySplices, literalBytes } from '../conversation/json-scan.ts';

/**
 * Replaces old tool results by stubs. The call and its result stay paired. Throws `bad-config` for options that are not allowed.
 *
 * @example
 * const leporello = createLeporello({ strategies: [offloadResults({ minResultBytes: 2_000 }), dropOldest(), clipNewest()] });
 */
export function offloadResults(options: MinBytesOptions = {}): Strategy {
  return minBytesStrategy(
    { name: 'offload-results', reach: 'history', calledAs: 'offloadResults' },
    options,
    proposeResults,
  );
}

function* proposeResults(view: FoldView): Steps<readonly Edit[]> {
  // Folding a result removes no message.
  if (view.excess.unit === 'messages') return [];
  const edits: Edit[] = [];
  let saved = 0;
  let calls: ResultCalls | undefined;
  for (const slot of editableTexts(view, 'tool-result')) {
    if (saved >= view.excess.amount) break;
    yield;
    if (!isCandidate(view, slot)) continue;
    const text = yield* slot.textInSteps();
    if (byteLength(text) < view.minResultBytes) continue;
    const memory = view.idOf(slot.literal);
    calls ??= yield* callsOfResults(view);
    const { isError } = slot.part as Part & { readonly type: 'tool-result' };
    const stub = resultStub({ text, isError, ...calls(slot.at), memory, recallTool: view.recallTool });
    const gain = (yield* view.measure.textInSteps(view.shrunk(slot.at) ?? text)) - view.measure.text(stub);
    const edit: Edit = { kind: 'replace-text', at: slot.at, stub, memory };
    if (gain <= 0 || !view.mayEdit(edit)) continue;
    edits.push(edit);
    saved += gain;
  }
  return edits;
}

/** Finds the call of a result, and whether a later call edited the file that it read. */
type ResultCalls = (result: PartPlace) => {
  readonly call: CallWords | undefined;
  readonly isEditedSince: boolean;
};

function* callsOfResults({ conversation }: FoldView): Steps<ResultCalls> {
  const calls = new Map<string, CallWords>();
  const lastEdits = new Map<string, number>();
  for (const { name, call: place, result } of pairCalls(conversation).pairs) {
    if (result === undefined) continue;
    yield;
    const message = conversation.messages[place.message]!;
    const part = message.parts[place.part] as ToolCallPart;
    const call = callWords({ tool: name, input: inputOf(conversation.body, message, part) });
    calls.set(placeKey(result), call);
    if (call.kind === 'edit') lastEdits.set(call.path, place.message);
  }
  return (result) => {
    const call = calls.get(placeKey(result));
    const isEditedSince = call?.kind === 'read' && (lastEdits.get(call.path) ?? -1) > result.message;
    return { call, isEditedSince };
  };
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

/** Replaces long texts in the arguments of old calls by stubs. Other arguments keep their spelling, and the call stays a call with valid JSON. */
export function stubArguments(options: MinBytesOptions = {}): Strategy {
  return minBytesStrategy(
    { name: 'stub-arguments', reach: 'history', calledAs: 'stubArguments' },
    options,
    proposeArguments,
  );
}

function* proposeArguments(view: FoldView): Steps<readonly Edit[]> {
  if (view.excess.unit === 'messages') return [];
  const edits: Edit[] = [];
  let saved = 0;
  for (const place of finishedCalls(view)) {
    if (saved >= view.excess.amount) break;
    yield;
    const stubbed = yield* stubCall(view, place);
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

function* stubCall(
  view: FoldView,
  place: PartPlace,
): Steps<{ readonly edit: Edit; readonly gain: number } | undefined> {
  const { conversation } = view;
  const message = conversation.messages[place.message]!;
  const call: Part = message.parts[place.part]!;
  if (call.type !== 'tool-call') return undefined;
  const long = longArguments(conversation, message, call, view.minResultBytes);
  if (!long) return undefined;
  const memory = view.idOf(bytesOf(conversation.body, message, call.input));
  let gain = 0;
  const splices: Splice[] = [];
  for (const { span, text, path } of long.values) {
    const note = argumentStub({ text, memory, path, recallTool: view.recallTool });
    const won = (yield* view.measure.textInSteps(text)) - view.measure.text(note);
    if (won <= 0) continue;
    gain += won;
    splices.push({ span, bytes: literalBytes(note) });
  }
  const json = applySplices(long.json, splices);
  if (json.length >= long.json.length) return undefined;
  const input = new TextDecoder().decode(json);
  return { edit: { kind: 'replace-input', ...place, input, memory }, gain };
}
