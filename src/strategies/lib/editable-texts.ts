/**
 * Finds what edits may still change, given the edits made so far: texts that can be replaced, messages that can be dropped, and the tokens that
 * messages still have.
 */
import type {
  Conversation,
  Media,
  MediaPlace,
  Message,
  Part,
  TextPlace,
} from '../../conversation/conversation.ts';
import {
  bytesOf,
  decodeLiteral,
  inputOf,
  mediaOf,
  memoized,
  memoizedInSteps,
  messagesPerStep,
  textInSteps,
  textOf,
  textsOf,
} from '../../conversation/messages.ts';
import { type Edit, isReplaceable, lastMessageOf } from '../../conversation/edit.ts';
import { type Steps, runSteps } from '../../conversation/steps.ts';
import { parseRecord, scanArray, scanObject } from '../../conversation/json-scan.ts';
import { placeKey, unitsOf } from '../../conversation/turns.ts';
import { type FoldView, type Reach, type Strategy, steppedStrategy } from '../strategy.ts';
import { checkSettings, object, wholeNumber } from '../../checks.ts';

/** A text that can be replaced. */
export type EditableText = {
  readonly at: TextPlace;
  readonly message: Message;
  readonly part: Part;
  /** The JSON string literal, which is stored as the original. */
  readonly literal: Uint8Array;
  text(): string;
  /** Decodes a text that may be very long. */
  textInSteps(): Steps<string>;
};

/** Yields the texts of parts of one type, in order, except those that edits have dropped or replaced. */
export function* editableTexts(view: FoldView, type: Part['type']): Generator<EditableText> {
  const gone = placesEdited(view.edits);
  for (const message of view.conversation.messages) {
    if (gone.messages.has(message.index)) continue;
    for (let index = 0; index < message.parts.length; index++) {
      const part = message.parts[index]!;
      if (part.type !== type || isEdited(gone.parts, message.index, index)) continue;
      for (const [text, span] of textsOf(part).entries()) {
        if (isEdited(gone.texts, message.index, index, text)) continue;
        yield {
          at: { message: message.index, part: index, text },
          message,
          part,
          literal: bytesOf(view.conversation.body, message, span),
          text: () => textOf(view.conversation.body, message, span),
          textInSteps: () => textInSteps(view.conversation.body, message, span),
        };
      }
    }
  }
}

/** Looks a place up by its key. It runs for every place of the conversation, mostly on an empty set, which needs no key. */
function isEdited(places: ReadonlySet<string>, ...place: readonly number[]): boolean {
  return places.size > 0 && places.has(place.join('.'));
}

/** The places that edits have dropped or replaced: messages by index, everything else by key of place. */
export type EditedPlaces = {
  readonly messages: ReadonlySet<number>;
  readonly parts: ReadonlySet<string>;
  readonly texts: ReadonlySet<string>;
  readonly inputs: ReadonlySet<string>;
  readonly media: ReadonlySet<string>;
};

/** Returns the edited places. They are remembered per list of edits, since a fold's list is the same in every request. */
export const { now: placesEdited, inSteps: placesInSteps } = memoizedInSteps(placesOf);

/** Five sets for each request that is not edited would stay in memory with it. */
const none: ReadonlySet<never> = new Set<never>();
const noPlaces: EditedPlaces = { messages: none, parts: none, texts: none, inputs: none, media: none };

function* placesOf(edits: readonly Edit[]): Steps<EditedPlaces> {
  if (edits.length === 0) return noPlaces;
  const messages = new Set<number>();
  const parts = new Set<string>();
  const texts = new Set<string>();
  const inputs = new Set<string>();
  const media = new Set<string>();
  for (const [at, edit] of edits.entries()) {
    if (at % messagesPerStep === 0) yield;
    if (edit.kind === 'drop-message') messages.add(edit.message);
    else if (edit.kind === 'drop-part') parts.add(`${edit.message}.${edit.part}`);
    else if (edit.kind === 'replace-text') texts.add(`${edit.at.message}.${edit.at.part}.${edit.at.text}`);
    else if (edit.kind === 'replace-input') inputs.add(`${edit.message}.${edit.part}`);
    else if (edit.kind === 'replace-media') media.add(`${edit.message}.${edit.part}.${edit.media}`);
  }
  return { messages, parts, texts, inputs, media };
}

/** Returns the edits without those of texts whose message is dropped: its original holds them. */
export function withoutDropped(edits: readonly Edit[]): readonly Edit[] {
  const dropped = new Set<number>();
  for (const edit of edits)
    if (edit.kind === 'drop-message' && edit.memory !== undefined) dropped.add(edit.message);
  return edits.filter(
    (edit) =>
      (edit.kind !== 'replace-text' && edit.kind !== 'replace-input') || !dropped.has(lastMessageOf(edit)),
  );
}

/** Returns a function that names the strategy that folded a part; empty for a part that is sent. */
export function folderOf(edits: readonly Edit[]): (message: Message, part: number) => string {
  const byPlace = new Map<string, string>();
  for (const edit of edits) {
    if (edit.kind === 'insert-message' || edit.kind === 'replace-media' || edit.by === repairing) continue;
    const place =
      edit.kind === 'drop-message'
        ? `${edit.message}`
        : placeKey(edit.kind === 'replace-text' ? edit.at : edit);
    byPlace.set(place, makerOf(edit, edits));
  }
  return ({ index }, part) =>
    byPlace.get(`${index}`) ?? byPlace.get(placeKey({ message: index, part })) ?? '';
}

/** Names the strategies whose edits leave something out of a request, joined by ` + ` in alphabetical order; empty if none does. */
export function strategiesOf(
  edits: readonly Edit[],
  shrinks: readonly (Edit & { readonly refers?: unknown })[],
): string {
  const isShrunk = shrinks.some((edit) => 'memory' in edit && edit.memory !== undefined && !edit.refers);
  const names = new Set(isShrunk ? ['shrink-results'] : []);
  for (const edit of edits)
    if (edit.by !== repairing && edit.kind !== 'insert-message') names.add(makerOf(edit, edits));
  return [...names].toSorted().join(' + ');
}

/** Gives lines back in the report of a failed edit, so it leaves nothing out. */
const repairing = 'repair-edit';

/** Names the strategy that made an edit. Versions that did not record it used these, and the defaults of the wire formats. */
function makerOf({ by, kind }: Edit, edits: readonly Edit[]): string {
  if (by !== undefined) return by;
  switch (kind) {
    case 'replace-text':
      return 'offload-results';
    case 'replace-input':
      return 'stub-arguments';
    case 'replace-media':
      return 'offload-media';
    case 'drop-message':
    case 'drop-part':
    case 'insert-message':
      return droppingBy(edits);
  }
}

/** Names the strategy that dropped messages, by what it left in their place. */
const droppingBy = memoized((edits: readonly Edit[]): string => {
  const holds = (key: 'summary' | 'stretch') =>
    edits.some((edit) => edit.kind === 'insert-message' && edit[key] !== undefined);
  if (holds('summary')) return 'summarize-history';
  return holds('stretch') ? 'fold-subgoals' : 'drop-oldest';
});

/** An image, document or sound that can be replaced. */
export type EditableMedia = { readonly at: MediaPlace; readonly media: Media };

/** The media of a message: those that a stub may replace, and the number of media that count as newer for the messages before. */
export type MediaOfMessage = { readonly open: readonly EditableMedia[]; readonly counted: number };

/**
 * Returns the media of a message that a stub may replace, in order. `newer` is the number of media in later messages: the newest
 * `keepNewest` of the conversation stay. Recalled media count neither as old nor as new.
 */
export function mediaIn(
  { index, role, parts }: Message,
  { edited, protects, keepNewest, newer }: MediaLimits,
): MediaOfMessage {
  if (role !== 'user' && role !== 'tool') return noMedia;
  const open: EditableMedia[] = [];
  let counted = 0;
  for (let part = parts.length - 1; part >= 0; part--) {
    const media = mediaOf(parts[part]!);
    if (media.length === 0 || protects.recalled(index, part)) continue;
    for (let at = media.length - 1; at >= 0; at--) {
      if (!isReplaceable(media[at]!)) continue;
      counted++;
      const isKept =
        newer + counted <= keepNewest ||
        protects.part(index, part) ||
        isEdited(edited.parts, index, part) ||
        isEdited(edited.media, index, part, at);
      if (!isKept) open.push({ at: { message: index, part, media: at }, media: media[at]! });
    }
  }
  return counted === 0 ? noMedia : { open: open.toReversed(), counted };
}

type MediaLimits = {
  readonly edited: EditedPlaces;
  readonly protects: Pick<FoldView['protects'], 'part' | 'recalled'>;
  readonly keepNewest: number;
  readonly newer: number;
};

const noMedia: MediaOfMessage = { open: [], counted: 0 };

const encoder = new TextEncoder();

/** True for a text of at least so many UTF-8 bytes. A UTF-16 unit takes one to three of them, so only short texts are measured. */
export function hasBytes(text: string, min: number): boolean {
  return text.length >= min || (text.length * 3 >= min && encoder.encode(text).length >= min);
}

/** Yields the units (messages that must be dropped together) that may be dropped, oldest first. */
export function* freeUnits(view: FoldView): Generator<readonly Message[]> {
  for (const unit of unitsOf(view.conversation)) {
    const open = runSteps(freeMessagesOf(view, unit));
    if (open.length > 0) yield open;
  }
}

/** Returns the messages of a unit that are not dropped yet; none if the unit may not be dropped. */
export function* freeMessagesOf(view: FoldView, unit: readonly Message[]): Steps<readonly Message[]> {
  const gone = placesEdited(view.edits).messages;
  const open = gone.size === 0 ? unit : unit.filter(({ index }) => !gone.has(index));
  for (const message of open) {
    yield;
    if (!isFree(view, message)) return [];
  }
  return open;
}

function isFree(view: FoldView, message: Message): boolean {
  return (
    message.role !== 'system' &&
    isDroppable(view.protects, message) &&
    view.mayEdit({ kind: 'drop-message', message: message.index, memory: undefined })
  );
}

/** True if nothing in a message is protected. */
export function isDroppable(protects: FoldView['protects'], { index, parts }: Message): boolean {
  if (protects.message(index)) return false;
  for (let part = 0; part < parts.length; part++) if (!isPartDroppable(protects, index, part)) return false;
  return true;
}

/** True if neither a part nor a text in it is protected. */
export function isPartDroppable(protects: FoldView['protects'], message: number, part: number): boolean {
  return !protects.part(message, part) && !protects.keptTexts?.(message, part).length;
}

type MeasuredView = Pick<FoldView, 'conversation' | 'edits'> & {
  readonly measure: Omit<FoldView['measure'], 'textInSteps'>;
};

/** Returns a function that counts a message's tokens by index: results and arguments with a stub count as the stub. */
export function remainingTokens(view: MeasuredView): (index: number) => number {
  return runSteps(remainingInSteps(view));
}

/** Returns the same function in steps: it measures every part that was edited. */
export function* remainingInSteps(view: MeasuredView): Steps<(index: number) => number> {
  const replaced = new Map<number, number>();
  for (const edit of view.edits) {
    if (edit.kind !== 'replace-text' && edit.kind !== 'replace-input' && edit.kind !== 'replace-media')
      continue;
    const message = view.conversation.messages[lastMessageOf(edit)]!;
    const part = message.parts[edit.kind === 'replace-text' ? edit.at.part : edit.part]!;
    const stub = edit.kind === 'replace-input' ? edit.input : edit.stub;
    const tokensOf = (media: Media) => view.measure.media(message, media);
    const before =
      edit.kind === 'replace-media'
        ? tokensOf(mediaOf(part)[edit.media]!)
        : mediaOf(part).reduce((left, media) => left - tokensOf(media), view.measure.part(message, part));
    replaced.set(message.index, (replaced.get(message.index) ?? 0) + before - view.measure.text(stub));
    yield;
  }
  return (index) => Math.max(0, view.measure.message(index) - (replaced.get(index) ?? 0));
}

// Long texts in the arguments of calls: file contents, patches, commands. Each is found by its place in the bytes, so that the rest keeps
// its spelling.

export type ToolCallPart = Part & { readonly type: 'tool-call' };

/** The arguments of a call, with their long texts in order. */
export type LongArguments = {
  /** The object as JSON text in UTF-8. */
  readonly json: Uint8Array;
  readonly values: readonly LongValue[];
};

export type LongValue = {
  /** The place of the string literal in the JSON text. */
  readonly span: ToolCallPart['span'];
  readonly text: string;
  /** The path to the value, such as `$.edits[0].new_string`. */
  readonly path: string;
};

/** Maximum depth of the search: tools take flat arguments, and depth must not exhaust the stack. */
const maxDepth = 8;

/** Finds texts of at least `minBytes` bytes; undefined if the arguments are no object or contain none. */
export function longArguments(
  { body }: Conversation,
  message: Message,
  call: ToolCallPart,
  minBytes: number,
): LongArguments | undefined {
  // A text is never longer than its literal, nor than the arguments.
  if (call.input.end - call.input.start - 2 < minBytes) return undefined;
  const input = inputOf(body, message, call);
  // A model wrote the arguments: they may be invalid JSON, or contain half a character, which cannot be encoded.
  if (!input.isWellFormed() || parseRecord(input) === undefined) return undefined;
  const json = new TextEncoder().encode(input);
  const values = [...longValues(json, json.indexOf('{'.charCodeAt(0)), '$', minBytes, maxDepth)];
  return values.length > 0 ? { json, values } : undefined;
}

function* longValues(
  json: Uint8Array,
  start: number,
  path: string,
  minBytes: number,
  depth: number,
): Generator<LongValue> {
  for (const { span, path: place } of childrenOf(json, start, path)) {
    if (span.end - span.start - 2 < minBytes) continue;
    const first = String.fromCharCode(json[span.start]!);
    if (first !== '"') {
      if (depth > 0) yield* longValues(json, span.start, place, minBytes, depth - 1);
      continue;
    }
    const text = decodeLiteral(json.subarray(span.start, span.end));
    if (hasBytes(text, minBytes)) yield { span, text, path: place };
  }
}

function childrenOf(
  json: Uint8Array,
  start: number,
  path: string,
): readonly { readonly span: ToolCallPart['span']; readonly path: string }[] {
  switch (String.fromCharCode(json[start]!)) {
    case '{': {
      const { members } = scanObject(json, start);
      // With two members of the same name, a path would lead to the last one.
      if (new Set(members.map(({ key }) => key)).size < members.length) return [];
      return members.map(({ key, value }) => ({ span: value, path: path + step(key) }));
    }
    case '[':
      return scanArray(json, start).elements.map((span, index) => ({ span, path: `${path}[${index}]` }));
    default:
      return [];
  }
}

function step(key: string): string {
  return /^[A-Za-z_]\w{0,63}$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

export type MinBytesOptions = {
  /** Texts of fewer bytes (UTF-8) are never replaced. Default 1,000. */
  readonly minResultBytes?: number | undefined;
};

const minBytesCheck = object<MinBytesOptions>({ minResultBytes: wholeNumber(0) });

type StrategyShape = { readonly name: string; readonly reach: Reach; readonly calledAs: string };

/** Creates a strategy whose view has the minimum of its options. Throws `bad-config` for other options; `calledAs` is the function that got them. */
export function minBytesStrategy(
  { name, reach, calledAs }: StrategyShape,
  options: MinBytesOptions,
  propose: (view: FoldView) => Steps<readonly Edit[]>,
): Strategy {
  checkSettings(minBytesCheck, options, calledAs);
  const { minResultBytes = 1_000 } = options;
  const stepped = steppedStrategy(name, reach, (view) => propose({ ...view, minResultBytes }));
  return { ...stepped, minResultBytes };
}
