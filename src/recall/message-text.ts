/**
 * Lays out a removed message for a model to read: its own JSON, and below it, each under its path, the texts in it as they read, for
 * code between `\n` and `\"` is hard to read and dear. Pure.
 */
import { type PathStep, spellPath } from './json-path.ts';
import { childrenOf, type JsonSpan, kindAt } from './json-text.ts';

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
