/**
 * Turns what memory holds into text for a model: removed text as it was, removed messages one after the other in their own
 * JSON, each under a line that says where it stands. Pure, never throws.
 */
import { spellPath, type PathStep } from './json-path.ts';
import { childrenOf, documentSpan, isJson, kindAt, type JsonSpan } from './json-text.ts';

type Original = {
  /** What lines and queries are about. */
  readonly text: string;
  /** What a path is about; JSON only where the original is. */
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

/** What the message calls its speaker, or its type where it names none. */
function roleOf(json: string, message: JsonSpan): string | undefined {
  const names = new Map<string, string>();
  for (const { key, start, end } of childrenOf(json, message.start)) {
    if (key !== 'role' && key !== 'type') continue;
    const name = /^"([\w-]{1,40})"$/.exec(json.slice(start, Math.min(end, start + 50)))?.[1];
    if (name !== undefined) names.set(key, name);
  }
  return names.get('role') ?? names.get('type');
}

/** Characters of a literal that stays where it is, though it has escapes. */
const shortest = 80;

/** What lies deeper stays JSON; texts of messages stand four or five levels deep. */
const deepest = 8;

/** `index` is the one of the message in the list that `json` is. */
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
    const isLong = span.end - span.start >= shortest;
    if (isLong && json.slice(span.start, span.end).includes('\\')) yield { ...span, path };
    return;
  }
  if (path.length > deepest) return;
  let index = 0;
  for (const { key, ...child } of childrenOf(json, span.start)) {
    const step: PathStep =
      key === undefined ? { type: 'index', index: index++ } : { type: 'name', name: key };
    yield* escapedIn(json, child, [...path, step]);
  }
}
