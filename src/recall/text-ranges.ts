/**
 * Finds and spells ranges of lines and characters: numbered from 1, both ends included, as models write them. A line ends at `\n`; the last line
 * includes a final `\n`, so the lines of a text joined by `\n` are the text. Characters are UTF-16 units, and no range splits a
 * code point. The functions are linear, without an index of the lines. Pure.
 */
import { wholeAfter, wholeBefore } from '../conversation/messages.ts';

export type Unit = 'lines' | 'characters';

/** A range that a model asked for. */
export type Range =
  | { readonly kind: 'span'; readonly unit: Unit; readonly from: number; readonly to: number | undefined }
  | { readonly kind: 'tail'; readonly unit: Unit; readonly count: number };

/** A range of a text in UTF-16 units, `end` exclusive. */
export type TextSpan = { readonly start: number; readonly end: number };

const lineBreak = 0x0a;

const form =
  /^(?:(c)(?:haracters?|hars?)?|l(?:ines?)?)?\s*(\d{0,15})(?:\s*(-|–|—|to|:|\.{2,3}|,)\s*[cl]?\s*(\d{0,15}))?$/i;

/**
 * Reads "10-40", "10", "100-", "-20" (the last 20), "c1-2000" (characters), and "10,40", which is the list `[10, 40]` as text;
 * undefined for anything else.
 */
export function parseRange(text: string): Range | undefined {
  const given = text.slice(0, 100);
  const [, characters, first = '', separator, last = ''] = form.exec(unquoted(given)) ?? [];
  if (first === '' && last === '') return undefined;
  const unit = characters === undefined ? 'lines' : 'characters';
  if (first === '' && /^[-–—]$/.test(separator ?? '')) return { kind: 'tail', unit, count: atLeastOne(last) };
  const from = atLeastOne(first);
  if (separator === undefined) return { kind: 'span', unit, from, to: from };
  if (last === '') return { kind: 'span', unit, from, to: undefined };
  const to = atLeastOne(last);
  return { kind: 'span', unit, from: Math.min(from, to), to: Math.max(from, to) };
}

/** Returns the place of a range in the text, cut to the text's length; undefined when it begins after the end. */
export function locate(text: string, range: Range): TextSpan | undefined {
  const total = range.unit === 'lines' ? countLines(text) : text.length;
  const from = range.kind === 'tail' ? Math.max(1, total - range.count + 1) : range.from;
  const to = range.kind === 'tail' ? total : Math.min(total, range.to ?? total);
  if (from > total) return undefined;
  if (range.unit === 'lines') {
    const start = nextLines(text, 0, from - 1);
    return { start, end: to === total ? text.length : nextLines(text, start, to - from + 1) - 1 };
  }
  return { start: wholeBefore(text, from - 1), end: wholeAfter(text, to) };
}

/** Spells a place as a `lines` argument: in lines if it is whole lines, else in characters. */
export function spellRange(text: string, span: TextSpan): string {
  const spelled = spellPlace(text, span, unitOf(text, span));
  return unitOf(text, span) === 'lines' ? spelled : `c${spelled}`;
}

/** Spells the first and last line or character of the place: "10-40", or "10" when they are the same line. */
export function spellPlace(text: string, { start, end }: TextSpan, unit: Unit): string {
  if (unit === 'characters') return `${start + 1}-${end}`;
  const first = 1 + countBreaks(text, 0, start);
  const last = first + countBreaks(text, start, end === text.length && text.endsWith('\n') ? end - 1 : end);
  return first === last ? `${first}` : `${first}-${last}`;
}

export function unitOf(text: string, { start, end }: TextSpan): Unit {
  const isStart = start === 0 || text[start - 1] === '\n';
  const isEnd = end === text.length || (text[end] === '\n' && end !== text.length - 1);
  return isStart && isEnd ? 'lines' : 'characters';
}

export function countLines(text: string): number {
  if (text === '') return 0;
  return countBreaks(text, 0, text.length) + (text.endsWith('\n') ? 0 : 1);
}

function countBreaks(text: string, start: number, end: number): number {
  // Looking for each break is several times faster than looking at each character.
  let count = 0;
  for (let at = text.indexOf('\n', start); at >= 0 && at < end; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

/** Returns the offset after the next `count` line breaks. */
function nextLines(text: string, offset: number, count: number): number {
  let at = offset;
  for (let left = count; left > 0; at++) if (text.charCodeAt(at) === lineBreak) left--;
  return at;
}

/** Characters of the shortest line that says something. */
const minContent = 8;

/** Returns the lines of a text that say something, without their numbers. */
export function contentOf(text: string): readonly string[] {
  return text.split('\n').flatMap((line) => {
    const own = withoutNumber(line);
    return own.length < minContent ? [] : [own];
  });
}

/** Returns a line without the number that tools put before the lines of files, and without the white space around it. */
export function withoutNumber(line: string): string {
  return line.replace(/^\s*\d+(?:→|\t|:|-)/, '').trim();
}

function atLeastOne(digits: string): number {
  return Math.max(1, Number(digits));
}

function unquoted(text: string): string {
  return text.replaceAll(/["'`[\]\s]+/g, ' ').trim();
}
