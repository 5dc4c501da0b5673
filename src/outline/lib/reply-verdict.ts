/**
 * Finds what a reply that ended a turn says: its first sentences and its verdict, before the items of its lists. An answer that thinks aloud ends with its
 * conclusion, and a report of work begins with it. Any language. Linear. Pure.
 */
import { oneLine, quoted, wholeWords } from '../outcome.ts';
import { firstSentences, isApart, isItem, isProse, joinedApart, markedLines, partsOf } from '../sentences.ts';
import { bare, concludes, heading, labeled } from './verdict.ts';

/** Characters read of a reply. */
const maxReply = 20_000;

/** UTF-16 units of first words that tell enough, and lines at the end of a reply among which its conclusion is. */
const minHead = 50;
const maxEndLines = 8;

/** Matches a sentence in bold letters. */
const bold = /(?<![*\p{L}])\*\*([^*\n]{20,240}[.!。！])\*\*(?![*\p{L}])/gu;

/** Matches a beginning that only praises the question. */
const praise = /^\s*(?:good|great|excellent|interesting|fair) (?:question|thinking|catch)[.!,:] +(?=\S)/i;

/** Matches a heading of so many words that it reads like a sentence. */
const longHeading = /^#{1,6}[^\S\n]+(?:\S+[^\S\n]+){5}.*$/gm;

/** Matches code, which is no part of what a reply says. */
const fenced = /(?:```|~~~)[^]*?(?:```|~~~|$)/g;

/** Matches a beginning that answers a question in a word. */
const answering = /^(?:yes|no|correct|exactly|ja|nein|doch|sí|oui|non)\b/i;

/** Match a line that only announces what follows it, such a sentence, and one that offers more work. */
const announcing =
  /\bhere(?:['’]s| is| are)\b|^(?:let(?: me|['’]s)|i(?:['’]ve| have| made| found)|now (?:i|let)\b|looking at|based on|there are|summary|the (?:changes|following)|hier|voici|aquí|以下)/i;
const preface = /^(?:now i\b|let me\b|here(?:['’]s| is| are)\b|i see now\b)/i;
const offering = /^(?:alternatively|if you|let me know|feel free|ready (?:to|for|when)|(?:do|would) you)\b/i;

/** Matches the beginning of a sentence that refers to another one. */
const referring =
  /^(?:it|this|that|these|those|they|both|er|es|das|dies\w*|sie|esto|eso|cela|これ|それ|这|那)\b/i;

/** UTF-16 units of a line that announces a list and says enough to stand alone. */
const maxLead = 90;

/**
 * Returns what a reply that ended a turn says: its first sentences, and its verdict or conclusion where the first sentences are few and a list, code or a table
 * follows them. The items of a list are told only if the reply says nothing else.
 */
export function replyVerdict(reply: string, max: number): string {
  const said = reply
    .slice(0, maxReply)
    .replace(praise, '')
    .replaceAll(longHeading, (line) => (labeled.test(line) ? line : ''));
  const lines = markedLines(said.replaceAll(fenced, '\n'), maxReply);
  // A reply that begins with code answers with it.
  const [, shown = ''] = /^\s*(?:```|~~~)[^\n]*\n\s*([^\n]+)/.exec(said) ?? [];
  if (shown !== '') return quoted(shown, max);
  const whole = firstSentences(said, max).replace(/[:：]$/, '');
  const begin = firstSentences(beginningOf(lines), max);
  if (begin.length >= minHead && whole.startsWith(begin) && !/^[:：]/.test(whole.slice(begin.length)))
    return whole;
  const room = max - (begin === '' ? 0 : begin.length + 3);
  const verdict = wholeWords(oneLine(verdictIn(said, lines)), room);
  const isScrap = verdict.endsWith(' …') && verdict.length < minHead;
  if (verdict === '' || isScrap || whole.includes(verdict.replace(/ …$/, ''))) return whole;
  // A word such as `This` says nothing without what it refers to.
  if (begin === '' && isProse(whole) && referring.test(verdict)) return whole;
  return begin === '' ? verdict : joinedApart(begin, verdict);
}

/** Returns the sentences ahead of the first list or table, behind headings; of lines that announce others, only those that say enough. */
function beginningOf(lines: readonly string[]): string {
  const start = lines.findIndex((line) => !isApart(line));
  const length = lines.slice(Math.max(0, start)).findIndex((line) => isItem(line) || isApart(line));
  const head = lines.slice(Math.max(0, start), length < 0 ? undefined : Math.max(0, start) + length);
  const parts = head.flatMap((line) => partsOf(bare(line)));
  return parts
    .map((part) => {
      if (!/[:：]$/.test(part)) return preface.test(part) ? '' : part;
      const isTelling = part.length <= maxLead && !announcing.test(part) && isProse(part.slice(0, -1));
      return isTelling ? part.slice(0, -1) : (answering.exec(part)?.[0] ?? '');
    })
    .join('\n');
}

/**
 * Returns a sentence in bold letters, a line with a label that names a conclusion, the line behind such a heading, or the last prose of a reply; empty if there
 * is none.
 */
function verdictIn(reply: string, lines: readonly string[]): string {
  const strong = boldVerdict(reply);
  if (strong !== '') return strong;
  const label = lines.find((line) => labeled.test(line));
  if (label !== undefined) return bare(label);
  const under = lines.findLastIndex((line) => heading.test(line) && concludes.test(line)) + 1;
  const behind = lines[under] ?? '';
  const first =
    under === 0 ? '' : /^\*\*.*[:：]\**$/.test(behind) ? bare(behind).slice(0, -1) : proseIn(behind);
  if (first !== '') return first;
  return (
    lines
      .slice(1)
      .slice(-maxEndLines)
      .map(proseIn)
      .findLast((prose) => prose !== '') ?? ''
  );
}

/** Returns the first sentence that a reply has in bold letters: it is the verdict more often than the first words are. Empty if there is none. */
export function boldVerdict(reply: string): string {
  const sentences = Array.from(reply.slice(0, maxReply).matchAll(bold), ([, words = '']) => oneLine(words));
  return sentences.find((words) => isProse(words) && !referring.test(words)) ?? '';
}

/** Returns the sentences of a line that are neither items of a list, questions, offers nor announcements, from the first one on that is prose. */
function proseIn(line: string): string {
  if (isItem(line) || isApart(line)) return '';
  const all = partsOf(bare(line));
  // Words behind a question are about what it asks.
  const asked = all.findIndex((part) => /[?？]["'”’»」)]*$/.test(part));
  const parts = (asked < 0 ? all : all.slice(0, asked)).filter(
    (part) => !/[:：]$/.test(part) && !offering.test(part),
  );
  const from = parts.findIndex((part) => isProse(part));
  return from < 0 ? '' : parts.slice(from).join(' ');
}
