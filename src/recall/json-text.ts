/**
 * Reads JSON as text: finds values without parsing, so that numbers keep their spelling and only requested parts are copied. The text must be
 * one that `JSON.parse` accepts. Nothing recurses, so depth does not matter. Pure.
 */

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
