/**
 * Says which edits of a generateContent body are allowed. No part is bound to its prefix: a signature belongs to its own part.
 * https://ai.google.dev/gemini-api/docs/thought-signatures
 */
import type { FormatRules } from '../codec.ts';
import { valueOf } from './names.ts';
import { currentTurn, problems } from './problems.ts';
import { isSigned } from './read-part.ts';
import { objectsOf, parsedBody } from '../event-json.ts';
import { exceptKept } from '../what-stays.ts';
import type { Conversation, Message, Part } from '../../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../../conversation/edit.ts';
import { type JsonRecord, isRecord } from '../../conversation/json-scan.ts';

export const rules: FormatRules = {
  problems,
  faults,
  mayEdit: exceptKept(mayEdit),
  bindsPrefix: () => false,
  complete: (_conversation, edits) => ({ status: 'ok', edits }),
};

/**
 * Unsigned texts, calls and results may change. A signed part stays unchanged, and in the current turn, whose signatures are
 * checked, it also keeps its place. A whole step may be removed, calls and responses together. With `cachedContent` the contents
 * follow the cache, so they may change.
 */
function mayEdit(conversation: Conversation, edit: Edit): boolean {
  const at = lastMessageOf(edit);
  const message = conversation.messages[at];
  if (!message) return false;
  switch (edit.kind) {
    case 'insert-message':
      // "function response turn comes immediately after a function call turn"
      return !message.parts.some((part) => part.type === 'tool-result');
    case 'drop-message':
      return true;
    case 'drop-part':
      return mayDrop(conversation, message, message.parts[edit.part]);
    case 'replace-text': {
      const part = message.parts[edit.at.part];
      if (part?.type !== 'text' && part?.type !== 'tool-result') return false;
      return edit.at.text in part.texts && !isSignedIn(conversation, message, part);
    }
    case 'replace-input': {
      const part = message.parts[edit.part];
      return (
        part?.type === 'tool-call' &&
        part.input.end > part.input.start &&
        !isSignedIn(conversation, message, part)
      );
    }
  }
}

function mayDrop(conversation: Conversation, message: Message, part: Part | undefined): boolean {
  if (!part || part.type === 'opaque' || part.type === 'media') return false;
  const isFinished = message.index < currentTurn(conversation);
  if (part.type === 'reasoning') return isFinished;
  return isFinished || !isSignedIn(conversation, message, part);
}

function isSignedIn({ body }: Conversation, message: Message, part: Part): boolean {
  return isSigned(body.subarray(message.span.start, message.span.end), part.span);
}

// Faults: the rules that a body breaks, found with `JSON.parse` alone, so that they do not depend on our own reader.
// https://ai.google.dev/api/generate-content

type ParsedContent = { readonly isModel: boolean; readonly parts: readonly JsonRecord[] };

function faults(body: Uint8Array): readonly string[] {
  const parsed = parsedBody(body);
  if (!parsed) return ['body-is-json'];
  const contents = objectsOf(parsed['contents']).map(contentOf);
  if (contents.length === 0) return ['messages-not-empty'];
  const found: string[] = [];
  if (contents[0]!.isModel) found.push('first-is-user');
  const turns: { isModel: boolean; parts: JsonRecord[] }[] = [];
  for (const [index, { isModel, parts }] of contents.entries()) {
    if (parts.length === 0) found.push('content-not-empty');
    if (!isModel && contents[index - 1]?.isModel === false) found.push('roles-alternate');
    const last = turns.at(-1);
    if (last?.isModel === isModel) last.parts.push(...parts);
    else turns.push({ isModel, parts: [...parts] });
  }
  for (const [index, turn] of turns.entries()) found.push(...pairing(turn, turns[index + 1], index === 0));
  return found;
}

function contentOf(content: JsonRecord): ParsedContent {
  const parts = content['parts'];
  return {
    isModel: content['role'] === 'model',
    parts: isRecord(parts) ? [parts] : objectsOf(parts),
  };
}

/** "the number of function response parts is equal to the number of function call parts of the function call turn" */
function pairing(turn: ParsedContent, next: ParsedContent | undefined, isFirst: boolean): readonly string[] {
  const found: string[] = [];
  const given = turn.isModel ? [] : inside(turn.parts, 'functionResponse');
  if (isFirst && given.length > 0) found.push('results-answer-calls');
  for (const result of given) {
    const response = valueOf(result, 'response');
    if (response !== undefined && response !== null && !isRecord(response)) found.push('response-is-object');
  }
  if (!turn.isModel) return found;
  const calls = inside(turn.parts, 'functionCall');
  const answers = next ? inside(next.parts, 'functionResponse') : [];
  if (answers.length < calls.length) found.push('calls-answered-next');
  if (answers.length > calls.length) found.push('results-answer-calls');
  const open = calls.map(nameOf);
  for (const name of answers.map(nameOf)) {
    const at = open.indexOf(name);
    if (at < 0) found.push('results-name-calls');
    else open.splice(at, 1);
  }
  return found;
}

function nameOf(held: JsonRecord): unknown {
  return valueOf(held, 'name');
}

function inside(parts: readonly JsonRecord[], name: string): readonly JsonRecord[] {
  return parts.flatMap((part) => {
    const held = valueOf(part, name);
    return isRecord(held) ? [held] : [];
  });
}
