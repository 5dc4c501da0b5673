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
  termsOf,
  withItemNotes,
} from '../sentences.ts';
import type { StepWords } from '../step-line.ts';
import { bare, fenced, labeled, maxReply, referring, stated, verdictIn, withoutLead } from './verdict.ts';

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
  return isAtEnd ? text.slice(0, -asked.length).replace(/(?<![\s…;:])[\s…;:]+$/, '') : text;
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

/** UTF-16 units of first words that tell enough. */
const minHead = 50;

/** Matches a heading of so many words that it reads like a sentence, unless it is an item of a list. */
const longHeading = /^#{1,6}[^\S\n]+(?!\d{1,3}[.)]\s)(?:[^\s*]+[^\S\n]+){5}.*$/gm;

/** Matches a beginning that answers a question in a word. */
const answering = /^\p{L}{1,5}(?=[,，、])/u;

/** Match a line that only announces what follows it, one that does unless it has a name, and a sentence that offers more work. */
const announcing =
  /\bhere(?:['’]s| is| are)\b|^(?:let(?: me|['’]s)|now (?:i|let)\b|looking at|based on|there are|summary|the (?:changes|following)|hier|voici|aquí|以下)/i;
const reporting = /^i(?:['’]ve| have| made| found)\b/i;
const offering = /^(?:alternatively|if you|let me know|feel free|ready (?:to|for|when)|(?:do|would) you)\b/i;

/** UTF-16 units of a line that announces a list and says enough to stand alone. */
const maxLead = 120;

/**
 * Returns what a reply that ended a turn says: its first sentences, and where these are few and a list, code or a table follows them, what answers the user's
 * message, its verdict, or its conclusion. The items of a list are told only if the reply says nothing else.
 */
export function replyVerdict(reply: string, max: number, message = ''): string {
  const said = reply.slice(0, maxReply).replaceAll(longHeading, '');
  const lines = markedLines(withItemNotes(said.replaceAll(fenced, '\n')), maxReply);
  // A reply that begins with code answers with it.
  const [, shown = ''] = /^\s*(?:```|~~~)[^\n]*\n\s*([^\n]+)/.exec(said) ?? [];
  if (shown !== '') return quoted(shown, max);
  const first = firstSentences(said, max);
  const whole = (/[:：]$/.test(first) ? withNext(first, lines, max) : first) || codeWords(reply, max);
  const beginning = beginningOf(lines);
  const begin = firstSentences(beginning, max);
  const wanted = subjectsAsked(message);
  const section = sectionAbout(lines, wanted);
  // The headings of all parts tell a report of several parts.
  const parts = section === '' ? partsNumbered(lines, begin, max) : '';
  if (parts !== '') return parts;
  const isWhole = whole.startsWith(begin) && !/^[:：]/.test(whole.slice(begin.length));
  if (begin.length >= minHead && isWhole && (section === '' || whole.includes(section.slice(0, minHead))))
    return whole;
  const short = section !== '' && max - begin.length < minRoom ? shortOpening(beginning) : begin;
  const state = lines.findLast((line) => labeled.test(line) && stated.test(line)) ?? '';
  // A state says what comes of all, so nothing announces it.
  const isLead = state !== '' && lines.some((line) => /[:：]\**$/.test(line) && bare(line).startsWith(short));
  const opening = isLead || isRepeated(short, section) ? '' : short;
  const room = max - (opening === '' ? 0 : opening.length + 3);
  const isNew = (text: string): boolean => text !== '' && !isRepeated(text, opening);
  const ends = [conclusionIn(lines).join(' '), sentenceAbout(lines, wanted)].filter(isNew);
  const about = ends.find((text) => sharedWith(text, wanted) > 0) ?? '';
  const found =
    [section, optionsIn(lines, room), verdictIn(said), about, ...ends].map(oneLine).find(isNew) ?? '';
  const verdict = room < minHead ? '' : wholeWords(found, room);
  const isScrap = verdict.endsWith(' …') && verdict.length < minHead;
  if (verdict === '' || isScrap || whole.includes(verdict.replace(/ …$/, ''))) return whole;
  // A word such as `This` says nothing without what it refers to.
  if (opening === '' && isProse(whole) && referring.test(verdict)) return whole;
  const told = opening === '' ? verdict : joinedApart(opening, verdict);
  // A short verdict, such as `Overall: PASS`, leaves room for what it is about.
  const left = max - told.length - 3;
  if (left < minMore) return told;
  const more = [about, ...ends].map(oneLine).find((text) => text !== '' && !isRepeated(text, told));
  // A list belongs to what announces it, and not to another section.
  const rest = wholeWords(more ?? '', left) || (section === '' ? listIn(lines, told, left) : '');
  return rest === '' || isRepeated(rest, told) ? told : joinedApart(told, rest);
}

/** Matches one of several things that a reply offers by number or letter: `2. **Option B: a lock**`, `Scenario 1: two carts`. */
const choice = /^(?:[-*•]\s+|\d{1,2}[.)]\s+|#{1,6}\s+)?\**\p{L}{2,12} (?:\d{1,2}|\p{Lu})\**[:：.)]/u;

/** Tells in short what a reply that asks at its end lets the user choose from; empty for another reply. */
function optionsIn(lines: readonly string[], max: number): string {
  const options = lines
    .filter((line) => choice.test(line))
    .map((line) => `- ${line.replace(/^[-*•#\d.)\s]+/, '')}`);
  const isAsking = lines
    .slice(-2)
    .some((line) => asking.test(line.replaceAll('**', '')) || /[?？؟] /.test(line));
  return options.length < 2 || !isAsking ? '' : firstSentences(options.join('\n'), max);
}

/** Matches a heading with a number. */
const partHeading = /^#{2,6}\s+\d{1,3}[.)]\s/;

/** Tells the numbered headings of a report in short, behind its beginning if that leaves room for them; empty for another reply. */
function partsNumbered(lines: readonly string[], begin: string, max: number): string {
  const parts = lines
    .filter((line) => partHeading.test(line))
    .map((line) => `- ${line.replace(/^#+\s+/, '')}`);
  if (parts.length < 2) return '';
  const opening = max - begin.length < minRoom ? shortOpening(begin) : begin;
  const told = firstSentences(parts.join('\n'), max - (opening === '' ? 0 : opening.length + 3));
  return opening === '' || told === '' ? told : joinedApart(opening, told);
}

/** UTF-16 units of the least room for more words behind a verdict. */
const minMore = 120;

/** Tells the first list of a reply in short, with the line that announces it, unless that is told. */
function listIn(lines: readonly string[], told: string, max: number): string {
  const at = lines.findIndex(isItem);
  if (at < 0) return '';
  const lead = partsOf(bare(lines[at - 1] ?? '')).at(-1) ?? '';
  // A word such as `However:` does not say what the items are about.
  if (/^\S+[:：]$/.test(lead)) return '';
  const isTold = !/[:：]$/.test(lead) || told.includes(lead.slice(0, -1));
  const length = lines.slice(at).findIndex((line) => /^#{1,6}\s/.test(line));
  const list = lines.slice(at, length < 0 ? undefined : at + length);
  return firstSentences([...(isTold ? [] : [lead]), ...list].join('\n'), max);
}

/** Returns a line that announces something with what follows it: a heading or a line with a colon alone says nothing. */
function withNext(lead: string, lines: readonly string[], max: number): string {
  const start = lead.replace(/[:：]$/, '');
  const at = lines.findIndex((line) => bare(line).includes(start.slice(-minHead)));
  const next = lines.slice(at + 1).find((line) => !isApart(line) && isProse(bare(line)));
  if (next === undefined) return start;
  const both = wholeWords(oneLine(`${lead} ${bare(next)}`), max);
  return both.length > lead.length + minHead / 2 ? both : wholeWords(oneLine(bare(next)), max);
}

/** Returns the beginning of a reply that is all code. */
function codeWords(reply: string, max: number): string {
  const plain = reply.slice(0, maxReply).replaceAll(/```\w*/g, '');
  return firstSentences(plain, max) || wholeWords(oneLine(plain), max);
}

/** UTF-16 units of the least room for a verdict behind the first sentences. */
const minRoom = 70;

/** Returns the first sentence of a beginning that takes the room of the verdict, if it is short. */
function shortOpening(beginning: string): string {
  const [first = ''] = beginning.split('\n');
  return first.length > maxOpening ? '' : first;
}

/** UTF-16 units of the shortest words beside a call that say more than the call, and of those that answer a question: shorter ones mostly announce the work. */
const minBeside = 80;
const minAnswer = 40;

/** UTF-16 units of what a reply says of a result, and of the shortest such words: of a failure, and of another result with a name or a number in it. */
const maxMeaning = 110;
const minMeaning = 16;
const minFinding = 30;

/** Returns what words beside a call say, without the last sentence, which announces the call. `message` is what they answer. Empty for hardly more than that. */
export function wordsBeside(said: string, max: number, message = ''): string {
  const isAsked = asking.test(message.trim());
  const words = besideWords(said, max, message);
  return words.length < (isAsked && hasName(words) ? minAnswer : minBeside) ? '' : words;
}

/** Returns what words right behind a result say of it: what was found, why a check failed, or that it was expected. */
export function wordsOnResult(
  said: string,
  { kind, hasFailed }: Pick<StepWords, 'kind' | 'hasFailed'>,
): string {
  const words = besideWords(said, maxMeaning, '');
  // Words behind an edit mostly announce the next one.
  if (kind === 'edit' && !hasFailed && announcing.test(words)) return '';
  return words.length < (hasFailed ? minMeaning : hasName(words) ? minFinding : minBeside) ? '' : words;
}

function besideWords(said: string, max: number, message: string): string {
  const at = said.lastIndexOf(sentencesOf(said).at(-1) ?? '');
  return replyVerdict(said.slice(0, at < 0 ? said.trimEnd().lastIndexOf('\n') : at), max, message);
}

/** True for a sentence most of whose words are said already. */
function isRepeated(sentence: string, said: string): boolean {
  if (sentence === '' || said === '') return false;
  const known = termsOf(said);
  const terms = [...termsOf(sentence)];
  return terms.filter((term) => known.has(term)).length * 2 > terms.length;
}

/** Matches the end of a question. */
const asking = /[?？؟]["'”’»」)*]*$/;

/** Returns what the questions of a message are about. */
function subjectsAsked(message: string): ReadonlySet<string> {
  const sentences = message.slice(0, maxReply).split('\n').flatMap(partsOf);
  return subjectsOf(sentences.filter((sentence) => asking.test(sentence)).join('\n'));
}

/** UTF-16 units of the shortest word that tells what a message is about, in languages with spaces. */
const minWord = 5;

/** Returns the words of a text that tell what it is about: names, longer words, and pairs of characters. */
function subjectsOf(text: string): ReadonlySet<string> {
  const terms = [...termsOf(text.toLowerCase().replaceAll('_', '-'))].map((term) => term.replace(/^=/, ''));
  return new Set(terms.filter((term) => term.length >= minWord || /[^\p{Script=Latin}\d]/u.test(term)));
}

/** Counts the subjects that a text is about, too. */
function sharedWith(text: string, subjects: ReadonlySet<string>): number {
  return [...subjectsOf(text)].filter((subject) => subjects.has(subject)).length;
}

/** The least subjects that a heading or a sentence shares with the question that it answers. */
const minShared = 2;

/** Matches a heading, or a label in bold letters with what it says. */
const titled = /^(?:#{1,6}\s+(.+)|\*\*([^*\n]{2,80}?)[:：]?\*\*[:：]?\s*(.*))$/u;

/** Returns the section of a reply whose heading or label is most about what was asked: the label with its line, or the heading with the next sentence. */
function sectionAbout(lines: readonly string[], wanted: ReadonlySet<string>): string {
  let most = minShared - 1;
  let section = '';
  for (const [at, line] of lines.entries()) {
    const [, heading = '', label = '', said = ''] = titled.exec(line) ?? [];
    const title = bare(heading || label).replace(/[:：]$/, '');
    const shared = title === '' ? 0 : sharedWith(title, wanted);
    if (shared <= most) continue;
    const text = said === '' ? (lines[at + 1] ?? '') : said;
    if (isItem(text) || isApart(text) || /^#{1,6}\s/.test(text)) continue;
    const [first = ''] = said === '' ? partsOf(bare(text)) : [withoutLead(bare(text))];
    if (!isProse(first.replace(/[:：]$/, ''))) continue;
    [most, section] = [
      shared,
      `${title}${/[.!?。！？]$/.test(title) ? '' : ':'} ${first.replace(/[:：]$/, '')}`,
    ];
  }
  return section;
}

/** Returns the first sentence of the line that is most about what was asked. */
function sentenceAbout(lines: readonly string[], wanted: ReadonlySet<string>): string {
  let most = minShared - 1;
  let best = '';
  for (const line of lines) {
    if (isItem(line) || isApart(line)) continue;
    const [first = ''] = partsOf(bare(line));
    const shared = isProse(first) && !asking.test(first) ? sharedWith(first, wanted) : 0;
    if (shared > most) [most, best] = [shared, first];
  }
  return best;
}

/** Returns the sentences ahead of the first list or table, behind headings; of lines that announce others, only those that say enough. */
function beginningOf(lines: readonly string[]): string {
  const start = lines.findIndex((line) => !isApart(line));
  const length = lines.slice(Math.max(0, start)).findIndex((line) => isItem(line) || isApart(line));
  const head = lines.slice(Math.max(0, start), length < 0 ? undefined : Math.max(0, start) + length);
  const parts = head.flatMap((line) => partsOf(bare(line)));
  return parts
    .map((part, at) => {
      // The last sentence ahead of a list, like a line with a colon, may only say what comes.
      if (!/[:：]$/.test(part)) return at === parts.length - 1 && announcing.test(part) ? '' : part;
      const isReport = !announcing.test(part) && (!reporting.test(part) || hasName(part));
      const isTelling = part.length <= maxLead && isReport && isProse(part.slice(0, -1));
      return isTelling ? part.slice(0, -1) : (answering.exec(part)?.[0] ?? '');
    })
    .join('\n');
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
  const asked = all.findIndex((part) => asking.test(part));
  const parts = (asked < 0 ? all : all.slice(0, asked)).filter(
    (part) => !/[:：]["'”’»」)]*$/.test(part) && !offering.test(part),
  );
  const from = parts.findIndex((part) => isProse(part));
  return from < 0 ? [] : parts.slice(from);
}
