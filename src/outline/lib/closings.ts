/**
 * Tells what a reply that ended a turn says: its first sentences, its verdict, and its conclusion. Summaries tell them in lines, and logs in one text ahead of
 * the items of lists. A report of work begins with its verdict; an answer that thinks aloud ends with it. Any language. Pure; linear in its input.
 */
import { placeIn } from '../facts.ts';
import { oneLine, quoted, wholeWords } from '../outcome.ts';
import type { OutlineLine } from '../rank.ts';
import {
  firstSentences,
  hasName,
  isApart,
  isItem,
  isProse,
  joinedApart,
  joinedSentences,
  linesOf,
  markedLines,
  partsOf,
  sentencesOf,
  spacedSentences,
} from '../sentences.ts';
import { bare, labeled } from './verdict.ts';

// Summaries

/** UTF-16 units of the shortest text that tells what came of a turn. */
const minClosing = 20;
/** UTF-16 units of an older reply. */
const maxOlder = 110;

/** Makes the line of the beginning of a reply that ended a turn. */
export function closingLine(text: string, reply: string, at: number): OutlineLine {
  const end = sentencesOf(reply).findLastIndex((sentence) => text.includes(sentence));
  return { section: 'found', text, at, end: at + placeIn(Math.max(0, end)), isFinal: true };
}

/** Makes the lines of a reply that ended a turn: its beginning with its verdict, and of an answer its conclusion, too. */
export function closingLines(
  reply: string,
  at: number,
  { question, isAnswer }: { readonly question: string; readonly isAnswer: boolean },
): readonly OutlineLine[] {
  const closing = withoutQuestion(closingWords(reply), question);
  const begin = closing.length < minClosing ? [] : [closingLine(closing, reply, at)];
  const { text, place } =
    isAnswer && verdictIn(reply) === '' ? placedConclusion(reply) : { text: '', place: 0 };
  if (text.length < minClosing || closing.includes(text)) return begin;
  const end = at + placeIn(place);
  const conclusion: OutlineLine = { section: 'found', text, at: end, end, isFinal: true };
  // A short first line without a name or number only says that an answer comes.
  const isIntroduction = !saysNames(closing) && (saysNames(text) || isShort(reply));
  if (begin.length === 0 || !isIntroduction) return [...begin, { ...conclusion, isBeside: true }];
  return [conclusion, ...begin.map((line) => ({ ...line, isBeside: true }))];
}

/** True for a reply whose first line has few words. */
function isShort(reply: string): boolean {
  return (linesOf(reply.slice(0, 2_000))[0] ?? '').length < maxOpening;
}

/** True for a text with a name or a number in one of its sentences; that a sentence or an item begins is none. */
function saysNames(text: string): boolean {
  return text.split(/(?<=[.!?…:;]) /).some((sentence) => hasName(sentence.replace(/^\d{1,3}[.)] /, '')));
}

/** Tells less of an older reply: its turn needs its outcome, not the words. */
export function olderClosing([line]: readonly OutlineLine[], reply: string): OutlineLine {
  if (line!.text.length <= (line!.at % 1 === 0 ? maxOlder : maxConclusion)) return line!;
  const text = verdictIn(reply) || firstSentences(reply, maxOlder);
  return text.length < minClosing ? line! : closingLine(text, reply, Math.floor(line!.at));
}

/** Returns a text without the question at its end, which stands with its answer. */
function withoutQuestion(text: string, question: string): string {
  const asked = question.split(' / ').at(-1)!;
  const isAtEnd = asked !== '' && text.endsWith(asked);
  return isAtEnd ? text.slice(0, -asked.length).replace(/[\s…;:]+$/, '') : text;
}

/** UTF-16 units of the beginning of a reply that ended a turn, of one whose first sentence is longer, and of one ahead of its verdict. */
const maxClosing = 160;
const maxCut = 320;
const maxOpening = 80;

/** Returns what a reply that ended a turn says first, and its verdict, if it has one elsewhere. */
function closingWords(reply: string): string {
  const begin = firstSentences(reply, maxClosing);
  const whole = begin.endsWith(' …') && !begin.endsWith(' items)') ? firstSentences(reply, maxCut) : begin;
  // A reply that is code or a table alone is told by its beginning.
  if (whole === '')
    return wholeWords(oneLine(reply.slice(0, 2_000).replaceAll(/```\w*|~~~|[*|#]+|-{3,}/g, ' ')), maxOpening);
  const verdict = wholeWords(verdictIn(reply), maxConclusion);
  return whole.includes(verdict) ? whole : joinedApart(firstSentences(reply, maxOpening), verdict);
}

/** UTF-16 units of a conclusion. */
const maxConclusion = 180;

/** Returns the conclusion of a reply in whole sentences, and the place of the first one among those of the reply; 0 if there is none behind the first. */
function placedConclusion(reply: string): { readonly text: string; readonly place: number } {
  const sentences = conclusionIn(markedLines(reply.slice(0, maxReply), maxReply));
  if (sentences.length === 0) return { text: '', place: 0 };
  const text = sentences.reduce((told, sentence) => {
    const more = joinedSentences(told, sentence);
    return more.length > maxConclusion ? told : more;
  });
  const place = spacedSentences(reply).findLastIndex((one) => one !== '' && text.startsWith(one));
  return { text: place <= 0 ? '' : wholeWords(text, maxConclusion), place };
}

// Logs

/** Characters read of a reply. */
const maxReply = 20_000;

/** UTF-16 units of first words that tell enough. */
const minHead = 50;

/** Matches a sentence in bold letters. */
const bold = /(?<![*\p{L}])\*\*([^*\n]{20,240}[.!。！])\*\*(?![*\p{L}])/gu;

/** Matches a heading of so many words that it reads like a sentence. */
const longHeading = /^#{1,6}[^\S\n]+(?:\S+[^\S\n]+){5}.*$/gm;

/** Matches code, which is no part of what a reply says. */
const fenced = /(?:```|~~~)[^]*?(?:```|~~~|$)/g;

/** Matches a beginning that answers a question in a word. */
const answering = /^\p{L}{1,5}(?=[,，、])/u;

/** Match a line that only announces what follows it, and a sentence that offers more work. */
const announcing =
  /\bhere(?:['’]s| is| are)\b|^(?:let(?: me|['’]s)|i(?:['’]ve| have| made| found)|now (?:i|let)\b|looking at|based on|there are|summary|the (?:changes|following)|hier|voici|aquí|以下)/i;
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
  const said = reply.slice(0, maxReply).replaceAll(longHeading, '');
  const lines = markedLines(said.replaceAll(fenced, '\n'), maxReply);
  // A reply that begins with code answers with it.
  const [, shown = ''] = /^\s*(?:```|~~~)[^\n]*\n\s*([^\n]+)/.exec(said) ?? [];
  if (shown !== '') return quoted(shown, max);
  const whole = firstSentences(said, max).replace(/[:：]$/, '');
  const begin = firstSentences(beginningOf(lines), max);
  if (begin.length >= minHead && whole.startsWith(begin) && !/^[:：]/.test(whole.slice(begin.length)))
    return whole;
  const room = max - (begin === '' ? 0 : begin.length + 3);
  const verdict = wholeWords(oneLine(verdictIn(said) || conclusionIn(lines).join(' ')), room);
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
      if (!/[:：]$/.test(part)) return part;
      const isTelling = part.length <= maxLead && !announcing.test(part) && isProse(part.slice(0, -1));
      return isTelling ? part.slice(0, -1) : (answering.exec(part)?.[0] ?? '');
    })
    .join('\n');
}

/** Returns the verdict of a reply: a sentence in bold letters, or a line with a label in bold letters that is no item; or nothing. */
function verdictIn(reply: string): string {
  const strong = boldVerdict(reply);
  if (strong !== '') return strong;
  const lines = markedLines(reply.slice(0, maxReply).replaceAll(fenced, '\n'), maxReply);
  return bare(lines.find((line) => labeled.test(line) && isProse(bare(line))) ?? '');
}

/** Returns the first sentence that a reply has in bold letters: it is the verdict more often than the first words are. Empty if there is none. */
function boldVerdict(reply: string): string {
  const sentences = Array.from(reply.slice(0, maxReply).matchAll(bold), ([, words = '']) => oneLine(words));
  return sentences.find((words) => isProse(words) && !referring.test(words)) ?? '';
}

/** Lines at the end of a reply among which its conclusion is. */
const maxEndLines = 8;

/** Returns the sentences of the conclusion of a reply: its last line that is prose. */
function conclusionIn(lines: readonly string[]): readonly string[] {
  const ends = lines.slice(1).slice(-maxEndLines);
  return ends.map(proseIn).findLast((sentences) => sentences.length > 0) ?? [];
}

/** Returns the sentences of a line that are neither items of a list, questions, offers nor announcements, from the first one on that is prose. */
function proseIn(line: string): readonly string[] {
  if (isItem(line) || isApart(line)) return [];
  const all = partsOf(bare(line));
  // Words behind a question are about what it asks.
  const asked = all.findIndex((part) => /[?？]["'”’»」)]*$/.test(part));
  const parts = (asked < 0 ? all : all.slice(0, asked)).filter(
    (part) => !/[:：]["'”’»」)]*$/.test(part) && !offering.test(part),
  );
  const from = parts.findIndex((part) => isProse(part));
  return from < 0 ? [] : parts.slice(from);
}
