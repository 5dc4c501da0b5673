/**
 * Implements three strategies that replace old content by stubs, oldest first, and keep the originals: tool results, long texts in the
 * arguments of calls, such as files that were written, patches and scripts, and images, documents and sounds.
 */
import type { Edit } from '../conversation/edit.ts';
import type { Steps } from '../conversation/steps.ts';
import { type FoldView, type Reach, type Strategy, steppedStrategy } from './strategy.ts';
import { checkSettings, object, wholeNumber } from '../checks.ts';
import { describeMedia } from '../tokens/count-media.ts';
import {
  type MinBytesOptions,
  type EditableText,
  type ToolCallPart,
  hasBytes,
  minBytesStrategy,
  editableTexts,
  type EditableMedia,
  longArguments,
  mediaIn,
  placesEdited,
} from './lib/editable-texts.ts';
import { resultStub, argumentStub, mediaStub } from './lib/stubs.ts';
import type { Conversation, Message, Part } from '../conversation/conversation.ts';
import { bytesOf, inputOf, textInSteps } from '../conversation/messages.ts';
import { label, quoted } from '../outline/outcome.ts';
import { filesRead, findsPlaces, isSamePath } from '../outline/files-shown.ts';
import { type CallWords, callWords, type StepCall, stepWords } from '../outline/step-line.ts';
import { type PartPlace, beginsReply, callsByResult, pairCalls, placeKey } from '../conversation/turns.ts';
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
  const open = yield* openResults(view);
  if (open.length === 0) return [];
  const calls = yield* callsOfResults(view);
  for (const slot of searchesLast(view.conversation, open, calls)) {
    if (saved >= view.excess.amount) break;
    yield;
    const text = yield* slot.textInSteps();
    if (!hasBytes(text, view.minResultBytes)) continue;
    yield;
    const memory = view.idOf(slot.literal);
    yield;
    const { isError } = slot.part as Part & { readonly type: 'tool-result' };
    const isRules = view.protects.isInView?.(slot.at.message, slot.at.part);
    const stub = yield* resultStub({
      text,
      isError,
      isRules,
      ...calls(slot.at),
      memory,
      recallTool: view.recallTool,
    });
    yield;
    const gain = (yield* view.measure.textInSteps(view.shrunk(slot.at) ?? text)) - view.measure.text(stub);
    const edit: Edit = { kind: 'replace-text', at: slot.at, stub, memory };
    if (gain <= 0 || !view.mayEdit(edit)) continue;
    edits.push(edit);
    saved += gain;
  }
  return edits;
}

/** Returns the results that may be offloaded, in order. */
function* openResults(view: FoldView): Steps<readonly EditableText[]> {
  const open: EditableText[] = [];
  for (const slot of editableTexts(view, 'tool-result')) {
    yield;
    if (isCandidate(view, slot)) open.push(slot);
  }
  return open;
}

/** Puts searches and listings behind the other results of the same reply: they are short, and say where everything is. */
function searchesLast(
  { messages }: Conversation,
  results: readonly EditableText[],
  calls: ResultCalls,
): readonly EditableText[] {
  const steps = stepNumbers(messages);
  return results
    .map((slot) => {
      const { call } = calls(slot.at);
      return {
        slot,
        step: steps[slot.at.message]!,
        isLast: Number(call?.isListing === true && call.kind !== 'read' && findsPlaces(call)),
      };
    })
    .toSorted((a, b) => a.step - b.step || a.isLast - b.isLast)
    .map(({ slot }) => slot);
}

/** Finds the call of a result, and whether a later call edited the file that it read. */
type ResultCalls = (result: PartPlace) => {
  readonly call: CallWords | undefined;
  readonly isEditedSince: boolean;
};

function lastName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Maximum edited files of one name that are remembered. */
const maxSameName = 20;

function* callsOfResults({ conversation }: FoldView): Steps<ResultCalls> {
  const calls = new Map<string, CallWords>();
  const edits = new Map<string, Map<string, number>>();
  for (const { name, call: place, result } of pairCalls(conversation).pairs) {
    if (result === undefined) continue;
    yield;
    const message = conversation.messages[place.message]!;
    const part = message.parts[place.part] as ToolCallPart;
    const sent = { tool: name, input: inputOf(conversation.body, message, part) };
    const call = readOrOther(sent);
    calls.set(placeKey(result), call);
    if (call.kind === 'edit' && (yield* hasFailed(conversation, sent, result))) continue;
    for (const path of call.kind === 'edit' ? [call.path] : call.writes) {
      const edited = edits.get(lastName(path)) ?? new Map<string, number>();
      if (edited.size < maxSameName || edited.has(path)) edited.set(path, place.message);
      edits.set(lastName(path), edited);
    }
  }
  return (result) => {
    const call = calls.get(placeKey(result));
    const { path = '' } = call?.kind === 'read' ? call : {};
    const edited = path === '' ? [] : [...(edits.get(lastName(path)) ?? [])];
    // A shell names files relative to its folder.
    return {
      call,
      isEditedSince: edited.some(([other, at]) => at > result.message && isSamePath(other, path)),
    };
  };
}

/** True if a call failed, or the user refused it: its file is as it was. */
function* hasFailed(
  { body, messages }: Conversation,
  call: Pick<StepCall, 'tool' | 'input'>,
  place: PartPlace,
): Steps<boolean> {
  const message = messages[place.message]!;
  const part = message.parts[place.part];
  if (part?.type !== 'tool-result') return false;
  const texts: string[] = [];
  for (const span of part.texts) texts.push(yield* textInSteps(body, message, span));
  return stepWords({ ...call, result: texts.join('\n'), isError: part.isError }).hasFailed;
}

/** Returns a call in words. A command that only prints one file, such as `cat a.ts`, counts as a read of that file. */
function readOrOther(call: Pick<StepCall, 'tool' | 'input'>): CallWords {
  const words = callWords(call);
  if (words.kind !== 'command') return words;
  const [file, ...others] = filesRead(call);
  return file === undefined || others.length > 0 ? words : { ...words, kind: 'read', path: file.path };
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

/** Returns calls with results that are neither protected, dropped, stubbed, pinned nor recalls. */
function finishedCalls(view: FoldView): readonly PartPlace[] {
  const { messages, parts, inputs } = placesEdited(view.edits);
  return pairCalls(view.conversation).pairs.flatMap(({ call, result }) => {
    const key = placeKey(call);
    const isOpen =
      result !== undefined &&
      !view.protects.message(result.message) &&
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

// Images, documents and sounds. Only their first bytes are read; the original is the content part as the client sent it.

export type MediaOptions = {
  /** The newest images, documents and sounds that stay, in number. Default 4. */
  readonly keepNewest?: number | undefined;
};

export const mediaCheck = object<MediaOptions>({ keepNewest: wholeNumber(0) });

/**
 * Replaces old images, documents and sounds by stubs, in tool results and in messages of the user. The newest four stay. Throws
 * `bad-config` for options that are not allowed.
 *
 * @example
 * const leporello = createLeporello({ strategies: [offloadMedia({ keepNewest: 8 }), offloadResults(), dropOldest(), clipNewest()] });
 */
export function offloadMedia(options: MediaOptions = {}): Strategy {
  checkSettings(mediaCheck, options, 'offloadMedia');
  const { keepNewest = 4 } = options;
  return { ...mediaStrategy('offload-media', 'history', keepNewest), keepNewestMedia: keepNewest };
}

/** Replaces even the newest images, documents and sounds of a request that would not fit otherwise. */
export function offloadNewestMedia(): Strategy {
  return mediaStrategy('offload-newest-media', 'everything', 0);
}

function mediaStrategy(name: string, reach: Reach, keepNewest: number): Strategy {
  return steppedStrategy(name, reach, (view) => proposeMedia(view, keepNewest, reach === 'everything'));
}

function* proposeMedia(view: FoldView, keepNewest: number, isLastResort: boolean): Steps<readonly Edit[]> {
  if (view.excess.unit === 'messages') return [];
  const edits: Edit[] = [];
  let saved = 0;
  const open = yield* openMedia(view, keepNewest, isLastResort);
  if (open.length === 0) return [];
  yield;
  const originOf = originsIn(view.conversation);
  for (const slot of open) {
    if (saved >= view.excess.amount) break;
    yield;
    const { edit, gain } = stubMedia(view, slot, originOf(slot.at));
    if (gain <= 0 || !view.mayEdit(edit)) continue;
    edits.push(edit);
    saved += gain;
  }
  return edits;
}

/** Returns the media that may be replaced, oldest first. */
function* openMedia(
  { conversation: { messages }, edits, protects }: FoldView,
  keepNewest: number,
  isLastResort: boolean,
): Steps<readonly EditableMedia[]> {
  const edited = placesEdited(edits);
  const open: (readonly EditableMedia[])[] = [];
  let newer = 0;
  for (let index = messages.length - 1; index >= 0; index--) {
    const found = mediaIn(messages[index]!, { edited, protects, keepNewest, newer });
    newer += found.counted;
    const isFree = (isLastResort || !protects.message(index)) && !edited.messages.has(index);
    if (isFree && found.open.length > 0) open.push(found.open);
    yield;
  }
  return open.toReversed().flat();
}

function stubMedia(
  view: FoldView,
  { at, media }: EditableMedia,
  from: string,
): { readonly edit: Edit; readonly gain: number } {
  const { conversation, recallTool } = view;
  const message = conversation.messages[at.message]!;
  const original = bytesOf(conversation.body, message, media.span);
  const memory = view.idOf(original);
  const stub = mediaStub({ ...describeMedia(conversation.body, message, media), from, memory, recallTool });
  // A short address is no longer than its stub, and no edit may make a request longer.
  const isLonger = literalBytes(stub).length + maxFrameBytes > original.length;
  const gain = isLonger ? 0 : view.measure.media(message, media) - view.measure.text(stub);
  return { edit: { kind: 'replace-media', ...at, stub, memory }, gain };
}

/** The bytes around the stub in the largest content part of any format. */
const maxFrameBytes = 40;

/** Returns a function that says where media came from: the step, and its call. */
function originsIn(conversation: Conversation): (at: EditableMedia['at']) => string {
  const { messages } = conversation;
  const steps = stepNumbers(messages);
  const calls = callsByResult(conversation);
  const callOf = (result: string): string | undefined => {
    const call = calls.get(result);
    return call && spellCall(conversation, messages[call.message]!, call.part);
  };
  return ({ message, part }) => {
    const called = callOf(placeKey({ message, part }));
    if (called !== undefined) return `the result of step ${steps[message]}, ${called}`;
    if (steps[message] === 0) return 'sent at the start';
    const before = messages[message - 1];
    const last = before?.role === 'tool' ? callOf(`${message - 1}.${before.parts.length - 1}`) : undefined;
    return `sent after step ${steps[message]}${last === undefined ? '' : `, ${last}`}`;
  };
}

/** Returns the number of the step that each message belongs to; 0 before the first reply. */
function stepNumbers(messages: readonly Message[]): readonly number[] {
  let step = 0;
  return messages.map(({ index }) => (beginsReply(messages, index) ? ++step : step));
}

/** Characters of the arguments that a stub shows. */
const maxArguments = 80;

function spellCall({ body }: Conversation, message: Message, part: number): string {
  const call = message.parts[part];
  if (call?.type !== 'tool-call') return '';
  const input = inputOf(body, message, call).trim();
  const isShort = input.length <= maxArguments && /^[ -~]*$/.test(input);
  return `${label(call.name)} ${isShort ? input : quoted(input, maxArguments)}`;
}
