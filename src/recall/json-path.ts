/**
 * Reads the paths a model writes (names, indices, slices and wildcards), follows them into JSON text, and lays out the result for
 * a model to read: compact, in the spelling of the original, with line breaks where lines are needed to read on. Filters, scripts
 * and `..` are not supported: they would need an evaluator, and a query finds values by name as well. Pure; nothing in a path is
 * ever evaluated. Linear in the text for each step of the path.
 */
import {
  type JsonSpan,
  afterSpace,
  childrenOf,
  closes,
  documentSpan,
  isJson,
  isSpace,
  kindAt,
  opens,
  quote,
  stringEnd,
} from './read-original.ts';

type ParsedPath =
  | { readonly status: 'ok'; readonly steps: readonly PathStep[] }
  | { readonly status: 'bad'; readonly reason: string };

// Each step may scan the rest of the value, so the limit on steps keeps a hostile path from being quadratic.
const maxSteps = 64;
const maxCharacters = 1_000;

const quoted = /\s*\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]/y;
const bracketed = /\s*\[\s*([^\]'"]*?)\s*\]/y;
const dotted = /\.?([^.[\]]+)/y;

/** Parses `$.a.b[0].c`, `a.b[-1]`, `['x y']`, `[*]`, `.*`, `[2:5]`; also `a.0` for an index and `[a]` for a name. */
function parsePath(path: string): ParsedPath {
  const text = path.trim();
  if (text.length > maxCharacters) return { status: 'bad', reason: 'the path is too long' };
  const steps: PathStep[] = [];
  let at = /^\$(?=[.[]|$)/.test(text) ? 1 : 0;
  while (at < text.length) {
    const found = stepAt(text, at);
    if ('reason' in found) return { status: 'bad', reason: found.reason };
    steps.push(found.step);
    at = found.end;
    if (steps.length > maxSteps) return { status: 'bad', reason: 'the path has too many steps' };
  }
  return { status: 'ok', steps };
}

/** True for paths that may name more than one value. */
function isMany(steps: readonly PathStep[]): boolean {
  return steps.some((step) => step.type === 'every' || step.type === 'slice');
}

type ParsedStep = { readonly step: PathStep; readonly end: number } | { readonly reason: string };

function stepAt(text: string, at: number): ParsedStep {
  if (text.startsWith('..', at)) return { reason: '".." is not supported' };
  const key = match(quoted, text, at);
  if (key !== null) {
    return { step: { type: 'name', name: unquote(key[1] ?? key[2] ?? '') }, end: quoted.lastIndex };
  }
  const inside = match(bracketed, text, at)?.[1];
  if (inside !== undefined) return stepInBrackets(inside, bracketed.lastIndex);
  const name = match(dotted, text, at)?.[1]?.trim();
  if (name === undefined || name === '')
    return { reason: `cannot be read at ${JSON.stringify(text.slice(at, at + 20))}` };
  return { step: name === '*' ? { type: 'every' } : { type: 'name', name }, end: dotted.lastIndex };
}

function stepInBrackets(inside: string, end: number): ParsedStep {
  if (inside === '*') return { step: { type: 'every' }, end };
  if (/^-?\d{1,15}$/.test(inside)) return { step: { type: 'index', index: Number(inside) }, end };
  const slice = /^(-?\d{1,15})?\s*:\s*(-?\d{1,15})?$/.exec(inside);
  if (slice !== null) {
    const to = slice[2] === undefined ? undefined : Number(slice[2]);
    return { step: { type: 'slice', from: Number(slice[1] ?? 0), to }, end };
  }
  if (/^[\w$-]+$/.test(inside)) return { step: { type: 'name', name: inside }, end };
  return { reason: `"[${inside.slice(0, 20)}]" is not supported` };
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** Decodes a quoted name: its escapes are those of JSON, and `\'` between single quotes. */
function unquote(inner: string): string {
  if (!inner.includes('\\')) return inner;
  const literal = inner.replaceAll(/\\.|"/g, (sign) =>
    sign === '"' ? String.raw`\"` : sign === "\\'" ? "'" : sign,
  );
  try {
    return JSON.parse(`"${literal}"`) as string;
  } catch {
    return inner;
  }
}

type PathResult =
  | { readonly status: 'found'; readonly text: string }
  /** A sentence for the model that says what is there instead. */
  | { readonly status: 'missed'; readonly why: string };

/** Characters. A longer container gets a line for each child. */
const maxOnOneLine = 1_000;

/** More matches than this are refused, so that a list of a million numbers does not become a million objects. */
const maxMatches = 100_000;

const maxNames = 20;

/**
 * Returns one value as compact JSON (a long one with a line for each child), or a string of several lines as plain text. With
 * wildcards and slices it returns one match a line. Never throws.
 */
export function selectPath(json: string, path: string): PathResult {
  const parsed = parsePath(path);
  if (parsed.status === 'bad') {
    const forms =
      'use names, indices, slices and wildcards, such as $.items[0].name, $.items[*].id or $["a key"]';
    return { status: 'missed', why: `Path not understood (${parsed.reason}): ${forms}.` };
  }
  if (!isJson(json))
    return { status: 'missed', why: 'This memory is not JSON: use lines or query, not path.' };

  const { steps } = parsed;
  let spans: readonly JsonSpan[] = [documentSpan(json)];
  for (const [index, step] of steps.entries()) {
    const next = stepFrom(json, spans, step);
    if (next.length === 0) return { status: 'missed', why: whyNothing(json, spans, steps, index) };
    if (next.length > maxMatches) {
      const why = `More than ${maxMatches} matches at ${spellPath(steps.slice(0, index + 1))}: use a slice such as [0:1000].`;
      return { status: 'missed', why };
    }
    spans = next;
  }
  if (isMany(steps))
    return { status: 'found', text: spans.map((span) => compactJson(json, span)).join('\n') };
  return { status: 'found', text: spans.map((span) => layOut(json, span)).join('') };
}

function stepFrom(json: string, spans: readonly JsonSpan[], step: PathStep): readonly JsonSpan[] {
  const found: JsonSpan[] = [];
  for (const span of spans) {
    for (const child of stepInto(json, span, step)) if (found.push(child) > maxMatches) return found;
  }
  return found;
}

function stepInto(json: string, span: JsonSpan, step: PathStep): Iterable<JsonSpan> {
  const inObject = kindAt(json, span.start) === 'object';
  switch (step.type) {
    case 'every':
      return childrenOf(json, span.start);
    case 'slice':
      return inObject ? [] : elements(json, span, step.from, step.to);
    case 'index':
      if (inObject) return lastNamed(json, span, String(step.index));
      return elements(json, span, step.index, step.index === -1 ? undefined : step.index + 1);
    case 'name':
      if (inObject) return lastNamed(json, span, step.name);
      return /^\d{1,15}$/.test(step.name)
        ? elements(json, span, Number(step.name), Number(step.name) + 1)
        : [];
  }
}

/** Among members with the same name the last one counts, as in `JSON.parse`. */
function lastNamed(json: string, span: JsonSpan, name: string): readonly JsonSpan[] {
  let last: JsonSpan | undefined;
  for (const child of childrenOf(json, span.start)) if (child.key === name) last = child;
  return last === undefined ? [] : [last];
}

/** Returns the elements from one index up to another, as `Array.slice` takes them. */
function* elements(json: string, span: JsonSpan, from: number, to = Infinity): Generator<JsonSpan> {
  const length = from < 0 || to < 0 ? lengthOf(json, span) : 0;
  const first = from < 0 ? Math.max(0, length + from) : from;
  const last = to < 0 ? length + to : to;
  let index = 0;
  for (const child of childrenOf(json, span.start)) {
    if (index >= last) return;
    if (index >= first) yield child;
    index++;
  }
}

function layOut(json: string, span: JsonSpan): string {
  const kind = kindAt(json, span.start);
  const isLong = span.end - span.start > maxOnOneLine;
  if (kind === 'string') {
    const literal = json.slice(span.start, span.end);
    const value = JSON.parse(literal) as string;
    return value.includes('\n') ? value : literal;
  }
  return compactJson(json, span, kind !== 'other' && isLong ? 'line-per-child' : 'one-line');
}

function whyNothing(
  json: string,
  spans: readonly JsonSpan[],
  steps: readonly PathStep[],
  failed: number,
): string {
  const reached = spellPath(steps.slice(0, failed));
  const what = spans.length > 1 ? `the first of ${spans.length} values at ${reached}` : reached;
  const is = spans.slice(0, 1).map((span) => describe(json, span));
  return `Nothing at ${spellPath(steps.slice(0, failed + 1))}: ${what} is ${is.join('')}.`;
}

function describe(json: string, span: JsonSpan): string {
  const kind = kindAt(json, span.start);
  if (kind === 'string') return 'a string';
  if (kind === 'other') return json.slice(span.start, Math.min(span.end, span.start + 40));
  const length = lengthOf(json, span);
  if (length === 0) return `an empty ${kind}`;
  if (kind === 'array') return `an array with indices 0 to ${length - 1}`;
  const names: string[] = [];
  for (const { key } of childrenOf(json, span.start)) {
    if (names.push(shortName(key ?? '')) === maxNames) break;
  }
  const more = length > names.length ? ` and ${length - names.length} more` : '';
  return `an object with the names ${names.join(', ')}${more}`;
}

function shortName(key: string): string {
  return JSON.stringify(key.length > 60 ? `${key.slice(0, 60).toWellFormed()}…` : key);
}

// JSON as text: without white space, and the spelling of paths

const comma = 0x2c;

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

/** Counts the members or elements of a container. */
function lengthOf(text: string, span: JsonSpan): number {
  const children = childrenOf(text, span.start);
  let length = 0;
  while (children.next().done !== true) length++;
  return length;
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
function spellPath(steps: readonly PathStep[]): string {
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
