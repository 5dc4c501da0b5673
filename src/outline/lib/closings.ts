/**
 * Tells what came of a turn: the first words of the reply that ended it, its verdict in bold letters, and of an answer its conclusion. No list of words of any
 * language takes part. Pure; linear in its input.
 */
import { placeIn } from '../facts.ts';
import { oneLine, wholeWords } from '../outcome.ts';
import type { OutlineLine } from '../rank.ts';
import {
  firstSentences,
  hasName,
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
import { boldVerdict } from './reply-verdict.ts';

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
  const { text, place } = isAnswer && boldVerdict(reply) === '' ? conclusionOf(reply) : noConclusion;
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
  const text = boldVerdict(reply) || firstSentences(reply, maxOlder);
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

/** Returns what a reply that ended a turn says first, and its verdict, if it has one in bold letters elsewhere. */
function closingWords(reply: string): string {
  const begin = firstSentences(reply, maxClosing);
  const whole = begin.endsWith(' …') && !begin.endsWith(' items)') ? firstSentences(reply, maxCut) : begin;
  // A reply that is code or a table alone is told by its beginning.
  if (whole === '')
    return wholeWords(oneLine(reply.slice(0, 2_000).replaceAll(/```\w*|~~~|[*|#]+|-{3,}/g, ' ')), maxOpening);
  const verdict = boldVerdict(reply);
  return whole.includes(verdict) ? whole : joinedApart(firstSentences(reply, maxOpening), verdict);
}

/** UTF-16 units of a conclusion, and the lines at the end of a reply among which it is. */
const maxConclusion = 180;
const maxEndLines = 8;

/** The last words of a reply that are no question, and the place of its first sentence among those of the reply. */
type Conclusion = { readonly text: string; readonly place: number };

const noConclusion: Conclusion = { text: '', place: 0 };

/**
 * Returns the conclusion of a reply: the last line that is no item of a list, without its questions. A reply that reports work begins with its verdict; an
 * answer that thinks aloud ends with it.
 */
function conclusionOf(reply: string): Conclusion {
  const lines = markedLines(reply.slice(0, 20_000), 20_000);
  for (const line of lines.slice(1).slice(-maxEndLines).toReversed()) {
    if (line.startsWith('|') || isItem(line)) continue;
    const sentences = partsOf(line.replaceAll('**', '')).filter((one) => !/[?？:：]["'”’»」)]*$/.test(one));
    const first = sentences.findIndex((one) => isProse(one));
    if (first < 0) continue;
    const text = sentences.slice(first).reduce((told, sentence) => {
      const more = joinedSentences(told, sentence);
      return more.length > maxConclusion ? told : more;
    });
    const place = spacedSentences(reply).findLastIndex((one) => one !== '' && text.startsWith(one));
    return place <= 0 ? noConclusion : { text: wholeWords(text, maxConclusion), place };
  }
  return noConclusion;
}
