/**
 * Turns a stored original into text for a model, and finds ranges of its lines: removed text as it was, removed messages one after the
 * other in their own JSON, each under a line with its number and path. Pure, never throws.
 */
import { wholeAfter, wholeBefore } from '../conversation/messages.ts';

type Original = {
  /** The text that lines and queries refer to. */
  readonly text: string;
  /** The text that a path refers to; JSON only if the original is. */
  readonly json: string;
};

export function readOriginal(stored: string): Original {
  const start = /\S/.exec(stored)?.index ?? 0;
  const kind = kindAt(stored, start);
  if (kind === 'string') {
    const text = decoded(stored);
    return { text, json: text };
  }
  if (kind === 'array' && isJson(stored)) return { text: messageLines(stored), json: stored };
  return { text: stored, json: stored };
}

/** A literal that does not decode is better read raw than not at all. */
function decoded(literal: string): string {
  try {
    return JSON.parse(literal) as string;
  } catch {
    return literal;
  }
}

function messageLines(json: string): string {
  const messages = [...childrenOf(json, documentSpan(json).start)];
  const lines = messages.map((message, index) => {
    const role = roleOf(json, message);
    const head = `# message ${index + 1} of ${messages.length}${role === undefined ? '' : `, ${role}`}, path $[${index}]`;
    return `${head}\n${messageText(json, message, index)}`;
  });
  return lines.join('\n');
}

/** Returns the role of a message, or its type when it has no role. */
function roleOf(json: string, message: JsonSpan): string | undefined {
  const names = new Map<string, string>();
  for (const { key, start, end } of childrenOf(json, message.start)) {
    if (key !== 'role' && key !== 'type') continue;
    const name = /^"([\w-]{1,40})"$/.exec(json.slice(start, Math.min(end, start + 50)))?.[1];
    if (name !== undefined) names.set(key, name);
  }
  return names.get('role') ?? names.get('type');
}

/** Characters. A shorter literal stays in place, even with escapes. */
const minLiteralLength = 80;

/** Deeper values stay JSON; texts of messages are four or five levels deep. */
const maxDepth = 8;

/**
 * Lays out a removed message: its own JSON, and below it its long texts, decoded and each under its path, because code with `\n`
 * and `\"` is hard to read and takes more tokens. `index` is the index of the message in the list that `json` is.
 */
export function messageText(json: string, message: JsonSpan, index: number): string {
  let own = '';
  let at = message.start;
  const texts: string[] = [];
  for (const literal of escapedIn(json, message, [{ type: 'index', index }])) {
    own += `${json.slice(at, literal.start)}…`;
    at = literal.end;
    texts.push(
      `## ${spellPath(literal.path)}\n${JSON.parse(json.slice(literal.start, literal.end)) as string}`,
    );
  }
  return [own + json.slice(at, message.end), ...texts].join('\n');
}

type Literal = JsonSpan & { readonly path: readonly PathStep[] };

function* escapedIn(json: string, span: JsonSpan, path: readonly PathStep[]): Generator<Literal> {
  if (kindAt(json, span.start) === 'string') {
    const isLong = span.end - span.start >= minLiteralLength;
    if (isLong && json.slice(span.start, span.end).includes('\\')) yield { ...span, path };
    return;
  }
  if (path.length > maxDepth) return;
  let index = 0;
  for (const { key, ...child } of childrenOf(json, span.start)) {
    const step: PathStep =
      key === undefined ? { type: 'index', index: index++ } : { type: 'name', name: key };
    yield* escapedIn(json, child, [...path, step]);
  }
}

// Ranges of lines and characters: numbered from 1, both ends included, as models write them. A line ends at `\n`; the last line
// includes a final `\n`, so the lines of a text joined by `\n` are the text. Characters are UTF-16 units, and no range splits a
// code point. The functions are linear, without an index of the lines.

export type Unit = 'lines' | 'characters';

/** A range that a model asked for. */
export type Range =
  | { readonly kind: 'span'; readonly unit: Unit; readonly from: number; readonly to: number | undefined }
  | { readonly kind: 'tail'; readonly unit: Unit; readonly count: number };

/** A range of a text in UTF-16 units, `end` exclusive. */
export type TextSpan = { readonly start: number; readonly end: number };

const lineBreak = 0x0a;

const form =
  /^(?:(c)(?:haracters?|hars?)?|l(?:ines?)?)?\s*(\d{0,15})(?:\s*(-|–|—|to|:|\.{2,3}|,)\s*[cl]?\s*(\d{0,15}))?$/i;

/**
 * Reads "10-40", "10", "100-", "-20" (the last 20), "c1-2000" (characters), and "10,40", which is the list `[10, 40]` as text;
 * undefined for anything else.
 */
export function parseRange(text: string): Range | undefined {
  const given = text.slice(0, 100);
  const [, characters, first = '', separator, last = ''] = form.exec(unquoted(given)) ?? [];
  if (first === '' && last === '') return undefined;
  const unit = characters === undefined ? 'lines' : 'characters';
  if (first === '' && /^[-–—]$/.test(separator ?? '')) return { kind: 'tail', unit, count: atLeastOne(last) };
  const from = atLeastOne(first);
  if (separator === undefined) return { kind: 'span', unit, from, to: from };
  if (last === '') return { kind: 'span', unit, from, to: undefined };
  const to = atLeastOne(last);
  return { kind: 'span', unit, from: Math.min(from, to), to: Math.max(from, to) };
}

/** Returns the place of a range in the text, cut to the text's length; undefined when it begins after the end. */
export function locate(text: string, range: Range): TextSpan | undefined {
  const total = range.unit === 'lines' ? countLines(text) : text.length;
  const from = range.kind === 'tail' ? Math.max(1, total - range.count + 1) : range.from;
  const to = range.kind === 'tail' ? total : Math.min(total, range.to ?? total);
  if (from > total) return undefined;
  if (range.unit === 'lines') {
    const start = nextLines(text, 0, from - 1);
    return { start, end: to === total ? text.length : nextLines(text, start, to - from + 1) - 1 };
  }
  return { start: wholeBefore(text, from - 1), end: wholeAfter(text, to) };
}

/** Spells a place as a `lines` argument: in lines if it is whole lines, else in characters. */
export function spellRange(text: string, span: TextSpan): string {
  const spelled = spellPlace(text, span, unitOf(text, span));
  return unitOf(text, span) === 'lines' ? spelled : `c${spelled}`;
}

/** Spells the first and last line or character of the place: "10-40", or "10" when they are the same line. */
export function spellPlace(text: string, { start, end }: TextSpan, unit: Unit): string {
  if (unit === 'characters') return `${start + 1}-${end}`;
  const first = 1 + countBreaks(text, 0, start);
  const last = first + countBreaks(text, start, end === text.length && text.endsWith('\n') ? end - 1 : end);
  return first === last ? `${first}` : `${first}-${last}`;
}

export function unitOf(text: string, { start, end }: TextSpan): Unit {
  const isStart = start === 0 || text[start - 1] === '\n';
  const isEnd = end === text.length || (text[end] === '\n' && end !== text.length - 1);
  return isStart && isEnd ? 'lines' : 'characters';
}

export function countLines(text: string): number {
  if (text === '') return 0;
  return countBreaks(text, 0, text.length) + (text.endsWith('\n') ? 0 : 1);
}

function countBreaks(text: string, start: number, end: number): number {
  let count = 0;
  for (let at = start; at < end; at++) if (text.charCodeAt(at) === lineBreak) count++;
  return count;
}

/** Returns the offset after the next `count` line breaks. */
function nextLines(text: string, offset: number, count: number): number {
  let at = offset;
  for (let left = count; left > 0; at++) if (text.charCodeAt(at) === lineBreak) left--;
  return at;
}

function atLeastOne(digits: string): number {
  return Math.max(1, Number(digits));
}

function unquoted(text: string): string {
  return text.replaceAll(/["'`[\]\s]+/g, ' ').trim();
}

// JSON as text. Values are found without parsing, so that numbers keep their spelling and only requested parts are copied. The
// text must be one that `JSON.parse` accepts. Nothing recurses, so depth does not matter. Pure.

/** A JSON value in a text, `end` exclusive. */
export type JsonSpan = { readonly start: number; readonly end: number };

/** A member of an object (with its name) or an element of an array (without). */
type JsonChild = JsonSpan & { readonly key: string | undefined };

type JsonKind = 'object' | 'array' | 'string' | 'other';

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;

export function kindAt(text: string, start: number): JsonKind {
  switch (text.charAt(start)) {
    case '{':
      return 'object';
    case '[':
      return 'array';
    case '"':
      return 'string';
    default:
      return 'other';
  }
}

/** True for a complete JSON text. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Returns the span of the document's value, without the white space around it. */
export function documentSpan(text: string): JsonSpan {
  const start = afterSpace(text, 0);
  return { start, end: valueEnd(text, start) };
}

/** Returns the members or elements of the container that begins at `start`, in order; none for other values. */
export function* childrenOf(text: string, start: number): Generator<JsonChild> {
  const kind = kindAt(text, start);
  if (kind !== 'object' && kind !== 'array') return;
  let at = afterSpace(text, start + 1);
  while (text[at] !== '}' && text[at] !== ']') {
    let key: string | undefined;
    if (kind === 'object') {
      const end = stringEnd(text, at);
      key = JSON.parse(text.slice(at, end)) as string;
      at = afterSpace(text, afterSpace(text, end) + 1);
    }
    const end = valueEnd(text, at);
    yield { key, start: at, end };
    at = afterSpace(text, end);
    if (text[at] === ',') at = afterSpace(text, at + 1);
  }
}

/** Counts the members or elements of a container. */
export function lengthOf(text: string, span: JsonSpan): number {
  const children = childrenOf(text, span.start);
  let length = 0;
  while (children.next().done !== true) length++;
  return length;
}

/**
 * Returns the value without white space between its tokens; names, strings and numbers keep their spelling. `line-per-child` puts
 * each member or element of the value on a line of its own.
 */
export function compactJson(
  text: string,
  span: JsonSpan,
  layout: 'one-line' | 'line-per-child' = 'one-line',
): string {
  const out = createJoiner();
  const isByLine = layout === 'line-per-child';
  let depth = 0;
  let kept = span.start;
  let at = span.start;
  while (at < span.end) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      at = stringEnd(text, at);
    } else if (isSpace(code)) {
      out.add(text.slice(kept, at));
      kept = at = afterSpace(text, at);
    } else {
      if (opens(code)) depth++;
      if (isByLine && depth === 1 && closes(code)) {
        out.add(text.slice(kept, at) + '\n');
        kept = at;
      } else if (isByLine && depth === 1 && (code === comma || at === span.start)) {
        out.add(text.slice(kept, at + 1) + '\n');
        kept = at + 1;
      }
      if (closes(code)) depth--;
      at++;
    }
  }
  out.add(text.slice(kept, span.end));
  return out.text();
}

function valueEnd(text: string, start: number): number {
  switch (kindAt(text, start)) {
    case 'string':
      return stringEnd(text, start);
    case 'other':
      return scalarEnd(text, start);
    case 'object':
    case 'array':
      return containerEnd(text, start);
  }
}

function stringEnd(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === backslash) slashes++;
    if (slashes % 2 === 0) return at + 1;
  }
  return text.length;
}

function scalarEnd(text: string, start: number): number {
  let at = start;
  while (at < text.length && !',]}'.includes(text[at] ?? '') && !isSpace(text.charCodeAt(at))) at++;
  return at;
}

function containerEnd(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = stringEnd(text, at) - 1;
    else if (opens(code)) depth++;
    else if (closes(code) && --depth === 0) return at + 1;
  }
  return text.length;
}

function afterSpace(text: string, start: number): number {
  let at = start;
  while (isSpace(text.charCodeAt(at))) at++;
  return at;
}

function opens(code: number): boolean {
  return code === 0x7b || code === 0x5b;
}

function closes(code: number): boolean {
  return code === 0x7d || code === 0x5d;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

/** Joins pieces in batches: millions of small pieces held at once take far more memory than their text. */
function createJoiner(): { add(piece: string): void; text(): string } {
  const done: string[] = [];
  let pieces: string[] = [];
  const flush = (): void => {
    done.push(pieces.join(''));
    pieces = [];
  };
  return {
    add(piece) {
      if (pieces.push(piece) === 8192) flush();
    },
    text() {
      flush();
      return done.join('');
    },
  };
}

/** A step of a path into JSON. */
export type PathStep =
  | { readonly type: 'name'; readonly name: string }
  /** A negative index counts from the end. */
  | { readonly type: 'index'; readonly index: number }
  | { readonly type: 'slice'; readonly from: number; readonly to: number | undefined }
  | { readonly type: 'every' };

/** Returns the path in its full spelling, for messages. */
export function spellPath(steps: readonly PathStep[]): string {
  return `$${steps.map(spellStep).join('')}`;
}

function spellStep(step: PathStep): string {
  switch (step.type) {
    case 'name':
      return /^[A-Za-z_]\w*$/.test(step.name) ? `.${step.name}` : `[${JSON.stringify(step.name)}]`;
    case 'index':
      return `[${step.index}]`;
    case 'slice':
      return `[${step.from}:${step.to ?? ''}]`;
    case 'every':
      return '[*]';
  }
}
