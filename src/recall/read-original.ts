/**
 * Turns a stored original into text for a model: removed text as it was, arguments as `name: value`, removed messages one after the other, each
 * under a heading; and gives originals their titles. Pure, linear, never throws.
 */
import type { Conversation } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { inputOf } from '../conversation/messages.ts';
import { callsByResult, type PartPlace, placeKey } from '../conversation/turns.ts';

type Original = {
  /** The text that lines and queries refer to. */
  readonly text: string;
  /** The text that a path refers to; JSON only if the original is. */
  readonly json: string;
  /** The parts of removed messages; empty for other originals. */
  readonly sections: readonly PageSection[];
};

/** Reads the content of an original. `isArguments` is true for the arguments of a call, which some formats keep as JSON in a string. */
export function readOriginal(stored: string, isArguments = false): Original {
  const start = /\S/.exec(stored)?.index ?? 0;
  const kind = kindAt(stored, start);
  if (kind === 'string') {
    const json = decoded(stored);
    return { text: isArguments ? argumentLines(json) : json, json, sections: [] };
  }
  if (kind === 'array' && isJson(stored)) {
    const shown = withoutBase64(stored);
    return { ...messagePage(shown, documentSpan(shown).start), json: stored };
  }
  return { text: kind === 'object' ? argumentLines(stored) : stored, json: stored, sections: [] };
}

/** The base64 of images and files, which tells a model nothing in a text. A path still leads to it. */
const base64 = /("data"\s*:\s*"|"data:[\w.+/-]{1,100};base64,)([A-Za-z0-9+/_-]{1000,}={0,2})"/g;

function withoutBase64(json: string): string {
  return json.replaceAll(
    base64,
    (_, head: string, data: string) => `${head}[${Math.ceil((data.length * 3) / 4_000)} kB, not shown]"`,
  );
}

/** A literal that does not decode is better read raw than not at all. */
function decoded(literal: string): string {
  try {
    return JSON.parse(literal) as string;
  } catch {
    return literal;
  }
}

/** Says where an original stood, and what it was. */
export type OriginalTitle = {
  /** Index of the message, or of the first of several. */
  readonly message: number;
  /** A description of the original, such as `result of Read src/app.ts`; undefined for whole messages, which say it themselves. */
  readonly text: string | undefined;
  /** True for the arguments of a call. */
  readonly isCall: boolean;
  /** The id of the call that it made or answered; empty for whole messages. */
  readonly callId?: string;
};

// Removed messages: a heading for each, then its texts as they are and the arguments of its calls as `name: value`. Ids of calls, signatures and
// the JSON around the texts are left out; a path reads the exact JSON. The formats differ in names only, so one walk reads them all: an object
// with a name and arguments is a call, one with the id of a call and no arguments is its result.

/** One call, result or text of a message, with the place of its text in the page: behind the line with its heading. */
export type PageSection = {
  readonly start: number;
  readonly end: number;
  /** The heading, such as `39 of 47 · result of Bash "git status"`. */
  readonly heading: string;
  readonly kind: 'user' | 'assistant' | 'call' | 'result' | 'other';
};

type MessagePage = { readonly text: string; readonly sections: readonly PageSection[] };

export function messagePage(json: string, start: number): MessagePage {
  const messages = [...childrenOf(json, start)];
  const calls = new Map<string, string>();
  const pieces: string[] = [];
  const sections: PageSection[] = [];
  let length = 0;
  for (const [index, message] of messages.entries()) {
    const page = createPieces(json, calls);
    page.readMessage(message);
    for (const { what, kind, text } of page.pieces) {
      const heading = `${index + 1} of ${messages.length} · ${what}`;
      const head = `── ${heading} ──\n`;
      const piece = `${head}${text}${text.endsWith('\n') ? '' : '\n'}`;
      sections.push({ start: length + head.length, end: length + piece.length, heading, kind });
      pieces.push(piece);
      length += piece.length;
    }
  }
  return { text: pieces.join(''), sections };
}

type Piece = { readonly what: string; readonly kind: PageSection['kind']; text: string };

type Fields = ReadonlyMap<string, JsonSpan>;

/** Reads the pieces of one message. `calls` has the calls of earlier messages by id and by name. */
function createPieces(json: string, calls: Map<string, string>) {
  const pieces: Piece[] = [];
  let role = 'message';

  function fieldsOf(span: JsonSpan): Fields {
    return new Map(Array.from(childrenOf(json, span.start), (child) => [child.key ?? '', child]));
  }
  function stringOf(span: JsonSpan | undefined): string | undefined {
    return span !== undefined && kindAt(json, span.start) === 'string'
      ? (JSON.parse(json.slice(span.start, span.end)) as string)
      : undefined;
  }
  function add(what: string, kind: PageSection['kind'], text: string): void {
    const last = pieces.at(-1);
    if (text === '' && kind !== 'result') return;
    if (last?.what === what && kind !== 'call' && kind !== 'result') last.text += `\n${text}`;
    else pieces.push({ what, kind, text });
  }
  function say(text: string): void {
    add(
      role,
      role === 'user' ? 'user' : role === 'assistant' || role === 'model' ? 'assistant' : 'other',
      text,
    );
  }
  function addCall(fields: Fields, input: JsonSpan): void {
    const name = stringOf(fields.get('name')) ?? 'tool';
    const spelled = stringOf(input) ?? json.slice(input.start, input.end);
    const call = spellCall(name, spelled);
    for (const key of ['id', 'call_id']) {
      const id = stringOf(fields.get(key));
      if (id !== undefined) calls.set(id, call);
    }
    calls.set(` ${name}`, call);
    add(`call ${call}`, 'call', argumentLines(spelled));
  }
  function addResult(call: string | undefined, output: JsonSpan | undefined): void {
    add(
      call === undefined ? 'result' : `result of ${call}`,
      'result',
      output === undefined ? '' : textIn(output),
    );
  }
  function textIn(span: JsonSpan): string {
    const own = stringOf(span);
    if (own !== undefined) return own;
    if (kindAt(json, span.start) !== 'array') return argumentLines(json.slice(span.start, span.end));
    return Array.from(childrenOf(json, span.start), (child) => {
      const text = kindAt(json, child.start) === 'object' ? stringOf(fieldsOf(child).get('text')) : undefined;
      return text ?? stringOf(child) ?? json.slice(child.start, child.end);
    }).join('\n');
  }
  function readPart(span: JsonSpan, depth: number): void {
    const kind = kindAt(json, span.start);
    if (kind === 'string') return say(stringOf(span)!);
    if (kind === 'array' && depth < 4) {
      for (const child of childrenOf(json, span.start)) readPart(child, depth + 1);
      return;
    }
    if (kind !== 'object') return say(json.slice(span.start, span.end));
    const fields = fieldsOf(span);
    const nested = fields.get('function') ?? fields.get('functionCall') ?? fields.get('functionResponse');
    if (nested !== undefined && kindAt(json, nested.start) === 'object' && depth < 4) {
      const inner = new Map(fieldsOf(nested));
      if (!inner.has('id') && fields.has('id')) inner.set('id', fields.get('id')!);
      if (readCallOrResult(inner)) return;
    }
    if (readCallOrResult(fields)) return;
    const text = stringOf(fields.get('text') ?? fields.get('thinking'));
    if (text !== undefined) return say(text);
    const list = fields.get('content') ?? fields.get('parts') ?? fields.get('summary');
    if (list !== undefined && depth < 4) return readPart(list, depth + 1);
    say(json.slice(span.start, span.end));
  }
  function readCallOrResult(fields: Fields): boolean {
    const input = fields.get('arguments') ?? fields.get('input') ?? fields.get('args');
    if (fields.has('name') && input !== undefined) {
      addCall(fields, input);
      return true;
    }
    const answered = fields.get('tool_call_id') ?? fields.get('tool_use_id') ?? fields.get('call_id');
    const output = fields.get('output') ?? fields.get('content') ?? fields.get('response');
    if (answered === undefined && !(fields.has('name') && fields.has('response'))) return false;
    const name = stringOf(fields.get('name'));
    addResult(calls.get(stringOf(answered) ?? ` ${name ?? ''}`) ?? name, output);
    return true;
  }

  return {
    pieces,
    readMessage(message: JsonSpan): void {
      if (kindAt(json, message.start) !== 'object') return say(json.slice(message.start, message.end));
      const fields = fieldsOf(message);
      role = stringOf(fields.get('role')) ?? stringOf(fields.get('type')) ?? role;
      if (readCallOrResult(fields)) return;
      const content = fields.get('content') ?? fields.get('parts');
      const list = fields.get('tool_calls');
      if (content !== undefined && json.slice(content.start, content.end) !== 'null') readPart(content, 1);
      if (list !== undefined) readPart(list, 1);
      if (content === undefined && list === undefined) readPart(message, 1);
    },
  };
}

/** Characters of one argument, and of a whole call, in a heading. */
const maxLeaf = 90;
const maxCall = 180;

/** Spells a call in one line: the name, the first text bare, everything else as `name=value`. */
export function spellCall(name: string, argumentsJson: string): string {
  const leaves = [...argumentsOf(argumentsJson)];
  const first = leaves.findIndex(({ isText }) => isText);
  const ordered = first < 0 ? leaves : [leaves[first]!, ...leaves.filter((_, index) => index !== first)];
  let spelled = name;
  for (const [index, { key, value }] of ordered.entries()) {
    const line = value.trim().replaceAll(/\s+/g, ' ');
    const short = line.length > maxLeaf ? `${line.slice(0, maxLeaf).toWellFormed()}…` : line;
    const quoted = /\s/.test(short) ? `"${short}"` : short;
    const next = index === 0 && first >= 0 ? ` ${quoted}` : ` ${key}=${quoted}`;
    if (spelled.length + next.length > maxCall) return `${spelled} …`;
    spelled += next;
  }
  return spelled;
}

/** Lays out arguments as `name: value`, a value of several lines below its name. */
export function argumentLines(argumentsJson: string): string {
  const leaves = [...argumentsOf(argumentsJson)];
  return leaves
    .map(({ key, value }) =>
      key === '' ? value : value.includes('\n') ? `${key}:\n${value}` : `${key}: ${value}`,
    )
    .join('\n');
}

type Leaf = { readonly key: string; readonly value: string; readonly isText: boolean };

function* argumentsOf(json: string): Generator<Leaf> {
  const start = /\S/.exec(json)?.index ?? 0;
  if (kindAt(json, start) !== 'object' || !isJson(json)) return yield { key: '', value: json, isText: true };
  for (const { key = '', ...span } of childrenOf(json, start)) {
    const own = json.slice(span.start, span.end);
    const isText = kindAt(json, span.start) === 'string';
    yield { key, value: isText ? (JSON.parse(own) as string) : own, isText };
  }
}

// Titles of originals: the message where each stood, and the call that it answered or made. Searches rank by them, and answers show them.

/** Returns the title of each original by its id. */
export function titlesOf(
  conversation: Conversation,
  edits: readonly Edit[],
): ReadonlyMap<string, OriginalTitle> {
  const callOf = callsByResult(conversation);
  const titles = new Map<string, OriginalTitle>();
  for (const edit of edits) {
    if (edit.kind === 'insert-message' || edit.memory === undefined) continue;
    const place =
      edit.kind === 'replace-text'
        ? edit.at
        : { message: edit.message, part: 'part' in edit ? edit.part : -1 };
    const known = titles.get(edit.memory);
    if (known !== undefined && known.message <= place.message) continue;
    const text = edit.kind === 'drop-message' ? undefined : titleAt(conversation, place, callOf);
    const part = conversation.messages[place.message]?.parts[place.part];
    const callId = part?.type === 'tool-call' ? part.id : part?.type === 'tool-result' ? part.callId : '';
    titles.set(edit.memory, { message: place.message, text, isCall: edit.kind === 'replace-input', callId });
  }
  return titles;
}

function titleAt(
  conversation: Conversation,
  place: PartPlace,
  callOf: ReadonlyMap<string, PartPlace>,
): string | undefined {
  const message = conversation.messages[place.message];
  const part = message?.parts[place.part];
  if (message === undefined || part === undefined) return undefined;
  if (part.type === 'tool-call') return `call ${callAt(conversation, place)}`;
  if (part.type !== 'tool-result') return message.role;
  const call = callOf.get(placeKey(place));
  return call === undefined ? 'result' : `result of ${callAt(conversation, call)}`;
}

function callAt(conversation: Conversation, { message, part }: PartPlace): string {
  const holder = conversation.messages[message]!;
  const call = holder.parts[part]!;
  return call.type === 'tool-call' ? spellCall(call.name, inputOf(conversation.body, holder, call)) : '';
}

// JSON as text: values are found without parsing, so that numbers keep their spelling and only requested parts are copied. The text must be one
// that `JSON.parse` accepts. Nothing recurses, so depth does not matter.

/** A JSON value in a text, `end` exclusive. */
export type JsonSpan = { readonly start: number; readonly end: number };

/** A member of an object (with its name) or an element of an array (without). */
type JsonChild = JsonSpan & { readonly key: string | undefined };

type JsonKind = 'object' | 'array' | 'string' | 'other';

export const quote = 0x22;
const backslash = 0x5c;

export function kindAt(text: string, start: number): JsonKind {
  const sign = text.charAt(start);
  return sign === '{' ? 'object' : sign === '[' ? 'array' : sign === '"' ? 'string' : 'other';
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
  while (at < text.length && text[at] !== '}' && text[at] !== ']') {
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

function valueEnd(text: string, start: number): number {
  const kind = kindAt(text, start);
  if (kind === 'string') return stringEnd(text, start);
  return kind === 'other' ? scalarEnd(text, start) : containerEnd(text, start);
}

export function stringEnd(text: string, start: number): number {
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

export function afterSpace(text: string, start: number): number {
  let at = start;
  while (isSpace(text.charCodeAt(at))) at++;
  return at;
}

export function opens(code: number): boolean {
  return code === 0x7b || code === 0x5b;
}

export function closes(code: number): boolean {
  return code === 0x7d || code === 0x5d;
}

export function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
