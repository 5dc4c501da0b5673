/**
 * Splits text into sentences that can be kept word for word, in any language, and finds the terms of a sentence: words, names and numbers, and
 * pairs of characters in languages without spaces. Every pass is linear, also on hostile text. Pure.
 */
import { echo, oneLine, wholeWords } from './outcome.ts';

/** Longer sentences are cut between words. */
const maxSentence = 400;

/** Characters of the longest text that is read completely; only both ends of a longer one are read. */
export const maxRead = 200_000;

/** Returns the lines of a text, without bullets, numbers of lines of files, blank lines and fenced code. Numbers of items stay. */
export function linesOf(text: string, max = maxRead): readonly string[] {
  return markedLines(text, max).map(withoutBullet);
}

/** Returns the lines of a text with their bullets and marks of headings. */
export function markedLines(text: string, max: number): readonly string[] {
  const lines: string[] = [];
  let isFenced = false;
  for (const raw of endsOf(text, max).split(/[\n\r\u2028\u2029]/)) {
    const line = plain(raw.slice(0, maxRead));
    if (/^(?:```|~~~)/.test(line)) isFenced = !isFenced;
    else if (!isFenced && /[\p{L}\d]/u.test(line)) lines.push(line);
  }
  return lines;
}

/** Returns the sentences of a text, without short headings, rows of tables and marks of emphasis. */
export function sentencesOf(text: string, max = maxRead): readonly string[] {
  return spacedSentences(text, max).filter((sentence) => sentence !== '');
}

/** Returns the sentences of a text, and an empty text where code, a row of a table or a short heading stands between them. */
export function spacedSentences(text: string, max = maxRead): readonly string[] {
  return markedLines(text.slice(0, maxRead * 2).replaceAll(fenced, codeLine), max).flatMap((line) =>
    line.startsWith('|') || shortHeading.test(line) ? [''] : sentencesIn(line),
  );
}

function sentencesIn(line: string): readonly string[] {
  return partsOf(memberText(withoutBullet(line)).replaceAll(/\*\*(?=\S)|(?<=\S)\*\*/g, ''));
}

/** Returns the text of a member of JSON, which models write in replies; other lines unchanged. */
function memberText(line: string): string {
  const begin = /^(?:"[\w.-]{1,40}": *[{[]? *)+/.exec(line)?.[0];
  return begin === undefined ? line : line.slice(begin.length).replace(/^"|"?[ ,\]}]*$/g, '');
}

/** True for a row of a table, or a heading without a colon: no part of a sentence. */
function isApart(line: string): boolean {
  return line.startsWith('|') || (shortHeading.test(line) && !/[:：]\**$/.test(line));
}

/** Matches a heading of at most five words: it names what follows and says nothing of it. */
const shortHeading = /^(?:#{1,6}\s+(?:\S+\s*){1,5}|\*\*(?:[^*\s]+\s*){1,5}\*\*:?)$/;

/** Matches the end of a sentence. A number or a single letter before the sign is an ordinal or an initial. */
const ending =
  /(?<=[^\d\s]{2}[.!?…]["'”’»)\]]*)\s+(?=[^\s\p{Ll}])|(?<=\d[!?])\s+|(?<=\d{3}\.)\s+(?=\p{Lu})|(?=[^」』”）])(?<=[。！？][」』”）]*)/u;

/** Splits a line into sentences; longer ones are cut between words. */
export function partsOf(line: string): readonly string[] {
  return line
    .split(ending)
    .map((sentence) => wholeWords(sentence.trim(), maxSentence))
    .filter((sentence) => sentence !== '');
}

/** Returns a line without control characters and separators. */
export function plain(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\uFFFD]+/gu, ' ')
    .trim();
}

/** Turns the name of a tool, an argument or a state into one word. */
export function nameOf(text: string): string {
  return text.slice(0, 64).replaceAll(/[^\w./-]+/g, '_') || '_';
}

/** Returns a text of at most `max` UTF-16 units unchanged; of a longer one both ends, in whole lines or else words. */
export function endsOf(text: string, max: number): string {
  if (text.length <= max) return text;
  const head = text.slice(0, max / 2);
  const tail = text.slice(-max / 2);
  const end = head.lastIndexOf('\n') + 1 || head.lastIndexOf(' ') + 1 || head.length;
  const start = tail.indexOf('\n') + 1 || tail.indexOf(' ') + 1;
  return `${head.slice(0, end)}\n${tail.slice(start)}`;
}

/**
 * Returns the first sentences of a text, as many as `max` UTF-16 units hold; of a longer first one, whole words. A line that ends with a colon stands with
 * what it announces, or is left out; `…` stands where code, a table, a heading or such a line was.
 */
export function firstSentences(text: string, max: number): string {
  let said = '';
  let lead = '';
  let isGap = false;
  // A line with a colon that is left out, unless code or a list follows it at once, and the heading right ahead.
  let dropped = '';
  let title = '';
  // A list whose first items are told, or of which none is.
  let list: 'none' | 'told' | 'left out' = 'none';
  const skip = (isCode: boolean): void => {
    isGap = true;
    // A line that announces code says what it is for; a heading stands between a reply's first words and what they announce.
    const before = lead || dropped;
    if (isCode && said.length < minSaid && isTelling(before)) said = joinedAt(said, before);
    dropped = '';
    if (lead !== '') lead = isCode || said !== '' ? '' : `${lead.replace(/ …$/, '')} …`;
  };
  for (const line of markedLines(text.slice(0, maxRead).replaceAll(fenced, codeLine), 20_000)) {
    const ownTitle = title;
    title = '';
    if (!isItem(line)) list = 'none';
    if (isApart(line)) {
      skip(line.startsWith('|'));
      if (!line.startsWith('|')) title = sentencesIn(line).join(' ').replace(/:$/, '');
      continue;
    }
    if (list === 'left out') continue;
    if (list === 'none' && isItem(line)) {
      // The items of a list say nothing without the line that announces them.
      if (lead === '' && dropped !== '') {
        if (dropped.length > maxLead) list = 'left out';
        else lead = dropped;
        isGap = true;
      } else if (lead === '' && said !== '' && ownTitle !== '') lead = `${ownTitle}:`;
      if (list === 'left out') continue;
    }
    for (const sentence of sentencesIn(line)) {
      if (/[:：]$/.test(sentence)) {
        const both = lead === '' ? sentence : `${lead} ${sentence}`;
        const isKept = mayLead(sentence, said);
        dropped = isKept ? '' : sentence;
        if (said === '' && isTelling(lead))
          lead = both.length <= maxLead ? both : `${lead.replace(/ …$/, '')} …`;
        else {
          isGap ||= lead !== '' || !isKept;
          lead = isKept ? sentence : '';
        }
        continue;
      }
      if (isExclamation(sentence)) continue;
      const piece = lead === '' ? sentence : `${lead} ${sentence}`;
      const more = said !== '' && isGap ? joinedApart(said, piece) : joinedAt(said, piece);
      // A word or two, such as `Done.`, say less than the beginning of the sentence behind them.
      if (more.length > max) {
        if (said.length * 4 < max) return wholeWords(oneLine(more), max);
        // A list of which items are left out must not read as a whole one.
        return list === 'told' && said.length + 2 <= max ? joinedApart(said, '').trim() : said;
      }
      [said, lead, dropped, isGap] = [more, '', '', false];
      if (isItem(line)) list = 'told';
    }
  }
  return said;
}

function joinedAt(said: string, piece: string): string {
  return said === '' || piece === '' ? said + piece : joinedSentences(said, piece);
}

/** UTF-16 units of words that say enough without what announces code. */
const minSaid = 40;

/** Matches code, which is read as a row of a table: no part of a sentence. */
const fenced = /(?:```|~~~)[^]*?(?:```|~~~|$)/g;
const codeLine = '\n| code\n';

/** UTF-16 units of the longest line that stands with what it announces, and words of one that may say nothing but that something follows. */
const maxLead = 120;
const maxLabel = 4;

/** True for a line with a colon at its end that says more than that something follows: the first one, a label, or one with a name. */
function mayLead(sentence: string, said: string): boolean {
  if (sentence.length > maxLead) return false;
  return said === '' || !isTelling(sentence) || hasName(sentence);
}

/** True for more than a label. */
function isTelling(sentence: string): boolean {
  return sentence.replace(/ …$/, '').split(' ').length > maxLabel || hasName(sentence);
}

function hasName(sentence: string): boolean {
  return [...termsOf(sentence)].some((term) => term.startsWith('=') && term.length > 2);
}

/** True for a short exclamation without a name or number, such as `Perfect!`. */
function isExclamation(sentence: string): boolean {
  return /^\S{1,20}(?: \S{1,20}){0,2}[!！]$/.test(sentence) && !/[\d`/_]|\p{Ll}\p{Lu}/u.test(sentence);
}

/** True for more than a word or two, and no announcement of what follows it. */
export function isSentence(text: string): boolean {
  return text.length >= 6 && !/[:：]$/.test(text) && !text.startsWith('|');
}

/** True for a sentence that says something of the names in it: at least two of its words are no names. */
export function isSaying(text: string): boolean {
  return (
    isSentence(text) &&
    (/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u.test(text) ||
      wordsIn(text.split(' ')) >= 2)
  );
}

/** True for a sentence in a language rather than code, a table or a path: most of its words are letters alone. */
export function isProse(text: string): boolean {
  if (!isSentence(text) || text.length < 10 || echo.test(text)) return false;
  const unspaced =
    text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/gu)?.length ?? 0;
  // A name in other letters counts as one sign.
  if (unspaced >= 5 && unspaced * 2 >= text.replaceAll(/[\w./-]+/g, 'x').length && !code.test(text))
    return true;
  const words = text.split(' ');
  return words.length >= 4 && wordsIn(words) * 2 >= words.length && !code.test(text);
}

/** Counts the words that are letters alone. */
function wordsIn(words: readonly string[]): number {
  return words.filter((word) => /^["'“„«(¿¡]?[\p{L}\p{M}'’-]+["'”»)]?[,.;:!?…]*$/u.test(word)).length;
}

/** Matches signs of code: operators, escapes, formats, a call with a literal, the end of a statement. */
const code = /[!=<>:]=|&&|\|\||[=-]>|[;{}]$|\\[nt"]|\$\{|%[sdvqw]\b|\w\(["'`]/;

/** Joins sentences. Items of a list, which have no sign at their end, get one. */
export function joinedSentences(before: string, sentence: string): string {
  return `${before}${/[\p{L}\p{N})\]`"'’”]$/u.test(before) ? ';' : ''} ${sentence}`;
}

/** Joins sentences between which others are left out. */
export function joinedApart(before: string, sentence: string): string {
  return before.endsWith('...') ? `${before} ${sentence}` : `${before.replace(/ ?…$/, '')} … ${sentence}`;
}

/** True for an item of a list. */
export function isItem(line: string): boolean {
  return /^(?:[-*•+]|\d{1,3}[.)])\s+/.test(line);
}

/** Removes bullets, marks of headings and comments, and the line numbers that tools print. Numbers of items stay: answers refer to them. */
function withoutBullet(line: string): string {
  return line.replace(/^\d{1,6}[→|\t]\s*/, '').replace(/^(?:[-*•+>]|#{1,6}|\/\/+|--)\s+/, '');
}

// Questions that the user answered shortly

/**
 * The longest answer that is not understood alone, in UTF-16 units; the longest one to a question at the very end of a reply, which it is likely
 * to answer; and the longest question or option that is quoted.
 */
const maxAnswer = 60;
const maxAnswerToLast = 240;
const maxQuestion = 160;
const maxQuestions = 480;

const itemMark = /^(?:[-*•]\s+)?(?:\d{1,3}[.)]\s+)?/;

/** Matches the number or letter of an option at the beginning of a line. */
const optionMark = /^(?:\|\s*|[-*•]\s+)?(?:#{1,6}\s+)?\**(?:\p{L}+ )?(\d{1,2}|[A-Z])\**[.):：]/u;

/**
 * Returns what a reply asked before a short answer: the options that the answer names, by their numbers, and the last question. Empty for an
 * answer that is long enough to be understood (longer, if the reply ends with its question), and without a question.
 */
export function questionBefore(reply: string, answer: string): string {
  const isLabeled = /^\W{0,3}(?:[\p{L}’']+ ){0,2}(?:\d{1,2}|[A-Z])(?![\p{L}\d'’])/u.test(answer);
  if (answer.length > maxAnswerToLast && !isLabeled) return '';
  const lines = markedLines(reply, 20_000).map((line) => line.replaceAll('**', ''));
  const options = new Map<string, string>();
  for (const line of lines) {
    const label = optionMark.exec(line)?.[1];
    // A row of a table tells an option in its cells.
    const bare = line.replaceAll(/^\|\s*|\s*\|$/g, '').replaceAll(/\s*\|\s*/g, ': ');
    if (label !== undefined) options.set(label, bare.replace(/^(?:[-*•]|#{1,6})\s+/, ''));
  }
  const named = [...new Set(answer.slice(0, 200).match(/(?<![\p{L}\d.])(?:\d{1,2}|[A-Z])(?![\p{L}\d])/gu))];
  const chosen = named.flatMap((label) => options.get(label) ?? []);
  const closing = lines
    .slice(-12)
    .filter((line) => !line.startsWith('|'))
    .flatMap((line) => partsOf(line.replace(itemMark, '')));
  const question = closing.findLast((sentence) => /[?？؟]["'”’»」)]*$/.test(sentence));
  if (answer.length > maxAnswer && !isLabeled && question !== closing.at(-1)) return '';
  const asked =
    question === undefined || chosen.some((option) => option.includes(question)) ? [] : [question];
  const quoted = [...chosen, ...asked].map((text) => wholeWords(oneLine(text), maxQuestion));
  return wholeWords(quoted.filter((text) => text !== '').join(' / '), maxQuestions);
}

/** UTF-16 units of a short answer, and of the question and the reply with a list that the user agrees with so shortly. */
export const maxAgreement = 60;
const maxAsked = 320;
const maxAgreed = 300;

/** Returns what is told of a reply before an answer that says nothing without it. `told` is what is told of it elsewhere. */
export function replyBefore(reply: string, told: string, answer: string): string {
  const question = questionBefore(reply, answer);
  const asked = wholeWords(question, maxAsked);
  const isPick = isItem(asked) || asked.includes(' / ');
  const lines = reply.split('\n');
  const list = lines.findIndex((line) => isItem(line.trim()));
  const isAgreed = answer.length <= maxAgreement && list >= 0 && !isPick;
  // An agreement needs what is agreed with.
  if (isAgreed && asked === '') return firstSentences(reply, maxAgreed) || told;
  if (isAgreed) return told.includes(asked) ? told : joinedApart(told, asked);
  if (asked === '') return told;
  // A pick needs its options alone: the reply may have other lists.
  const ahead = lines.slice(0, Math.max(0, list)).join('\n');
  const text = isPick && list >= 0 ? firstSentences(ahead, told.length || maxAgreed) : told;
  if (question.split(' / ').some((piece) => text.includes(piece))) return asked;
  return text === '' ? asked : joinedApart(text, asked);
}

/** UTF-16 units of the shortest words beside a call that say more than the call: shorter ones mostly announce the work. */
const minBeside = 80;

/** Returns what words beside a call say, without the last sentence, which announces the call. Empty for hardly more than that. */
export function wordsBeside(said: string, max: number): string {
  const at = said.lastIndexOf(sentencesOf(said).at(-1) ?? '');
  const words = firstSentences(said.slice(0, at < 0 ? said.trimEnd().lastIndexOf('\n') : at), max);
  return words.length < minBeside ? '' : words;
}

// Terms

/** Scripts that are written without spaces. */
const unspaced = '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\u30FC\\p{Script=Thai}';
const termIn = new RegExp(
  `[${unspaced}]+|(?:(?![${unspaced}])[\\p{L}\\p{N}_])+(?:[./:@#%'’-](?:(?![${unspaced}])[\\p{L}\\p{N}_])+)*`,
  'gu',
);
const isUnspaced = new RegExp(`^[${unspaced}]`, 'u');

/** Returns the terms of a text, each once, in lower case: words, names with their pieces, and pairs of characters. Names begin with `=`. */
export function termsOf(text: string): ReadonlySet<string> {
  const terms = new Set<string>();
  let isStart = true;
  for (const [found] of text.matchAll(termIn)) {
    if (isUnspaced.test(found)) {
      for (let at = 0; at < Math.max(1, found.length - 1); at++) terms.add(found.slice(at, at + 2));
    } else {
      const isName = /[\d_./:@#%]|\p{Ll}\p{Lu}/u.test(found) || (!isStart && /^\p{Lu}/u.test(found));
      const term = found.toLowerCase();
      terms.add(isName ? `=${term}` : term);
      // A name in a path is the same name.
      if (/[./:@-]/.test(term))
        for (const piece of [...term.split(/[./:@-]/), ...term.split('/')])
          if (piece.length > 2) terms.add(`=${piece}`);
    }
    isStart = false;
  }
  return terms;
}
