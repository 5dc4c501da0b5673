/**
 * Tells a summary that a client wrote of what came before: the goal, what was solved, the words of the user and what was open. A section ends with what came of it, so
 * its end is told, too. Linear, also on hostile text. Pure.
 */
import { oneLine, wholeWords } from '../outcome.ts';
import {
  endsOf,
  joinedApart,
  joinedSentences,
  linesOf,
  markedLines,
  maxRead,
  partsOf,
} from '../sentences.ts';
import { clientSummary } from './typed-text.ts';

/** Matches what clients write around their summaries: a draft of it before, and how to go on behind. */
const startOfSummary = /\n(?:#{1,4} )?\**Summary\**:\**[^\S\n]{0,20}\n/;
const endOfSummary =
  /\n(?:If you need specific details from before compaction|(?:Please )?continue the conversation from where)[^]*$/i;

/** Matches the heading of a section in such a summary: a number and a few words, at the margin. */
const sectionHeading = /^(?:#{1,4} +)?\d{1,2}[.)] +\**([^\n*:：]{2,60})\**[:：]\**[^\S\n]*$/;

/**
 * UTF-16 units of the sections that are kept: the goal, the one ahead of the user's words, which says what was solved, the user's words, and the last three,
 * which say what was open. Those ahead of what was solved list files and errors, and are told in short.
 */
type SectionRoom = {
  readonly goal: number;
  readonly solved: number;
  readonly listed: number;
  readonly open: readonly [number, number, number];
};

/** In a log, the very last section is left out: it repeats those ahead of it. */
const inLog: SectionRoom = { goal: 240, solved: 180, listed: 160, open: [200, 120, 0] };

/** A summary of the summary is all that is left of it. */
export const inSummary: SectionRoom = { goal: 400, solved: 320, listed: 320, open: [320, 400, 240] };

const maxQuoting = 4_000;
const maxQuote = 400;

/** A line of a client's summary. `isState`: it tells how things stood then. `isQuoting`: it has the words of the user. */
export type SummaryLine = { readonly text: string; readonly isState: boolean; readonly isQuoting: boolean };

/**
 * Returns what a summary by the client says of the goal, of what was solved, in the user's words and of what was open, each with the heading of its
 * section; other sections, which explain code and steps, are left out.
 */
export function summaryLines(text: string, room = inLog): readonly SummaryLine[] {
  const whole = endsOf(text.replace(clientSummary, '').replace(endOfSummary, ''), maxRead);
  const sections: { heading: string; text: string }[] = [{ heading: '', text: '' }];
  const start = startOfSummary.exec(whole);
  for (const line of whole.slice(start === null ? 0 : start.index + start[0].length).split('\n')) {
    const heading = sectionHeading.exec(line)?.[1];
    if (heading !== undefined) sections.push({ heading: heading.trim(), text: '' });
    else sections.at(-1)!.text += `${line}\n`;
  }
  const read = sections
    .map((section) => ({ ...section, lines: linesOf(section.text).map((line) => line.replaceAll('**', '')) }))
    .filter(({ lines }) => lines.length > 0);
  if (read.length < room.open.length) {
    const lines = read.flatMap((section) => section.lines);
    const shortened = [bothEnds(lines, room.goal), newestLines(lines.filter(isQuoting))];
    return shortened
      .map((line, at) => ({ text: line, isState: false, isQuoting: at === 1 }))
      .filter((line) => line.text !== '');
  }
  const quotes = read.map(({ lines }) => lines.filter(isQuoting).length);
  const quoting = quotes.lastIndexOf(Math.max(...quotes));
  const linesKept = (lines: readonly string[], at: number): string => {
    if (at === 0) return bothEnds(lines, room.goal);
    if (at === quoting && quotes[at]! > 0) return newestLines(lines);
    const ofOpen = room.open[at - read.length + room.open.length];
    if (ofOpen !== undefined) return ofOpen === 0 ? '' : bothEnds(lines, ofOpen);
    if (at > quoting - 1 || quotes[quoting] === 0) return '';
    return at === quoting - 1
      ? bothEnds(lines, room.solved)
      : at > 1
        ? listedIn(read[at]!.text, room.listed)
        : '';
  };
  return read.flatMap(({ heading, lines }, at) => {
    const kept = linesKept(lines, at);
    const isState = at > 0 && at >= read.length - room.open.length;
    const isOfUser = at > 0 && at === quoting && quotes[at]! > 0;
    const line = heading === '' ? kept : `${heading}: ${kept}`;
    return kept === '' ? [] : [{ text: line, isState: isState && !isOfUser, isQuoting: isOfUser }];
  });
}

/** Tells a list whose items have titles: each title with its last words, which say what came of it; of files, their names. Empty for other texts. */
function listedIn(text: string, max: number): string {
  const lines = markedLines(text, maxRead);
  const title = lines.some((line) => heading.test(line)) ? heading : titledItem;
  const items: string[][] = [];
  for (const line of lines) {
    if (title.test(line)) items.push([line.replace(/^\S+\s+/, '')]);
    else items.at(-1)?.push(line.replace(/^[-*•+]\s+/, ''));
  }
  const files = items.flatMap(
    ([item = '']) =>
      /^\W{0,4}([\w.@~+/-]*[\w-]\.(?:[a-z\d]{1,6}|[A-Z]{1,3}))(?=[`*:\s]|$)/.exec(item)?.[1] ?? [],
  );
  if (files.length >= 3 || files.length * 2 > items.length) {
    const names = [...new Set(files.map((file) => file.slice(file.lastIndexOf('/') + 1)))];
    return wholeWords(names.join(', '), max);
  }
  const told: string[] = [];
  let left = max;
  for (const [at, item] of items.entries()) {
    const words = titled(item, Math.floor(left / (items.length - at)) - 2);
    if (words !== '') told.push(words);
    left -= words.length + 2;
  }
  return told.length === 0 ? '' : told.reduce(joinedSentences);
}

/** Match the titles of parts of a section: headings, or else items that begin with bold letters or a name. */
const heading = /^#{2,6}\s+\S/;
const titledItem = /^(?:[-*•+]|\d{1,3}[.)])\s+(?:\*\*|`)/;

/** Tells an item whole, or by its title and its last sentence, or by its title alone. */
function titled(lines: readonly string[], max: number): string {
  const [first = ''] = lines;
  const title = /^\*\*([^*]+?):?\*\*/.exec(first)?.[1] ?? first.replace(/:$/, '');
  const sentences = lines.flatMap((line) => partsOf(oneLine(line.replaceAll('**', ''))));
  const whole = sentences.length === 0 ? '' : sentences.reduce(joinedSentences);
  const short = `${title}: … ${sentences.at(-1) ?? ''}`;
  const [before = ''] = title.split(':', 1);
  // A colon within quotes ends no name.
  const name = before.replaceAll(/[^"`]/g, '').length % 2 === 0 ? before : '';
  return (
    [whole, sentences.length > 1 ? short : title, title, name].find((words) => words.length <= max) ?? ''
  );
}

function isQuoting(line: string): boolean {
  return /["“「][^"”」]{4}/.test(line);
}

/** Joins lines; of more than fit, the first sentences and the last one, which says what came of all. */
function bothEnds(lines: readonly string[], max: number): string {
  const sentences = lines.flatMap((line) => partsOf(oneLine(line)));
  const last = sentences.at(-1) ?? '';
  const end = last.length * 2 <= max ? last : '';
  let begin = '';
  for (const [at, sentence] of sentences.entries()) {
    const more = begin === '' ? sentence : joinedSentences(begin, sentence);
    const isLast = at === sentences.length - 1;
    if (more.length + (isLast ? 0 : end.length + 3) > max) {
      const cut = begin === '' ? wholeWords(more, max - end.length - 3) : begin;
      return end === '' ? `${cut.replace(/ …$/, '')} …` : joinedApart(cut, end);
    }
    begin = more;
  }
  return begin;
}

/** Joins the first line and the newest ones that fit: all, unless there are very many. */
function newestLines(lines: readonly string[]): string {
  const [first = '', ...others] = lines.map((line) => wholeWords(oneLine(line), maxQuote));
  const newest: string[] = [];
  let units = first.length;
  for (const line of others.toReversed()) {
    units += line.length + 2;
    if (units > maxQuoting) return [first, '…', ...newest].reduce(joinedSentences);
    newest.unshift(line);
  }
  return [first, ...newest].reduce(joinedSentences);
}
