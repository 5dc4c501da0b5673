/**
 * Finds the values that a model needed to know to make a call: values of its arguments that it may have read somewhere. Names with a sign
 * of their own, paths, numbers and quoted lines count, not every word. Which of them occur in earlier messages is up to the caller. Pure.
 *
 * - A number of three digits or more counts; so does a path, and a word with a digit, underscore, dot, dash or inner capital, of six
 *   characters or more (five with a digit).
 * - A value of one line counts as a whole if it occurred earlier as a whole; then nothing inside it counts again.
 * - Of a value of many lines (a file, an old text to be replaced) only whole lines of twenty characters or more count, without surrounding
 *   white space: words within written text are mostly the model's own.
 */
import type { Conversation, Message } from '../conversation/conversation.ts';
import { bytesOf, decodeLiteral, textOf, textsOf } from '../conversation/messages.ts';

/** A value, and the values inside it to look for if the whole value never occurred. */
export type Candidate = { readonly value: Value; readonly within: readonly Value[] };

/** A `word` must not be inside a longer word; a `line` may be anywhere. */
export type Value = { readonly kind: 'word' | 'line'; readonly text: string };

const maxWhole = 300;
const minWhole = 6;
const minLine = 20;

/** Returns the distinct candidates in a call's arguments, in order. None for arguments that are not JSON. */
export function candidatesOf(argumentsJson: string): readonly Candidate[] {
  const found = new Map<string, Candidate>();
  for (const leaf of leavesOf(parsed(argumentsJson))) {
    for (const candidate of candidatesIn(leaf)) {
      if (!found.has(candidate.value.text)) found.set(candidate.value.text, candidate);
    }
  }
  return [...found.values()];
}

/** Returns the texts and numbers in a call's arguments; the arguments themselves if they are not JSON. */
export function argumentLeaves(argumentsJson: string): readonly string[] {
  const value = parsed(argumentsJson);
  return value === undefined ? [argumentsJson] : leavesOf(value);
}

/** Returns the texts and numbers in a JSON value, as texts. Keys of objects are left out: the tool defines them, not the model. */
function leavesOf(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value === 'number') return [String(value)];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(leavesOf);
}

/** True if a text contains a value: unchanged, or escaped as in JSON, once or twice. */
export function holds(text: string, value: Value): boolean {
  if (placeOf(text, value, 0) >= 0) return true;
  if (!/["\\]/.test(value.text)) return false;
  const once = escaped(value.text);
  return text.includes(once) || text.includes(escaped(once));
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Returns the index of a value in a text, at or after `from`; -1 if there is none. */
export function placeOf(text: string, { kind, text: wanted }: Value, from: number): number {
  let at = text.indexOf(wanted, from);
  if (kind === 'line' || wanted === '') return at;
  while (at >= 0 && (continuesBefore(text, at) || isWordCode(text, at + wanted.length))) {
    at = text.indexOf(wanted, at + 1);
  }
  return at;
}

function candidatesIn(leaf: string): readonly Candidate[] {
  const lines = leaf.split('\n').map((line) => line.trim());
  const [only] = lines;
  if (only !== undefined && lines.length === 1) return oneLine(only);
  return lines
    .filter((line) => line.length >= minLine)
    .map((text) => ({ value: { kind: 'line', text }, within: [] }));
}

function oneLine(text: string): readonly Candidate[] {
  const words = wordsIn(text);
  const within = words.map((word): Value => ({ kind: 'word', text: word }));
  if (words.length === 1 && words[0] === text) return [{ value: within[0]!, within: [] }];
  const isWhole = text.length >= minWhole && text.length <= maxWhole && /\s/.test(text);
  if (isWhole) return [{ value: { kind: 'line', text }, within }];
  return within.map((value) => ({ value, within: [] }));
}

/** Separates words in paths, commands, queries and code. A colon separates, except in a URL. */
const separators = /[\s"'`,;()[\]{}<>|&=?!\\^$%]+|:(?!\/\/)/u;

function wordsIn(text: string): readonly string[] {
  const words = text
    .split(separators)
    .map((word) => word.replace(/^(?:\.{1,2}\/)+|^[-.@#~+]+/, '').replace(/(?<![-./@#~+])[-./@#~+]+$/, ''));
  return [...new Set(words.filter(isTelling))];
}

function isTelling(word: string): boolean {
  // A glob pattern is the model's own, and so are its pieces.
  if (word.includes('*')) return false;
  if (/^[\d.,/-]+$/.test(word)) return word.replaceAll(/\D/g, '').length >= 3;
  if (word.includes('/')) return word.length >= 5 && /\p{L}/u.test(word);
  if (/\d/.test(word)) return word.length >= 5;
  return word.length >= 6 && (/[_.-]/.test(word) || /\p{Ll}\p{Lu}/u.test(word));
}

/** True if a word continues before `at`. In JSON, a word may follow the letter of an escape: `\n/usr/lib`. */
function continuesBefore(text: string, at: number): boolean {
  return isWordCode(text, at - 1) && !(text[at - 2] === '\\' && 'nrtbf'.includes(text[at - 1]!));
}

/** True for a word character. ASCII is enough for names. */
function isWordCode(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return (
    (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95
  );
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Returns the text of a message as a model reads it: decoded texts, and the values of calls without their JSON. */
export function messageText({ body }: Conversation, message: Message): string {
  const texts = message.parts.flatMap((part) => {
    if (part.type === 'tool-call')
      return [part.name, ...argumentLeaves(argumentsOf(body, message, part.input))];
    return textsOf(part).map((span) => textOf(body, message, span));
  });
  return texts.join('\n');
}

/** Returns the arguments of a call as JSON; some formats keep them in a string. An empty string means no arguments. */
export function argumentsOf(
  body: Uint8Array,
  message: Message,
  input: { readonly start: number; readonly end: number },
): string {
  const bytes = bytesOf(body, message, input);
  const json = bytes[0] === 0x22 ? decodeLiteral(bytes) : new TextDecoder().decode(bytes);
  return json.trim() === '' ? '{}' : json;
}
