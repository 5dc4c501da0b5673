/**
 * Turns what memory holds into text for a model: removed text as it was, removed messages one after the other in their own
 * JSON, each under a line that says where it stands. Pure, never throws.
 */
import { childrenOf, documentSpan, isJson, kindAt } from './json-text.ts';
import type { JsonSpan } from './json-text.ts';
import { messageText } from './message-text.ts';

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
