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

/** Returns for each of the spaced sentences of a text the line or heading that announces its list; empty for a sentence that is no item. */
export function leadsOf(text: string, max = maxRead): readonly string[] {
  let lead = '';
  return markedLines(text.slice(0, maxRead * 2).replaceAll(fenced, codeLine), max).flatMap((line) => {
    if (isApart(line)) {
      if (!line.startsWith('|')) lead = `${sentencesIn(line).join(' ')}:`;
      return [''];
    }
    const sentences = sentencesIn(line);
    if (isItem(line)) return sentences.map(() => lead);
    const last = sentences.at(-1) ?? '';
    lead = /[:：]$/.test(last) && last.length <= maxLead ? last : '';
    return line.startsWith('|') || shortHeading.test(line) ? [''] : sentences.map(() => '');
  });
}

function sentencesIn(line: string): readonly string[] {
  return partsOf(memberText(withoutBullet(line)).replaceAll(/\*\*(?=\S)|(?<=\S)\*\*/g, ''));
}

/** Returns the text of a member of JSON, which models write in replies; other lines unchanged. */
function memberText(line: string): string {
  const begin = /^(?:"[\w.-]{1,40}": *[{[]? *)+/.exec(line)?.[0];
  if (begin === undefined) return line;
  let end = line.length;
  while (end > begin.length && ' ,]}'.includes(line.charAt(end - 1))) end--;
  return line.slice(begin.length, end).replaceAll(/^"|"$/g, '');
}

/** True for a row of a table, or a heading without a colon: no part of a sentence. */
export function isApart(line: string): boolean {
  return line.startsWith('|') || (shortHeading.test(line) && !/[:：]\**$/.test(line));
}

/** Matches a heading of at most five words: it names what follows and says nothing of it. */
const shortHeading = /^(?:#{1,6}\s+\S+(?:\s+\S+){0,4}\s*|\*\*[^*\s]+(?:\s+[^*\s]+){0,4}\s*\*\*:?)$/;

/** Matches the end of a sentence. A number or a single letter before the sign is an ordinal or an initial. */
const ending =
  /(?<=[^\d\s]{2}[.!?…]["'”’»)\]]{0,8})\s+(?=[^\s\p{Ll}])|(?<=\d[!?])\s+|(?<=\d{3}\.)\s+(?=\p{Lu})|(?=[^」』”）])(?<=[。！？][」』”）]{0,8})/u;

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

const itemNote =
  /^( ?(?:[-*•]|\d{1,3}[.)])\s.*)\n((?:(?:[^\S\n]*|[^\S\n]*\|.*)\n)+)[^\S\n]{2,}(?![-*•]\s|\d{1,3}[.)]\s|[|#])(?=\S)/gm;

/** Puts a paragraph within an item of a list behind its words: alone, it would be read as said of what stands ahead. */
export function withItemNotes(text: string): string {
  return text.replaceAll(itemNote, '$1 ');
}

/**
 * Returns the first sentences of a text, as many as `max` UTF-16 units hold; of a longer first one, whole words. A line that ends with a colon stands with
 * what it announces, or is left out; `…` stands where code, a table, a heading or such a line was. A list that does not fit is told in short, or by its first
 * items if `isQuoted`, for words of the user.
 */
export function firstSentences(text: string, max: number, isQuoted = false): string {
  let said = '';
  let lead = '';
  let isGap = false;
  // A line with a colon that is left out, unless code or a list follows it at once, and the heading right ahead.
  let dropped = '';
  let title = '';
  // A list whose first items are told, or of which none is.
  let list: 'none' | 'told' | 'left out' = 'none';
  const skip = (line: string): void => {
    const isCode = line.startsWith('|');
    isGap = true;
    // A line that announces code says what it is for; a heading stands between a reply's first words and what they announce.
    const before = lead || dropped;
    const shown = /[:：]$/.test(before) && line.startsWith(codeMark) ? line.slice(codeMark.length) : '';
    if (isCode && said.length < minSaid && isTelling(before)) {
      const code = isProse(shown.replace(/[:：]$/, '')) ? ` "${shown.replaceAll('"', "'")}"` : '';
      said = joinedAt(said, wholeWords(`${before}${code}`, max - said.length));
    }
    dropped = '';
    if (lead !== '') lead = isCode || said !== '' ? '' : `${lead.replace(/ …$/, '')} …`;
  };
  const read = withItemNotes(text.slice(0, maxRead).replaceAll(fenced, codeLine));
  const lines = markedLines(read, 20_000).map((line) => line.replace(numberedHeading, ''));
  let next = 0;
  for (const [at, line] of lines.entries()) {
    if (at < next) continue;
    const ownTitle = title;
    title = '';
    if (!isItem(line)) list = 'none';
    if (isApart(line)) {
      skip(line);
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
      const { items, end } = listAt(lines, at);
      const room = max - said.length - lead.length - 4;
      const short = isQuoted || items.join('; ').length <= room ? '' : shortList(items, room);
      if (short !== '') {
        const piece = lead === '' ? short : `${lead} ${short}`;
        said = said !== '' && isGap ? joinedApart(said, piece) : joinedAt(said, piece);
        [lead, dropped, isGap, next] = ['', '', true, end];
        continue;
      }
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

/**
 * Returns the items of the list that begins at a line, and the index of the line behind it. Between numbered items, other lines belong to the item above,
 * up to the next heading.
 */
function listAt(
  lines: readonly string[],
  from: number,
): { readonly items: readonly string[]; readonly end: number } {
  const isNumbered = numbered.test(lines[from]!);
  const items: string[] = [];
  let end = from;
  for (let at = from; at < lines.length; at++) {
    const line = lines[at]!;
    const isNext = isItem(line) && numbered.test(line) === isNumbered;
    // A list that begins again is another one.
    if (isApart(line) || (isNext && at > from && numbered.exec(line)?.[1] === '1')) break;
    if (!isNext && !isNumbered) break;
    if (!isNext) continue;
    items.push(line.replace(/^[-*•+]\s+/, ''));
    end = at + 1;
  }
  const ofLast = isNumbered ? lines.slice(end).findIndex((line) => !isItem(line) || numbered.test(line)) : 0;
  return { items, end: ofLast < 0 ? lines.length : end + ofLast };
}

const numbered = /^(\d{1,3})[.)]\s/;

/** Matches the marks of a heading that is an item of a list: `### 1. The cause`. */
const numberedHeading = /^#{2,6}\s+(?=\d{1,3}[.)]\s)/;

/** UTF-16 units of the shortest item of a list that is told in short. */
const minItem = 32;

/** Tells a list in short: what each item is about, as many items as there is room for, and how many there are. Empty without room for one. */
function shortList(items: readonly string[], room: number): string {
  const total = ` … (${items.length} items)`;
  for (let told = Math.min(items.length, Math.floor(room / minItem)); told > 0; told--) {
    let left = told < items.length ? room - total.length : room;
    const shares: string[] = [];
    for (let at = 0; at < told; at++) {
      const share = shortItem(items[at]!, Math.floor(left / (told - at)) - 2).replace(/[:：]$/, '');
      left -= share.length + 2;
      shares.push(share);
    }
    if (shares.includes('')) continue;
    const text = shares.join('; ');
    return told < items.length ? `${text.replace(/ …$/, '')}${total}` : text;
  }
  return '';
}

/** Tells an item by its title, or by its first words; empty if these do not fit. */
function shortItem(item: string, max: number): string {
  const words = sentencesIn(item).join(' ');
  if (words.length <= max) return words;
  const [, mark = '', title] = /^((?:\d{1,3}[.)] )?)\*\*(.{3,80}?)[:.]?\*\*/.exec(item) ?? [];
  const before = /^.{3,80}?(?= [-–—] |: |; |\. | \(|（|：|。)/u.exec(words)?.[0];
  const begin = title === undefined ? before : mark + title;
  // A title that leaves half of the room tells less than the first words, and so does a name, such as that of a file.
  const isName = /^(?:\d{1,3}[.)] )?\S+$/.test(begin ?? '');
  if (begin !== undefined && !isName && begin.length <= max && begin.length * 2 >= max) return begin;
  const first = wholeWords(words, max);
  return /\p{L}/u.test(first) ? first : '';
}

function joinedAt(said: string, piece: string): string {
  return said === '' || piece === '' ? said + piece : joinedSentences(said, piece);
}

/** UTF-16 units of words that say enough without what announces code. */
const minSaid = 40;

/** Matches code, which is read as a row of a table: no part of a sentence. */
const fenced = /(?:```|~~~)[^\n]*\n?\s*([^\n]*)[^]*?(?:```|~~~|$)/g;
const codeMark = '| code ';
const codeLine = `\n${codeMark}$1\n`;

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

/** True for a sentence with a name or a number in it. */
export function hasName(sentence: string): boolean {
  return [...termsOf(sentence)].some((term) => term.startsWith('=') && term.length > 2);
}

/** True for a short exclamation without a name or number, such as `Perfect!`, unless it answers a question. */
function isExclamation(sentence: string): boolean {
  return (
    /^(?!(?:yes|no|ja|nein|doch|sí|oui|non)\b)\S{1,20}(?: \S{1,20}){0,2}[!！]$/i.test(sentence) &&
    !/[\d`/_]|\p{Ll}\p{Lu}/u.test(sentence)
  );
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
