/**
 * Turns a stored original into text for a model: removed text as it was, removed messages one after the other in their own JSON,
 * each under a line with its number and path. Pure, never throws.
 */
import { spellPath, type PathStep } from './json-path.ts';
import { childrenOf, documentSpan, isJson, kindAt, type JsonSpan } from './json-text.ts';

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
