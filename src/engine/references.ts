/**
 * Replaces lines of tool results that an earlier result shows unchanged, or that the result's own call wrote, by references to these. References depend on what is in front and
 * on what the newest fold removed of it, so a result keeps its form until a fold in front of it, and no reference ever points at removed lines. A memo holds the last results in order: each request reuses it up to the first that differs.
 */
import { reportsFailure } from '../arrival/kind.ts';
import { firstBeginning, firstNumbered } from '../arrival/line-index.ts';
import {
  charactersOf,
  isReference,
  MIN_GAIN,
  MIN_QUOTE,
  type Numbered,
  quoteOf,
  type ReplacedLines,
  replaceLines,
  sameLines,
  sameNumbered,
  sameText,
} from '../arrival/markers.ts';
import { writtenLines } from '../arrival/numbered-lines.ts';
import {
  type LineRange,
  MAX_COMPARED,
  MIN_LINES,
  type OrderedShownText,
  type ShownMatch,
  type ShownTexts,
  type TextLines,
  createShownTexts,
  linesPerStep,
  readLines,
  splitLines,
} from '../arrival/shown-texts.ts';
import { openNotes } from '../caches.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { inputOf, textInSteps } from '../conversation/messages.ts';
import type { Edit } from '../conversation/edit.ts';
import type { Steps } from '../conversation/steps.ts';
import type { ToolCallPart } from '../strategies/lib/editable-texts.ts';
import type { ToolResultPart } from '../strategies/shrink-results.ts';

/** An edit that shortens a tool result on arrival. */
export type Shrink = Edit & {
  readonly kind: 'replace-text';
  /** The tokens that it saves. */
  readonly saved: number;
  /** The messages that this one refers to, with the tokens of the lines that were replaced. */
  readonly refers?: readonly { readonly message: number; readonly tokens: number }[];
};

/** One text of a result as it would be sent without references. */
export type ArrivedText = {
  readonly at: Shrink['at'];
  readonly result: ToolResultPart;
  /** Its smaller form; undefined when it is sent unchanged. */
  readonly shrink: Shrink | undefined;
  /** The name that references use for it. */
  readonly label: string;
  readonly mayRefer: boolean;
  /** The call of the result, if its arguments are sent unchanged. */
  readonly call: { readonly message: number; readonly part: ToolCallPart } | undefined;
};

/** The results of one conversation as they were last sent. */
export type ReferenceMemo = {
  /** True while a pass over the results uses it: the pass may be paused. */
  isInUse: boolean;
  /** Is called after each pass: the memo may hold more lines than before. */
  resized: () => void;
  readonly shown: ShownTexts;
  readonly made: {
    readonly arrived: ArrivedText;
    readonly shrink: Shrink | undefined;
    /** The lines of this text and of all before it. */
    readonly lines: number;
  }[];
};

export function createReferenceMemo(): ReferenceMemo {
  return { isInUse: false, resized: () => undefined, shown: createShownTexts(), made: [] };
}

/** Returns the bytes that the memo holds: its index, and 60 for each line. */
export function bytesHeld({ shown, made }: ReferenceMemo): number {
  return shown.bytes() + 60 * (made.at(-1)?.lines ?? 0);
}

/** Returns the edits that shorten these texts, with references, in the order of the conversation. `count` counts the tokens of a text. */
export function* withReferences(
  memo: ReferenceMemo,
  conversation: Conversation,
  texts: readonly ArrivedText[],
  count: (text: string) => Steps<number>,
): Steps<readonly Shrink[]> {
  // A paused request of the same conversation may be using the memo. An empty memo gives the same result.
  const own = memo.isInUse ? createReferenceMemo() : memo;
  own.isInUse = true;
  try {
    return yield* referring(own, conversation, texts, count);
  } finally {
    own.isInUse = false;
    own.resized();
  }
}

function* referring(
  { shown, made }: ReferenceMemo,
  conversation: Conversation,
  texts: readonly ArrivedText[],
  count: (text: string) => Steps<number>,
): Steps<readonly Shrink[]> {
  let common = 0;
  while (common < texts.length && isSame(made[common]?.arrived, texts[common]!)) common++;
  made.length = common;
  yield* shown.truncate(common);
  const split = new Map<ArrivedText, readonly string[]>();
  const linesOf = ({ order }: { readonly order: number }) => splitOnce(split, conversation, texts[order]!);
  for (let order = common; order < texts.length; order++) {
    yield;
    const arrived = texts[order]!;
    const lines = yield* linesIn(conversation, arrived);
    const found =
      (yield* referWritten(conversation, arrived, lines, () => linesOf({ order }))) ??
      (arrived.mayRefer && shown.mayRepeat(lines) && !(yield* isFailureIn(conversation, arrived, lines))
        ? yield* refer(yield* linesOf({ order }), lines, { shown, linesOf })
        : undefined);
    const shrink = found && (yield* shrinkTo(found, arrived, conversation, texts, count));
    const whole = [{ start: 0, end: lines.hashes.length }];
    yield* shown.add({ label: arrived.label, lines, literal: shrink ? found.literal : whole });
    const before = made.at(-1)?.lines ?? 0;
    made.push({ arrived, shrink: shrink ?? arrived.shrink, lines: before + lines.hashes.length });
  }
  const shrinks: Shrink[] = [];
  for (const { shrink } of made) if (shrink) shrinks.push(shrink);
  return shrinks;
}

/** Splits a text into lines once. */
function* splitOnce(
  split: Map<ArrivedText, readonly string[]>,
  conversation: Conversation,
  arrived: ArrivedText,
): Steps<readonly string[]> {
  const lines =
    split.get(arrived) ?? (yield* splitLines(yield* textWithoutReferences(conversation, arrived)));
  split.set(arrived, lines);
  return lines;
}

/** Returns the tokens that shrinks save in each message, by its index. */
export function savedByMessage(shrinks: readonly Shrink[]): ReadonlyMap<number, number> {
  const tokens = new Map<number, number>();
  for (const { at, saved } of shrinks) tokens.set(at.message, (tokens.get(at.message) ?? 0) + saved);
  return tokens;
}

/** Returns the edit that puts references in; undefined when it would save too little. */
function* shrinkTo(
  { text: stub, sources }: Referring,
  arrived: ArrivedText,
  conversation: Conversation,
  texts: readonly ArrivedText[],
  count: (text: string) => Steps<number>,
): Steps<Shrink | undefined> {
  const { at, shrink } = arrived;
  const before = yield* textWithoutReferences(conversation, arrived);
  const won = (yield* count(before)) - (yield* count(stub));
  if (won < minGainTokens || stub.length >= before.length) return undefined;
  const all = sources.reduce((sum, { characters }) => sum + characters, 0);
  const refers = sources.map(({ source, characters }) => ({
    message: source ? texts[source.order]!.at.message : arrived.call!.message,
    tokens: (won * characters) / all,
  }));
  return {
    kind: 'replace-text',
    at,
    stub,
    memory: shrink?.memory,
    saved: (shrink?.saved ?? 0) + won,
    refers,
  };
}

/** The fewest tokens that references must save. */
const minGainTokens = 10;

function isSame(one: ArrivedText | undefined, other: ArrivedText): boolean {
  if (one === other) return true;
  return (
    one?.result === other.result &&
    one.shrink === other.shrink &&
    one.at.message === other.at.message &&
    one.at.part === other.at.part &&
    one.at.text === other.at.text &&
    one.label === other.label &&
    one.mayRefer === other.mayRefer &&
    one.call?.message === other.call?.message &&
    one.call?.part === other.call?.part
  );
}

function* textWithoutReferences(
  conversation: Conversation,
  { at, result, shrink }: ArrivedText,
): Steps<string> {
  if (shrink) return shrink.stub;
  return yield* textInSteps(conversation.body, conversation.messages[at.message]!, result.texts[at.text]!);
}

type ReadKey = Shrink | ToolResultPart['texts'][number];

const linesByText = openNotes<ReadKey, TextLines>('text');
const failures = openNotes<ReadKey, boolean>('text');

/** Returns what lines and failures of a text are remembered with: the result, or its smaller form. */
function keyOf({ at, result, shrink }: ArrivedText): ReadKey {
  return shrink ?? result.texts[at.text]!;
}

/** Reads the lines of a text. */
function* linesIn(conversation: Conversation, arrived: ArrivedText): Steps<TextLines> {
  const key = keyOf(arrived);
  const lines =
    linesByText.get(key) ?? (yield* readLines(yield* textWithoutReferences(conversation, arrived)));
  linesByText.set(key, lines);
  return lines;
}

const isListing = ({ numbers }: TextLines): boolean => numbers.some((number) => number >= 0);

/** True for a text that reports a failure. Its lines are always shown. */
function* isFailureIn(conversation: Conversation, arrived: ArrivedText, lines: TextLines): Steps<boolean> {
  const key = keyOf(arrived);
  const isFailure =
    failures.get(key) ??
    (!isListing(lines) && reportsFailure(yield* textWithoutReferences(conversation, arrived)));
  failures.set(key, isFailure);
  return isFailure;
}

// References in one text. A reader who takes a reference literally, and looks in the newest earlier text with that name that shows such lines, finds
// exactly these lines, and finds the lines themselves, not another reference: a result that is requested again after a reference to it is
// shown again.

/** A text with references. */
type Referring = {
  readonly text: string;
  /** The ranges of lines that stay unchanged. */
  readonly literal: readonly LineRange[];
  /** The sources of the other lines, and their length in UTF-16 units. */
  readonly sources: readonly ReferenceSource[];
};

/** `source` is undefined for the call of the text itself. */
type ReferenceSource = { readonly source: OrderedShownText | undefined; readonly characters: number };

/** The earlier texts, and their lines, including those replaced by references. `linesOf` returns the same object for the same text. */
type Earlier = {
  readonly shown: ShownTexts;
  readonly linesOf: (text: OrderedShownText) => Steps<readonly string[]>;
};

/** Replaces the lines of a listing that its call wrote; undefined if there are none. */
function* referWritten(
  { body, messages }: Conversation,
  { mayRefer, call }: ArrivedText,
  lines: TextLines,
  linesOf: () => Steps<readonly string[]>,
): Steps<Referring | undefined> {
  if (!mayRefer || !call || lines.isLaidOut || !isListing(lines)) return undefined;
  const bytes = call.part.input.end - call.part.input.start;
  if (bytes < MIN_GAIN || bytes > MAX_COMPARED) return undefined;
  const own = yield* linesOf();
  if (own.some(isReference)) return undefined;
  const input = inputOf(body, messages[call.message]!, call.part);
  return replaced(own, yield* writtenLines(own, lines.numbers, input));
}

/** Replaces equal lines; undefined if there are none. */
export function* refer(
  own: readonly string[],
  lines: TextLines,
  earlier: Earlier,
): Steps<Referring | undefined> {
  for (let at = 0; at < own.length; at++) {
    if (isReference(own[at]!)) return undefined;
    if (at % linesPerStep === linesPerStep - 1) yield;
  }
  const whole = yield* referWhole(own, lines, earlier);
  return whole ?? (lines.isLaidOut ? undefined : yield* referBlocks(own, lines, earlier));
}

function* referWhole(
  own: readonly string[],
  lines: TextLines,
  { shown, linesOf }: Earlier,
): Steps<Referring | undefined> {
  const characters = charactersOf(own);
  for (const source of shown.same(lines)) {
    const note = sameText(source.label);
    if (characters - note.length < MIN_GAIN) continue;
    const theirs = yield* linesOf(source);
    yield;
    if (own.every((line, at) => line === theirs[at]))
      return { text: note, literal: [], sources: [{ source, characters }] };
  }
  return undefined;
}

function* referBlocks(
  own: readonly string[],
  lines: TextLines,
  earlier: Earlier,
): Steps<Referring | undefined> {
  const blocks: ReferredLines[] = [];
  let visited = 0;
  for (let at = 0; at + MIN_LINES <= own.length; ) {
    if (++visited % linesBetween === 0) yield;
    const matches = canBegin(own[at]!, lines.numbers[at]!) ? earlier.shown.matches(lines, at) : [];
    let block: ReferredBlock | undefined;
    for (const match of matches) block ??= yield* blockOf(own, lines, at, match, earlier);
    if (!block) {
      // Larger steps after longer rejected matches keep a text full of them from taking long.
      at += Math.max(1, (matches[0]?.length ?? 0) >> 3);
      continue;
    }
    blocks.push({ ...block, at });
    at += block.length;
  }
  return replaced(own, blocks);
}

/** Lines of a text, the reference in their place, and their source. */
type ReferredLines = ReplacedLines & Omit<ReferenceSource, 'source'> & { readonly source?: OrderedShownText };

function replaced(own: readonly string[], blocks: readonly ReferredLines[]): Referring | undefined {
  if (blocks.length === 0) return undefined;
  const sources = blocks.map(({ source, characters }) => ({ source, characters }));
  return { ...replaceLines(own, blocks), sources };
}

/** The number of visited lines between two pauses: each may be looked up in several texts. */
const linesBetween = 64;

/** True if a block could be found by its first line. */
function canBegin(line: string, number: number): boolean {
  return number !== -1 || quoteOf(line).trim().length >= MIN_QUOTE;
}

type ReferredBlock = ShownMatch & { readonly note: string; readonly characters: number };

/** Builds a reference; undefined if it would save too little or be ambiguous. */
function* blockOf(
  own: readonly string[],
  lines: TextLines,
  at: number,
  match: ShownMatch,
  earlier: Earlier,
): Steps<ReferredBlock | undefined> {
  const { source, length } = match;
  const mine = own.slice(at, at + length);
  const isNumbered = lines.numbers[at] !== -1;
  // If the numbers moved, the new numbers would be lost.
  if (isNumbered && source.lines.numbers[match.at] !== lines.numbers[at]) return undefined;
  const from = lines.numbers[at]!;
  const address = isNumbered ? { from, to: from + length - 1 } : { begins: quoteOf(mine[0]!) };
  const note =
    'begins' in address
      ? sameLines(length, address.begins, source.label)
      : sameNumbered(address, source.label);
  const characters = charactersOf(mine);
  if (characters - note.length < MIN_GAIN || !(yield* leadsTo(match, address, earlier))) return undefined;
  const theirs = yield* earlier.linesOf(source);
  const isEqual = mine.every(
    (line, by) => contentOf(line, isNumbered) === contentOf(theirs[match.at + by]!, isNumbered),
  );
  return isEqual ? { ...match, note, characters } : undefined;
}

/** True if the newest text with that label that shows such lines shows exactly these. */
function* leadsTo(
  { source, at }: ShownMatch,
  address: Numbered | { readonly begins: string },
  { shown, linesOf }: Earlier,
): Steps<boolean> {
  for (const text of shown.labeled(source.label)) {
    // Its lines are not known.
    if (text.lines.isOneLine) return false;
    const found =
      'begins' in address
        ? firstBeginning(yield* linesOf(text), address.begins)
        : firstNumbered(text.lines.numbers, address.from);
    if (found >= 0) return text === source && found === at;
  }
  return false;
}

function contentOf(line: string, isNumbered: boolean): string {
  return isNumbered ? line.replace(/^ *\d+/, '') : line;
}
