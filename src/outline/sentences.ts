/**
 * Splits text into sentences that can be kept word for word, in any language, and finds the terms of a sentence: words, names and numbers, and
 * pairs of characters in languages without spaces. Finds what the user typed in a message, among skills, commands and reminders of the client.
 * Every pass is linear, also on hostile text. Pure.
 */
import { echo, oneLine, wholeWords } from './outcome.ts';

/** Longer sentences are cut between words. */
const maxSentence = 400;

/** Characters of the longest text that is read completely; only both ends of a longer one are read. */
const maxRead = 200_000;

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
  return markedLines(text, max)
    .filter((line) => !line.startsWith('|') && !shortHeading.test(line))
    .flatMap((line) => partsOf(withoutBullet(line).replaceAll(/\*\*(?=\S)|(?<=\S)\*\*/g, '')));
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

/** Returns the first sentences of a text, as many as `max` UTF-16 units hold; of a longer first one, whole words. */
export function firstSentences(text: string, max: number): string {
  let said = '';
  for (const sentence of sentencesOf(text, 20_000)) {
    if (/[:：]$/.test(sentence) || isExclamation(sentence)) continue;
    const more = said === '' ? sentence : joinedSentences(said, sentence);
    // A word or two, such as `Done.`, say less than the beginning of the sentence behind them.
    if (more.length > max) return said.length * 4 < max ? wholeWords(oneLine(more), max) : said;
    said = more;
  }
  return said;
}

/** True for a short exclamation without a name or number, such as `Perfect!`. */
function isExclamation(sentence: string): boolean {
  return sentence.length < 40 && /[!！]$/.test(sentence) && !/[\d`/_]|\p{Ll}\p{Lu}/u.test(sentence);
}

/** True for more than a word or two, and no announcement of what follows it. */
export function isSentence(text: string): boolean {
  return text.length >= 6 && !/[:：]$/.test(text) && !text.startsWith('|');
}

/** True for a sentence in a language rather than code, a table or a path: most of its words are letters alone. */
export function isProse(text: string): boolean {
  if (!isSentence(text) || text.length < 10 || echo.test(text)) return false;
  const unspaced =
    text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/gu)?.length ?? 0;
  if (unspaced >= 5 && unspaced * 3 >= text.length) return true;
  const words = text.split(' ');
  const plainWords = words.filter((word) =>
    /^["'“„«(¿¡]?[\p{L}\p{M}'’-]+["'”»)]?[,.;:!?…]*$/u.test(word),
  ).length;
  return words.length >= 4 && plainWords * 2 >= words.length && !code.test(text);
}

/** Matches signs of code: operators, escapes, formats, a call with a literal, the end of a statement. */
const code = /[!=<>:]=|&&|\|\||[=-]>|[;{}]$|\\[nt"]|\$\{|%[sdvqw]\b|\w\(["'`]/;

/** Joins sentences. Items of a list, which have no sign at their end, get one. */
export function joinedSentences(before: string, sentence: string): string {
  return `${before}${/[\p{L}\p{N})\]`"'’”]$/u.test(before) ? ';' : ''} ${sentence}`;
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
const optionMark = /^(?:[-*•]\s+)?(?:#{1,6}\s+)?\**(?:\p{L}+ )?(\d{1,2}|[A-Z])\**[.):：]/u;

/**
 * Returns what a reply asked before a short answer: the options that the answer names, by their numbers, and the last question. Empty for an
 * answer that is long enough to be understood (longer, if the reply ends with its question), and without a question.
 */
export function questionBefore(reply: string, answer: string): string {
  const isLabeled = /^\W{0,3}(?:\p{L}+ )?(?:\d{1,2}|[A-Z])(?![\p{L}\d])/u.test(answer);
  if (answer.length > maxAnswerToLast && !isLabeled) return '';
  const lines = markedLines(reply, 20_000).map((line) => line.replaceAll('**', ''));
  const options = new Map<string, string>();
  for (const line of lines) {
    const label = optionMark.exec(line)?.[1];
    if (label !== undefined) options.set(label, line.replace(/^(?:[-*•]|#{1,6})\s+/, ''));
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

// The words that the user typed, among texts that clients send in the user's place

/** A user message: what the user typed, and what the client sent beside it or instead. Either may be empty. */
export type TypedText = { readonly words: string; readonly note: string };

/** Matches the beginning of an element that clients write; users write other names. */
const clientElement =
  /<((?:system|local|command|bash|ide|environment)[-_][a-z_-]{1,40}|user[-_](?:instructions|query|message))(?: [^>\n]{0,300})?>/g;

/** Matches the beginning of a summary by the client. */
export const clientSummary = /^\s*This session is being continued from a previous conversation[^\n]*/;

/** Matches what clients write around their summaries: a draft of it before, and how to go on behind. */
const startOfSummary = /\n(?:#{1,4} )?\**Summary\**:\**[^\S\n]{0,20}\n/;
const endOfSummary =
  /\n(?:If you need specific details from before compaction|(?:Please )?continue the conversation from where)[^]*$/i;

/** Matches the heading of a section in such a summary: a number and a few words, at the margin. */
const sectionHeading = /^(?:#{1,4} +)?\d{1,2}[.)] +\**([^\n*:：]{2,60})\**[:：]\**[^\S\n]*$/;

/**
 * UTF-16 units of the sections that are kept: the goal, the one ahead of the user's words, which says what was solved, the user's words, and the next two
 * of the last three, which say what was open. The very last one repeats them.
 */
const maxGoal = 280;
const maxSolved = 240;
const maxQuoting = 700;
const maxOpen = [220, 180, 0];

/** A line of a client's summary. `isState`: it tells how things stood then. */
export type SummaryLine = { readonly text: string; readonly isState: boolean };

/**
 * Returns what a summary by the client says of the goal, of what was solved, in the user's words and of what was open, each with the heading of its
 * section; other sections, which explain code and steps, are left out.
 */
export function summaryLines(text: string): readonly SummaryLine[] {
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
  if (read.length < maxOpen.length) {
    const lines = read.flatMap((section) => section.lines);
    const shortened = [firstLines(lines, maxGoal), newestLines(lines.filter(isQuoting), maxQuoting)];
    return shortened.filter((line) => line !== '').map((line) => ({ text: line, isState: false }));
  }
  const quotes = read.map(({ lines }) => lines.filter(isQuoting).length);
  const quoting = quotes.lastIndexOf(Math.max(...quotes));
  const linesKept = (lines: readonly string[], at: number): string => {
    if (at === 0) return firstLines(lines, maxGoal);
    if (at === quoting && quotes[at]! > 0) return newestLines(lines, maxQuoting);
    const ofOpen = maxOpen[at - read.length + maxOpen.length];
    if (ofOpen !== undefined) return ofOpen === 0 ? '' : firstLines(lines, ofOpen);
    return at === quoting - 1 && quotes[quoting]! > 0 ? firstLines(lines, maxSolved) : '';
  };
  return read.flatMap(({ heading, lines }, at) => {
    const kept = linesKept(lines, at);
    const isState = at > 0 && at >= read.length - maxOpen.length;
    return kept === '' ? [] : [{ text: heading === '' ? kept : `${heading}: ${kept}`, isState }];
  });
}

function isQuoting(line: string): boolean {
  return /["“「][^"”」]{4}/.test(line);
}

/** Joins the first lines, as many as fit; of a longer first one, whole words. */
function firstLines(lines: readonly string[], max: number): string {
  let shortened = '';
  for (const line of lines) {
    const more = shortened === '' ? oneLine(line) : joinedSentences(shortened, oneLine(line));
    if (more.length > max) return shortened === '' ? wholeWords(more, max) : `${shortened} …`;
    shortened = more;
  }
  return shortened;
}

/** Joins the first line and the newest ones that fit. */
function newestLines(lines: readonly string[], max: number): string {
  const [first = '', ...others] = lines.map((line) => wholeWords(oneLine(line), 200));
  const newest: string[] = [];
  let units = first.length;
  for (const line of others.toReversed()) {
    units += line.length + 2;
    if (units > max) return [first, '…', ...newest].reduce(joinedSentences);
    newest.unshift(line);
  }
  return [first, ...newest].reduce(joinedSentences);
}

/** The note of the text that clients send when the user stops the model. */
export const interruptionNote = 'interrupted by the user';

/** Matches what clients send right ahead of the text of a command or a skill. Commands without a text of their own begin with their name. */
export const announcesText = /^\s*(?:<command-message>|Launching skill: )/;

/**
 * Separates what the user typed from texts of skills, commands, reminders and summaries, which clients send in the user's place. `before` is the
 * text right ahead of it, of a user message or a result.
 */
export function typedText(text: string, before = ''): TypedText {
  if (clientSummary.test(text)) return { words: '', note: 'summary of an earlier part, by the client' };
  const skill = /^\s*Base directory for this skill: *(\S+)/.exec(text)?.[1];
  if (skill !== undefined) {
    const given = /\nARGUMENTS: *([^]+)$/.exec(text)?.[1] ?? '';
    return { words: given.trim(), note: `skill ${skill.split('/').at(-1)}` };
  }
  if (/^\s*\[Request interrupted by user/.test(text)) return { words: '', note: interruptionNote };
  // The words behind the name of a command stand beside it.
  if (announcesText.test(before)) return { words: '', note: '' };
  const bare = /^\s*(\/[\p{L}\d:_-]{1,60})\s*$/u.exec(text)?.[1];
  if (bare !== undefined) return { words: '', note: `command ${bare}` };
  const { inside, rest } = elementsIn(text);
  const command = inside.get('command-name') ?? '';
  const given = inside.get('command-args') ?? '';
  const typed = given === '' ? inside.get('bash-input') : `${command} ${given}`;
  return {
    words: [typed ?? '', inside.get('user_query') ?? inside.get('user_message') ?? '', rest]
      .filter((words) => words !== '')
      .join('\n'),
    note: command === '' || given !== '' ? '' : `command ${oneLine(command)}`,
  };
}

/** Returns the contents of the elements that clients write, by name, and the text around them. */
function elementsIn(text: string): { readonly inside: ReadonlyMap<string, string>; readonly rest: string } {
  const inside = new Map<string, string>();
  const around: string[] = [];
  const unclosed = new Set<string>();
  let from = 0;
  for (const begin of text.matchAll(clientElement)) {
    const [tag, name = ''] = begin;
    if (begin.index < from || unclosed.has(name)) continue;
    const start = begin.index + tag.length;
    const end = text.indexOf(`</${name}>`, start);
    if (end < 0) {
      unclosed.add(name);
      continue;
    }
    inside.set(name, text.slice(start, end).trim());
    around.push(text.slice(from, begin.index).trim());
    from = end + name.length + 3;
  }
  around.push(text.slice(from).trim());
  return { inside, rest: around.filter((piece) => piece !== '').join('\n') };
}
