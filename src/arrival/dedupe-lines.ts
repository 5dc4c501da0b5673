/**
 * Replaces lines that an earlier text of the conversation shows unchanged by a reference to it. A reader who takes a reference literally, and
 * looks in the newest earlier text with that name that shows such lines, finds exactly these lines, and finds the lines themselves, not
 * another reference: a result that is requested again after a reference to it is shown again.
 */
import type { Steps } from '../conversation/steps.ts';
import {
  isReference,
  sameLines,
  sameNumbered,
  sameText,
  type Numbered,
  MIN_LINES,
  linesPerStep,
  type LineRange,
  type OrderedShownText,
  type ShownMatch,
  type ShownTexts,
  type TextLines,
} from './shown-texts.ts';

/** Minimum UTF-16 units that a reference must save. */
const MIN_GAIN = 120;
/** UTF-16 units of the line by which lines without numbers are found; longer beginnings are never looked up. */
const MAX_QUOTE = 60;
const MIN_QUOTE = 12;

/** A text with references. */
export type Referring = {
  readonly text: string;
  /** The ranges of lines that stay unchanged. */
  readonly literal: readonly LineRange[];
  /** The sources of the other lines, and their length in UTF-16 units. */
  readonly sources: readonly ReferenceSource[];
};

export type ReferenceSource = { readonly source: OrderedShownText; readonly characters: number };

/** The earlier texts, and their lines, including those replaced by references. `linesOf` returns the same object for the same text. */
export type Earlier = {
  readonly shown: ShownTexts;
  readonly linesOf: (text: OrderedShownText) => Steps<readonly string[]>;
};

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
  earlier: Earlier,
): Steps<Referring | undefined> {
  const { shown, linesOf } = earlier;
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
  const out: string[] = [];
  const literal: LineRange[] = [];
  const sources: ReferenceSource[] = [];
  let start = 0;
  const leave = (end: number) => {
    if (end > start) literal.push({ start, end });
    for (const line of own.slice(start, end)) out.push(line);
  };
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
    leave(at);
    out.push(block.note);
    sources.push(block);
    at += block.length;
    start = at;
  }
  if (sources.length === 0) return undefined;
  leave(own.length);
  return { text: out.join('\n'), literal, sources };
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
  const address = isNumbered ? rangeOf(lines, at, length) : { begins: quoteOf(mine[0]!) };
  const note =
    'begins' in address
      ? sameLines(length, address.begins, source.label)
      : sameNumbered(address, source.label);
  const characters = charactersOf(mine);
  if (characters - note.length < MIN_GAIN || !(yield* leadsTo(match, address, earlier))) return undefined;
  const theirs = yield* earlier.linesOf(source);
  const isSame = mine.every(
    (line, by) => contentOf(line, isNumbered) === contentOf(theirs[match.at + by]!, isNumbered),
  );
  return isSame ? { ...match, note, characters } : undefined;
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

function charactersOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + line.length + 1, 0);
}

function contentOf(line: string, isNumbered: boolean): string {
  return isNumbered ? line.replace(/^ *\d+/, '') : line;
}

function rangeOf({ numbers }: TextLines, at: number, length: number): Numbered {
  return { from: numbers[at]!, to: numbers[at]! + length - 1 };
}

function quoteOf(line: string): string {
  return line.length > MAX_QUOTE ? line.slice(0, MAX_QUOTE).replace(/[\uD800-\uDBFF]$/, '') : line;
}

/** Number of lookups that read through the text. Building an index costs about as much. */
const FEW = 16;

/** An index of a text, and the number of lookups so far. */
type IndexUse<Index> = { times: number; index: Index | undefined };

const beginnings = new WeakMap<readonly string[], IndexUse<Beginnings>>();
const numbered = new WeakMap<Int32Array, IndexUse<ReadonlyMap<number, number>>>();

/**
 * Returns the index of the first line with this beginning; -1 if there is none. The first few lookups read through the text; after that an
 * index is built, so that very many lookups in a very long text cost n log n.
 */
export function firstBeginning(lines: readonly string[], begins: string): number {
  const asked = askedOf(beginnings, lines);
  if (++asked.times <= FEW) return lines.findIndex((line) => line.startsWith(begins));
  asked.index ??= indexBeginnings(lines);
  return asked.index.first(begins);
}

/** Returns the index of the first line with this number; -1 if there is none. */
export function firstNumbered(numbers: Int32Array, number: number): number {
  const asked = askedOf(numbered, numbers);
  if (++asked.times <= FEW) return numbers.indexOf(number);
  // The first of several lines with the same number is set last, so it wins.
  asked.index ??= new Map([...numbers].map((each, at) => [each, at] as const).toReversed());
  return asked.index.get(number) ?? -1;
}

function askedOf<Key extends WeakKey, Index>(memo: WeakMap<Key, IndexUse<Index>>, key: Key): IndexUse<Index> {
  const asked = memo.get(key) ?? { times: 0, index: undefined };
  memo.set(key, asked);
  return asked;
}

type Beginnings = { first(begins: string): number };

/** Sorts lines by text, so that lines with the same beginning are adjacent; the first of them has the smallest index. */
function indexBeginnings(lines: readonly string[]): Beginnings {
  const heads = lines.map((line) => line.slice(0, MAX_QUOTE));
  const order = Int32Array.from(heads.keys()).sort((one, other) =>
    heads[one]! < heads[other]! ? -1 : heads[one]! > heads[other]! ? 1 : one - other,
  );
  const minIn = minOf(order);
  /** Returns the number of lines before the first one for which `holds` is true; it is true for all lines after that. */
  const before = (holds: (head: string) => boolean): number => {
    let first = 0;
    let last = order.length;
    while (first < last) {
      const middle = (first + last) >> 1;
      if (holds(heads[order[middle]!]!)) last = middle;
      else first = middle + 1;
    }
    return first;
  };
  return {
    first(begins) {
      const start = before((head) => head >= begins);
      const end = before((head) => head > begins && !head.startsWith(begins));
      return start < end ? minIn(start, end) : -1;
    },
  };
}

/** Creates a range-minimum function (end exclusive) with a table of the minimum of 1, 2, 4, 8, ... neighbors. */
function minOf(numbers: Int32Array): (start: number, end: number) => number {
  const levels = [numbers];
  for (let width = 1; width * 2 <= numbers.length; width *= 2) {
    const below = levels.at(-1)!;
    levels.push(below.map((number, at) => Math.min(number, below[at + width] ?? number)));
  }
  return (start, end) => {
    const level = 31 - Math.clz32(end - start);
    return Math.min(levels[level]![start]!, levels[level]![end - 2 ** level]!);
  };
}
