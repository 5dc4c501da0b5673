/**
 * Puts references in place of lines that stand as they are in an earlier text of the conversation. Whoever takes a reference at its word, and
 * looks in the newest text above of that name that shows such lines, finds these lines and no others; and finds the lines themselves, not
 * another reference: what was asked for again after a reference to it is laid out once more.
 */
import { isReference, sameLines, sameNumbered, sameText, type Numbered } from './markers.ts';
import {
  FEWEST_LINES,
  type LineRange,
  type OrderedShownText,
  type ShownMatch,
  type ShownTexts,
  type TextLines,
} from './shown-texts.ts';

/** UTF-16 units that a reference must save. */
const LEAST_GAIN = 120;
/** UTF-16 units of the line by which lines without numbers are found; longer beginnings are never looked up. */
const LONGEST_QUOTE = 60;
const SHORTEST_QUOTE = 12;

export type Referring = {
  readonly text: string;
  /** Where lines of the text stand as they were. */
  readonly literal: readonly LineRange[];
  /** Where the others stand, and UTF-16 units of them. */
  readonly sources: readonly ReferenceSource[];
};

export type ReferenceSource = { readonly source: OrderedShownText; readonly characters: number };

/** What was shown, and the lines of those texts, those that were referred to as well: of one text always the same object. */
export type Earlier = {
  readonly shown: ShownTexts;
  readonly linesOf: (text: OrderedShownText) => readonly string[];
};

/** Undefined where nothing is referred to. */
export function refer(own: readonly string[], lines: TextLines, earlier: Earlier): Referring | undefined {
  if (own.some(isReference)) return undefined;
  return referWhole(own, lines, earlier) ?? (lines.isLaidOut ? undefined : referBlocks(own, lines, earlier));
}

function referWhole(own: readonly string[], lines: TextLines, earlier: Earlier): Referring | undefined {
  const { shown, linesOf } = earlier;
  const characters = charactersOf(own);
  for (const source of shown.same(lines)) {
    const note = sameText(source.label);
    if (characters - note.length < LEAST_GAIN) continue;
    const theirs = linesOf(source);
    if (own.every((line, at) => line === theirs[at]))
      return { text: note, literal: [], sources: [{ source, characters }] };
  }
  return undefined;
}

function referBlocks(own: readonly string[], lines: TextLines, earlier: Earlier): Referring | undefined {
  const out: string[] = [];
  const literal: LineRange[] = [];
  const sources: ReferenceSource[] = [];
  let start = 0;
  const leave = (end: number) => {
    if (end > start) literal.push({ start, end });
    for (const line of own.slice(start, end)) out.push(line);
  };
  for (let at = 0; at + FEWEST_LINES <= own.length; ) {
    const matches = canBegin(own[at]!, lines.numbers[at]!) ? earlier.shown.matches(lines, at) : [];
    const block = matches
      .map((match) => blockOf(own, lines, at, match, earlier))
      .find((one) => one !== undefined);
    if (!block) {
      // Steps that grow with what was refused keep a text that is full of it from taking long.
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

/** Whether lines from this one on could be found by it. */
function canBegin(line: string, number: number): boolean {
  return number !== -1 || quoteOf(line).trim().length >= SHORTEST_QUOTE;
}

type ReferredBlock = ShownMatch & { readonly note: string; readonly characters: number };

/** Undefined where a reference would not be worth it, or could be taken for others. */
function blockOf(
  own: readonly string[],
  lines: TextLines,
  at: number,
  match: ShownMatch,
  earlier: Earlier,
): ReferredBlock | undefined {
  const { source, length } = match;
  const mine = own.slice(at, at + length);
  const isNumbered = lines.numbers[at] !== -1;
  // Where the numbers moved, those of the new listing would stand nowhere.
  if (isNumbered && source.lines.numbers[match.at] !== lines.numbers[at]) return undefined;
  const address = isNumbered ? rangeOf(lines, at, length) : { begins: quoteOf(mine[0]!) };
  const note =
    'begins' in address
      ? sameLines(length, address.begins, source.label)
      : sameNumbered(address, source.label);
  const characters = charactersOf(mine);
  if (characters - note.length < LEAST_GAIN || !leadsTo(match, address, earlier)) return undefined;
  const theirs = earlier.linesOf(source);
  const isSame = mine.every(
    (line, by) => contentOf(line, isNumbered) === contentOf(theirs[match.at + by]!, isNumbered),
  );
  return isSame ? { ...match, note, characters } : undefined;
}

/** Whether the newest text of that name that shows such lines shows these. */
function leadsTo(
  { source, at }: ShownMatch,
  address: Numbered | { readonly begins: string },
  { shown, linesOf }: Earlier,
): boolean {
  for (const text of shown.labelled(source.label)) {
    const found =
      'begins' in address
        ? firstBeginning(linesOf(text), address.begins)
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
  return line.length > LONGEST_QUOTE ? line.slice(0, LONGEST_QUOTE).replace(/[\uD800-\uDBFF]$/, '') : line;
}

/** Questions that are answered by reading through the text. An index costs about as much as so many. */
const FEW = 16;

/** An index by line, and how often it was asked for. */
type IndexUse<Index> = { times: number; index: Index | undefined };

const beginnings = new WeakMap<readonly string[], IndexUse<Beginnings>>();
const numbered = new WeakMap<Int32Array, IndexUse<ReadonlyMap<number, number>>>();

/** The place of the first line that begins so; -1 where none does. */
export function firstBeginning(lines: readonly string[], begins: string): number {
  const asked = askedOf(beginnings, lines);
  if (++asked.times <= FEW) return lines.findIndex((line) => line.startsWith(begins));
  asked.index ??= indexBeginnings(lines);
  return asked.index.first(begins);
}

/** The place of the first line with this number; -1 where there is none. */
export function firstNumbered(numbers: Int32Array, number: number): number {
  const asked = askedOf(numbered, numbers);
  if (++asked.times <= FEW) return numbers.indexOf(number);
  // The first of several lines with one number is set last.
  asked.index ??= new Map([...numbers].map((each, at) => [each, at] as const).toReversed());
  return asked.index.get(number) ?? -1;
}

function askedOf<Key extends WeakKey, Index>(memo: WeakMap<Key, IndexUse<Index>>, key: Key): IndexUse<Index> {
  const asked = memo.get(key) ?? { times: 0, index: undefined };
  memo.set(key, asked);
  return asked;
}

type Beginnings = { first(begins: string): number };

/** Lines in the order of their text: those that begin alike stand together, and the first of them is the least of their places. */
function indexBeginnings(lines: readonly string[]): Beginnings {
  const heads = lines.map((line) => line.slice(0, LONGEST_QUOTE));
  const order = Int32Array.from(heads.keys()).sort((one, other) =>
    heads[one]! < heads[other]! ? -1 : heads[one]! > heads[other]! ? 1 : one - other,
  );
  const leastIn = leastOf(order);
  /** How many lines stand before the first for which this holds, which holds for all behind it. */
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
      return start < end ? leastIn(start, end) : -1;
    },
  };
}

/** Answers which is the least number from one place to another (exclusive): a table of the least of 1, 2, 4, 8, ... neighbors. */
function leastOf(numbers: Int32Array): (start: number, end: number) => number {
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
