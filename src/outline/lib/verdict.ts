/**
 * Finds what a report says: its verdict or conclusion, or else its first findings, without the words by which it announces itself. Sub-agents
 * return reports of many sections, and begin them with what they are going to tell. Any language. Linear. Pure.
 */
import { oneLine, quoted, wholeWords } from '../outcome.ts';
import {
  isItem,
  isProse,
  joinedApart,
  joinedSentences,
  markedLines,
  partsOf,
  termsOf,
} from '../sentences.ts';

/** UTF-16 units and lines of the shortest text that counts as a report. */
const minReport = 300;
const minLines = 4;

/** Characters read of a report. */
const maxReport = 60_000;

/** UTF-16 units of the quoted words of a report. */
const maxVerdict = 180;

/** Matches a line with a label in bold letters, `**Root cause:** the lock is taken twice.`, and a heading with one: `### Verdict: **Approved**`. */
export const labeled =
  /^(?:\*\*[^*\n:：]{2,40}(?:\*\*)?[:：].*[^:：*\s]\**|#{1,6}\s[^*\n:：]{2,40}[:：]\s*\*\*[^*]+\*\*)$/u;

/** Matches a line that only says where something is: `File: src/cart.ts (lines 3-9)`. */
const locating = /^[^:：]+[:：]\s*[`"']?[\w~@-]*[./(][\w./~@()-]*[`"']?(?: \(lines? [\d, -]+\))?$/;

/** Matches a line with a label that names a state, in capitals: `Report: REQUEST CHANGES`. */
export const stated =
  /^[^\p{L}\p{N}]{0,8}(?:[\p{L}-]+ ){0,2}\p{L}+[^\p{L}\p{N}:：]{0,4}[:：][^\p{L}\p{N}]{0,6}(?:\p{Lu}{2,} ?)*\p{Lu}{4,}/u;

/** Matches a heading, or a line of emphasized words alone. */
const heading = /^(?:#{1,6}\s|\*\*[^*]{1,80}\*\*:?$)/;

/** Matches what clients add to the answers of sub-agents. */
const ofClient = /^(?:agentId: \S|<\/?usage|total_tokens: |tool_uses: |duration_ms: )/;

/** Quotes what a report says in a line. Undefined for a text that is no report, or in which nothing is said. */
export function verdictOf(text: string): string | undefined {
  if (text.length < minReport || /^\s*[[{<]/.test(text)) return undefined;
  const lines = markedLines(text, maxReport).filter((line) => !ofClient.test(line));
  if (lines.length < minLines) return undefined;
  const verdict =
    lines.findLast((line) => labeled.test(line) && !locating.test(bare(line))) ??
    lines.findLast((line) => stated.test(line));
  if (verdict === undefined && !lines.some((line) => heading.test(line))) return undefined;
  const label = verdict === undefined ? [] : [{ text: bare(verdict), at: lines.indexOf(verdict) }];
  let words = '';
  let last = NaN;
  for (const { text: sentence, at } of [...label, ...conclusionsIn(lines)]) {
    if (words.includes(sentence)) continue;
    const join = at === last || at === last + 1 ? joinedSentences : joinedApart;
    const more = words === '' ? sentence : join(words, sentence);
    if (words !== '' && more.length > maxVerdict) break;
    [words, last] = [more, at];
  }
  return words === '' ? undefined : quoted(wholeWords(words, maxVerdict), maxVerdict);
}

/** A sentence of a report, and the index of its line. */
type Said = { readonly text: string; readonly at: number };

/**
 * Returns sentences of a report: the first and the last one of its last section, then the others, in order. The items of a list say nothing without
 * the line that announces them, so they stand with it, behind all sentences.
 */
function conclusionsIn(lines: readonly string[]): readonly Said[] {
  const sections: { readonly title: string; readonly said: Said[] }[] = [{ title: '', said: [] }];
  const lists: Said[] = [];
  let isLed = false;
  for (const [at, line] of lines.entries()) {
    if (heading.test(line)) {
      sections.push({ title: line, said: [] });
      isLed = false;
      continue;
    }
    const list = lists.at(-1);
    if (isItem(line) && isLed && list)
      lists[lists.length - 1] = { text: withItem(list.text, bare(line)), at };
    else {
      const parts = partsOf(bare(line)).filter((part) => isProse(part) && !locating.test(part));
      sections.at(-1)!.said.push(...parts.map((text) => ({ text, at })));
      isLed = /[:：]$/.test(bare(line));
      if (isLed) lists.push({ text: bare(line), at });
    }
  }
  // A section, too, may begin with a sentence that only says what follows.
  for (const { said } of sections) if (said.length > 1 && !hasNames(said[0]!.text)) said.push(said.shift()!);
  // Ahead of its first heading, a report says what it is going to tell.
  const [preamble, ...titled] = sections;
  const filled = titled.filter(({ said }) => said.length > 0);
  const told = filled.flatMap(({ said }) => said);
  const last = filled.at(-1)?.said ?? [];
  const named = last.filter(({ text }) => hasNames(text));
  const ends = named.length > 0 ? named : last;
  if (told.length > 1) return [ends[0]!, ends.at(-1)!, ...told];
  const all = [...told, ...lists.filter(({ text }) => !/[:：]$/.test(text))];
  return all.length > 0 ? all : preamble!.said;
}

/** Adds an item to a list, or says that there are more. */
function withItem(list: string, item: string): string {
  const more = /[:：]$/.test(list) ? `${list} ${item}` : joinedSentences(list, item);
  return more.length <= maxVerdict - 2 ? more : list.replace(/ …$|(?<=[^:：])$/, ' …');
}

/** True for a sentence with a name or number. */
function hasNames(sentence: string): boolean {
  return [...termsOf(sentence)].some((term) => term.startsWith('='));
}

/** Removes the signs of a list and of emphasis. */
export function bare(line: string): string {
  return line
    .replace(/^(?:[-*•+>]|\d{1,3}[.)]|#{1,6})\s+/, '')
    .replaceAll('**', '')
    .trim();
}

// Replies

/** Characters read of a reply. */
export const maxReply = 20_000;

/** Matches a sentence in bold letters. */
const bold = /(?<![*\p{L}])\*\*([^*\n]{20,240}[.!。！])\*\*(?![*\p{L}])/gu;

/** Matches code, which is no part of what a reply says. */
export const fenced = /(?:```|~~~)[^]*?(?:```|~~~|$)/g;

/** Matches the beginning of a sentence that refers to another one. */
export const referring =
  /^(?:it|this|that|these|those|they|both|er|es|das|dies\w*|sie|esto|eso|cela|これ|それ|这|那)\b/i;

/** Matches a label that is one of several: `**Option 2: a table in Postgres**`. */
const enumerated = /^\*\*(?:[^*\n:：]{0,40}\s)?(?:\d{1,2}|\p{Lu})\**[:：]/u;

/** Returns the verdict of a reply: a sentence in bold letters, or a line with a label in bold letters that is no item; or nothing. */
export function verdictIn(reply: string): string {
  const said = reply.slice(0, maxReply);
  const strong = Array.from(said.matchAll(bold), ([, words = '']) => oneLine(words));
  const labels = markedLines(said.replaceAll(fenced, '\n'), maxReply)
    .map(withoutLead)
    .filter((line) => labeled.test(line) && !enumerated.test(line));
  const prose = [...strong.filter((words) => !referring.test(words)), ...labels.map(bare)].find(isProse);
  return bare(labels.findLast((line) => stated.test(line) || line.startsWith('#')) ?? prose ?? '');
}

/** Returns a line without the sentence at its end that announces what follows it. */
export function withoutLead(line: string): string {
  const parts = partsOf(line);
  return parts.length > 1 && /[:：]$/.test(parts.at(-1)!) ? parts.slice(0, -1).join(' ') : line;
}
