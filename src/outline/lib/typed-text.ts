/**
 * Finds the words that the user typed, among texts that clients send in the user's place: skills, commands, reminders, and summaries of what came before; and
 * what a reply asked before a short answer. Linear, also on hostile text. Pure.
 */
import { oneLine, wholeWords } from '../outcome.ts';
import {
  firstSentences,
  hasName,
  isItem,
  isProse,
  isSentence,
  joinedApart,
  markedLines,
  maxRead,
  partsOf,
  sentencesOf,
} from '../sentences.ts';

/** A user message: what the user typed, and what the client sent beside it or instead. Either may be empty. */
export type TypedText = { readonly words: string; readonly note: string };

/** Matches the beginning of an element that clients write; users write other names. */
const clientElement =
  /<((?:system|local|command|bash|ide|environment)[-_][a-z_-]{1,40}|[a-z-]{1,40}-hook|user[-_](?:instructions|query|message))(?: [^>\n]{0,300})?>/g;

/** Matches the beginning of a summary by the client. */
export const clientSummary = /^\s*This session is being continued from a previous conversation[^\n]*/;

/** The note of the text that clients send when the user stops the model. */
export const interruptionNote = 'interrupted by the user';

/** Matches the beginning of what a hook of the client says, which stands in the user's place, and UTF-16 units that are told of it. */
export const ofHook =
  /^\s*(?:(?:\w+ )?operation (?:stopped|blocked) by (?:\w+ )?hook\b|(?:Pre|Post|Session|Stop|Subagent|User|Notification)\w*(?::[\w*-]+)? hook\b[^\n]{0,60}:)/i;
const maxHook = 160;

/** Matches what clients send right ahead of the text of a command or a skill. Commands without a text of their own begin with their name. */
export const announcesText = /^\s*(?:<command-message>|Launching skill: )/;
const calledSkill = /^\s*Launching skill: /;

/**
 * Separates what the user typed from texts of skills, commands, reminders and summaries, which clients send in the user's place. `before` is the
 * text right ahead of it, of a user message or a result.
 */
export function typedText(text: string, before = ''): TypedText {
  if (clientSummary.test(text)) return { words: '', note: 'summary of an earlier part, by the client' };
  const skill = /^\s*Base directory for this skill: *(\S+)/.exec(text)?.[1];
  if (skill !== undefined) {
    // A skill that the model called has arguments of the model.
    const given = calledSkill.test(before) ? '' : (/\nARGUMENTS: *([^]+)$/.exec(text)?.[1] ?? '');
    return { words: given.trim(), note: `skill ${skill.split('/').at(-1)}` };
  }
  if (/^\s*\[Request interrupted by user/.test(text)) return { words: '', note: interruptionNote };
  if (announcesText.test(before)) return { words: '', note: textOfCommand(text, before) };
  const hook = ofHook.exec(text);
  if (hook) {
    const [, prompt = ''] = /\n[^\S\n]*Original prompt: *([^]+)$/.exec(text) ?? [];
    return { words: prompt.trim(), note: wholeWords(oneLine(text.split(/\n\s*\n/, 1)[0]!), maxHook) };
  }
  const bare = /^\s*(\/[\p{L}\d:_-]{1,60})\s*$/u.exec(text)?.[1];
  if (bare !== undefined)
    return bare.includes(':') ? { words: bare, note: '' } : { words: '', note: `command ${bare}` };
  const { inside, rest } = elementsIn(text);
  const command = inside.get('command-name') ?? '';
  const given = inside.get('command-args') ?? '';
  // The client sends the text of such a command right behind it: to name it is to demand what that says.
  const isDemand = /^\s*<command-message>/.test(text);
  const ran = inside.get('bash-input');
  const shell = ran === undefined ? '' : `(ran) ${ran}`;
  const typed = given === '' ? (isDemand ? command : shell) : `${command} ${given}`;
  return {
    words: [typed, inside.get('user_query') ?? inside.get('user_message') ?? '', rest]
      .filter((words) => words !== '')
      .join('\n'),
    note: command === '' || given !== '' || isDemand ? '' : `command ${oneLine(command)}`,
  };
}

/** UTF-16 units of the beginning of a command's text. */
const maxCommandText = 120;

/** Says how the text of a command begins that the user named without any words. */
function textOfCommand(text: string, before: string): string {
  if (!before.includes('<command-name>') || /<command-args>\s*[^\s<]/.test(before)) return '';
  const [begin = ''] = sentencesOf(text.slice(0, maxCommandText * 20)).filter(isSentence);
  return begin === ''
    ? ''
    : `its text begins: "${wholeWords(oneLine(begin).replaceAll('"', "'"), maxCommandText)}"`;
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

/** UTF-16 units of the end of a long message, as a share of those of its beginning. */
const shareOfEnd = 0.3;

/**
 * Quotes what the user typed in one line: `max` UTF-16 units, and of a longer message its last words, which often say what must not be done. Code and logs that
 * the user pasted at the end are none.
 */
export function quotedWords(words: string, max: number): string {
  const begin = wholeWords(oneLine(words), max);
  if (!begin.endsWith(' …')) return begin;
  const own = words
    .slice(-maxRead)
    .split('\n')
    .flatMap((line) => partsOf(oneLine(line)));
  const last = own.findLastIndex((sentence) => isProse(sentence.replace(itemMark, '')));
  let end = wholeWords(own[last] ?? '', max * shareOfEnd);
  for (const sentence of own.slice(0, Math.max(0, last)).toReversed()) {
    if (sentence.length + end.length >= max * shareOfEnd || begin.includes(sentence)) break;
    end = `${sentence} ${end}`;
  }
  return end === '' || begin.includes(end) ? begin : `${begin} ${end}`;
}

// Questions that the user answered in a few words

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
const optionMark = /^(?:\|\s*|[-*•]\s+)?(?:#{1,6}\s+)?\**\(?(?:\p{L}+ )?(\d{1,2}|[A-Za-z])\**[.):：]/u;

/** Matches the number or letter of an option in an answer, with a word ahead of it that names another thing or a number of things. */
const picked =
  /(?:(?<![\p{L}])(all|both|alle|todos|todas|tous|les|first|last|PR|task|phase|step|part|issue|line|version|comment|#) ?)?(?<![\p{L}\d.'’]|(?:^|\s)-)(\d{1,2}|[A-Z])(?![\p{L}\d])/giu;

/**
 * Returns what a reply asked before a short answer: the options that the answer names, by their numbers, and the last question. Empty for an
 * answer that is long enough to be understood (longer, if the reply ends with its question), and without a question.
 */
export function questionBefore(reply: string, answer: string): string {
  const isLabeled = /^\W{0,3}(?:[\p{L}’']+ ){0,2}(?:\d{1,2}|[A-Z])(?![\p{L}\d'’])/u.test(answer);
  // Who asks in turn has not answered.
  if (!isLabeled && (answer.length > maxAnswerToLast || isAsking(answer.trimEnd()))) return '';
  const lines = markedLines(reply, 20_000).map((line) => line.replaceAll('**', ''));
  const options = new Map<string, string>();
  for (const line of lines) {
    const label = optionMark.exec(line)?.[1]?.toUpperCase();
    if (label === undefined) continue;
    const cells = line.replaceAll(/^\||\|$/g, '').split('|');
    const bare = cells.length > 1 ? cells.map((cell) => cell.trim()).join(': ') : cells[0]!;
    // An answer has the numbers of the list that asks.
    if (isAsking(line) || !isAsking(options.get(label) ?? ''))
      options.set(label, bare.replace(/^(?:[-*•]|#{1,6})\s+/, ''));
  }
  const numbers = Array.from(answer.slice(0, 4_000).matchAll(answerMark), ([, label = '']) => label);
  const isNumbered = isLabeled && numbers.length > 1;
  const named = isNumbered
    ? numbers.map((label) => ({ noun: '', label }))
    : Array.from(answer.slice(0, 200).matchAll(picked), ([, noun = '', label = '']) => ({
        noun,
        label: mayPick(answer, label) ? label.toUpperCase() : '',
      }));
  const chosen = [
    ...new Set(
      named.flatMap(({ noun, label }) => {
        const option = options.get(label);
        // `Task 1` and `PR 1` are no options, unless the reply calls them so.
        const isOther = noun !== '' && !option?.toLowerCase().includes(`${noun} ${label}`.toLowerCase());
        return option === undefined || isOther ? [] : [option];
      }),
    ),
  ];
  const closing = lines
    .slice(-12)
    .filter((line) => !/^(?:\||#{1,6}\s)/.test(line))
    .flatMap((line) => partsOf(line.replace(itemMark, '')));
  const last = closing.findLastIndex(isAsking);
  const question = closing[last];
  if (answer.length > maxAnswer && !isLabeled && question !== closing.at(-1)) return '';
  // Who says yes to two questions, the second of which begins with `Or`, answers the first.
  const first = otherwise.test(question ?? '') ? closing.slice(0, last).findLast(isAsking) : undefined;
  const isTold = question === undefined || chosen.some((option) => option.includes(question));
  if (isNumbered && chosen.length > 1)
    return chosen.map((option) => wholeWords(oneLine(option), maxNumbered)).join(' / ');
  const asked = isTold
    ? []
    : first === undefined
      ? [question]
      : [`${first} ${wholeWords(question, maxOther)}`];
  const quoted = [...chosen, ...asked].map((text) => wholeWords(oneLine(text), maxQuestion));
  return wholeWords(quoted.filter((text) => text !== '').join(' / '), maxQuestions);
}

/** True for a letter that names an option: a small vowel is a word, such as `a`, unless a sign or nothing follows it, or it is nearly all of the answer. */
function mayPick(answer: string, label: string): boolean {
  const mayBeWord = /[aeiouy]/.test(label) && answer.split(/\s+/).length > 2;
  return !mayBeWord || new RegExp(`(?<![\\p{L}\\d])${label}\\s*(?:[.,:;!)]|$)`, 'u').test(answer);
}

/** UTF-16 units of one of several questions that an answer has the numbers of, and of a second question that offers something else. */
const maxNumbered = 120;
const maxOther = 60;

/** Matches the number ahead of each answer of several. */
const answerMark = /(?:^|\s)(\d{1,2}|[A-Z])[.)](?=\s)/g;

/** Matches the beginning of a question that offers something else than the question ahead of it. */
const otherwise = /^(?:or|oder|ou|o bien|o)\b|^(?:それとも|または|还是|或者)/i;

function isAsking(sentence: string): boolean {
  return /[?？؟]["'”’»」)]*$/.test(sentence);
}

/** Adds the question to a short answer. */
export function withQuestion(answer: string, question: string): string {
  return question === '' ? answer : `${answer}${askedMark}"${question.replaceAll('"', "'")}")`;
}

/** Begins the question of a short answer. */
export const askedMark = ' (asked: ';

/** UTF-16 units of a short answer, and of the question and the reply with a list that the user agrees with in so few words. */
export const maxAgreement = 60;
const maxAsked = 320;
const maxAgreed = 300;
/** UTF-16 units of the beginning of a question by which it is found in what is told. */
const minTold = 24;

/** Returns what is told of a reply before an answer that says nothing without it. `told` is what is told of it elsewhere. */
export function replyBefore(reply: string, told: string, answer: string): string {
  const text = toldBefore(reply, told, answer);
  const question = (partsOf(text).at(-1) ?? '').replace(/^… /, '');
  const lead = answer.length <= maxAgreement ? referredIn(reply, text, question) : '';
  const before = text.slice(0, text.lastIndexOf(question)).trimEnd();
  return lead === '' ? text : `${before === '' ? lead : joinedApart(before, lead)} ${question}`;
}

/** Returns the sentence ahead of the question at the end of a text, and the option that it names: `Shall I make that change?` says nothing without them. */
function referredIn(reply: string, text: string, question: string): string {
  if (!isAsking(question) || hasName(question)) return '';
  const lines = markedLines(reply, 20_000).map((line) => line.replaceAll('**', ''));
  const [ahead = ''] = lines.findLast((line) => line.includes(question))?.split(question, 1) ?? [];
  const lead = partsOf(ahead.replace(itemMark, '').trim()).at(-1) ?? '';
  // Of several lists, the last one is what the reply asks about.
  const options = Array.from(lead.matchAll(optionNumber), ([number]) =>
    lines.findLast((line) => optionMark.exec(line)?.[1] === number),
  ).filter((line) => line !== undefined);
  return [...options, lead]
    .filter((words) => isProse(words) && !text.includes(words))
    .map((words) => wholeWords(oneLine(words), maxQuestion))
    .join(' / ');
}

/** Matches the number of an option within a sentence. */
const optionNumber = /(?<![\w.,:/-])\d{1,2}(?![\w.,:/-]\w)/g;

function toldBefore(reply: string, told: string, answer: string): string {
  const question = questionBefore(reply, answer);
  const numbered = question.split(' / ').length > 2;
  const asked = numbered ? question : wholeWords(question, maxAsked);
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
  // A question that is told already stands once, as a whole.
  const pieces = asked.split(' / ').filter((piece) => !text.includes(piece));
  if (pieces.length === 0) return text;
  const at = text.indexOf(pieces[0]!.slice(0, minTold));
  const before = at < 0 || pieces[0]!.length < minTold ? text : text.slice(0, at).trimEnd();
  if (before === '') return pieces.join(' / ');
  return at < 0 ? joinedApart(before, pieces.join(' / ')) : `${before} ${pieces.join(' / ')}`;
}
