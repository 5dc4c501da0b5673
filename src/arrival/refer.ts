/**
 * Puts references in place of lines that stand as they are in an earlier text of the conversation. Whoever takes a reference at its word, and
 * looks in the newest text above of that name that shows such lines, finds these lines and no others; and finds the lines themselves, not
 * another reference: what was asked for again after a reference to it is laid out once more.
 */
import { isReference, type Numbered, sameLines, sameNumbered, sameText } from './markers.ts';
import { firstBeginning, firstNumbered, LONGEST_BEGINNING } from './line-index.ts';
import { FEWEST_LINES, type Match, type Shown, type ShownTexts, type Stretch } from './shown-texts.ts';
import type { TextLines } from './text-lines.ts';

/** UTF-16 units that a reference must save. */
const LEAST_GAIN = 120;
/** UTF-16 units of the line that lines without numbers are found by. */
const LONGEST_QUOTE = LONGEST_BEGINNING;
const SHORTEST_QUOTE = 12;

export type Referring = {
  readonly text: string;
  /** Where lines of the text stand as they were. */
  readonly literal: readonly Stretch[];
  /** Where the others stand, and UTF-16 units of them. */
  readonly sources: readonly Source[];
};

export type Source = { readonly source: Shown; readonly characters: number };

/** What was shown, and the lines of those texts, those that were referred to as well: of one text always the same object. */
export type Earlier = { readonly shown: ShownTexts; readonly linesOf: (text: Shown) => readonly string[] };

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
  const literal: Stretch[] = [];
  const sources: Source[] = [];
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

type Block = Match & { readonly note: string; readonly characters: number };

/** Undefined where a reference would not be worth it, or could be taken for others. */
function blockOf(
  own: readonly string[],
  lines: TextLines,
  at: number,
  match: Match,
  earlier: Earlier,
): Block | undefined {
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
  { source, at }: Match,
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
