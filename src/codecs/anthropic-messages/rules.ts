/**
 * Says which edits of an Anthropic Messages body are allowed, and which must go together.
 * https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking
 */
import { aroundSystem, aroundSystemInSteps, problems } from './problems.ts';
import type { FormatRules } from '../codec.ts';
import { memoized } from '../../conversation/messages.ts';
import { isFilled, objectsOf } from '../../conversation/json-scan.ts';
import { parsedBody } from '../../conversation/steps.ts';
import { type Edit, exceptKept, lastMessageOf } from '../../conversation/edit.ts';
import type { Conversation, Message, Part } from '../../conversation/conversation.ts';
import type { JsonRecord } from '../../conversation/json-scan.ts';
import { type PartPlace, lastAssistant, placeKey } from '../../conversation/turns.ts';

export const rules: FormatRules = {
  problems,
  faults,
  mayEdit: exceptKept(mayEdit),
  ahead: aroundSystemInSteps,
  bindsPrefix: ({ model }) => bindsReasoning(model),
  complete,
};

/**
 * Texts and results may change. System messages, signed, encrypted and unknown parts, and the newest assistant message may not.
 * Messages that system messages depend on may not be removed.
 */
function mayEdit(conversation: Conversation, edit: Edit): boolean {
  const at = lastMessageOf(edit);
  const message = conversation.messages[at];
  if (!message) return false;
  if (edit.kind === 'insert-message') return at > newestFixed(conversation);
  if (message.role === 'system') return false;
  if (edit.kind === 'drop-part') {
    const part = message.parts[edit.part];
    // Thinking of a finished turn may be removed, even from the newest assistant message.
    if (part?.type === 'reasoning') return at < thinkingStart(conversation);
    if (aroundSystem(conversation).parts.has(placeKey(edit))) return false;
    return at !== lastAssistant(conversation) && droppable(part);
  }
  if (at === lastAssistant(conversation)) return false;
  if (edit.kind === 'drop-message') return !mustStay(message) && !aroundSystem(conversation).messages.has(at);
  if (edit.kind === 'replace-media') return true;
  if (edit.kind === 'replace-input') return message.parts[edit.part]?.type === 'tool-call';
  const part = message.parts[edit.at.part];
  return (part?.type === 'text' || part?.type === 'tool-result') && edit.at.text in part.texts;
}

function droppable(part: Part | undefined): boolean {
  return part !== undefined && part.type !== 'opaque' && part.type !== 'media';
}

/** A server compaction block is the checked beginning of history: "one, first, unchanged". */
function mustStay(message: Message): boolean {
  return message.parts.some((part) => part.type === 'opaque' && part.kind === 'compaction');
}

/** Returns the index of the newest message that must stay unchanged in its place; -1 without one. Called for every edit. */
const newestFixed = memoized(({ messages }: Conversation) => messages.findLastIndex(mustStay));

/** Moves inserted messages so that none separates a system message from the assistant's reply. */
function complete(
  conversation: Conversation,
  edits: readonly Edit[],
  force = false,
): ReturnType<FormatRules['complete']> {
  const { placeBefore } = aroundSystem(conversation);
  const placed = edits.map((edit) =>
    edit.kind === 'insert-message' ? { ...edit, before: placeBefore(edit.before) } : edit,
  );
  return withBoundReasoning(conversation, placed, force);
}

/**
 * Completes edits for models that bind reasoning to the prefix. Edits after all reasoning touch no prefix and are taken as they
 * are. An edit ahead of reasoning removes all reasoning ("thinking may be removed from the start of history, never from between
 * kept blocks"). Reasoning of the running turn is worth more than a fold that is only a wish; when the request would not fit, it
 * is removed too. These are the edits not yet sent: those sent before are part of the prefix that later reasoning is bound to.
 */
function withBoundReasoning(
  conversation: Conversation,
  edits: readonly Edit[],
  force: boolean,
): ReturnType<FormatRules['complete']> {
  if (edits.length === 0 || !bindsReasoning(conversation.model)) return { status: 'ok', edits };
  const goes = new Set(
    edits.map((edit) =>
      edit.kind === 'drop-part' ? placeKey(edit) : edit.kind === 'drop-message' ? `${edit.message}` : '',
    ),
  );
  const kept = conversation.messages.flatMap(({ index: message, parts }) =>
    parts.flatMap((part, index) => {
      const place = { message, part: index };
      return part.type === 'reasoning' && !goes.has(placeKey(place)) && !goes.has(`${message}`)
        ? [place]
        : [];
    }),
  );
  const newest = kept.at(-1);
  if (!newest || !edits.some((edit) => isBefore(edit, newest))) return { status: 'ok', edits };
  if (!force && newest.message >= thinkingStart(conversation)) {
    return {
      status: 'refused',
      reason: 'The running turn holds reasoning that is bound to everything before it.',
    };
  }
  const dropped = kept.map((place): Edit => ({ kind: 'drop-part', ...place, memory: undefined }));
  return { status: 'ok', edits: [...edits, ...dropped] };
}

/** True when the edit changes something ahead of the place. */
function isBefore(edit: Edit, place: PartPlace): boolean {
  const message = lastMessageOf(edit);
  if (message !== place.message) return message < place.message;
  switch (edit.kind) {
    case 'replace-text':
      return edit.at.part < place.part;
    case 'replace-input':
    case 'replace-media':
    case 'drop-part':
      return edit.part < place.part;
    case 'drop-message':
    case 'insert-message':
      return true;
  }
}

/**
 * Returns the first message whose thinking the provider still wants: the newest user turn that answers no call. Called for every
 * edit of reasoning.
 */
const thinkingStart = memoized((conversation: Conversation): number => {
  let start = 0;
  let turn: { readonly index: number; readonly startBefore: number; answers: boolean } | undefined;
  for (const { index, role, parts } of conversation.messages) {
    if (role === 'assistant') turn = undefined;
    if (role === 'assistant' || role === 'system') continue;
    turn ??= { index, startBefore: start, answers: false };
    turn.answers ||= parts.some((part) => part.type === 'tool-result');
    start = turn.answers ? turn.startBefore : turn.index;
  }
  return start;
});

/**
 * Models whose thinking signatures are bound to everything ahead: system, tools and every earlier message. "Invalid `signature`
 * in `thinking` block … bound to a different conversation" (docs, preserved thinking, 2026-08).
 */
const bound = /(?:fable|mythos)-5[-.][12]|(?:opus|sonnet|haiku)-5[-.]5/;

/** True for a model that refuses thinking whose prefix was edited. */
function bindsReasoning(model: string | undefined): boolean {
  return bound.test(model ?? '');
}

// Faults: the rules that a body breaks, found with `JSON.parse` alone, so that they do not depend on our own reader.
// https://docs.anthropic.com/en/api/messages

/** Neighboring messages of one side are one turn to the provider. */
type MergedTurn = { readonly role: unknown; readonly blocks: JsonRecord[] };

function faults(body: Uint8Array): readonly string[] {
  const parsed = parsedBody(body);
  if (!parsed) return ['body-is-json'];
  const messages = objectsOf(parsed['messages']);
  if (messages.length === 0) return ['messages-not-empty'];
  const found: string[] = [];
  const turns: MergedTurn[] = [];
  for (const [index, message] of messages.entries()) {
    const { role, content } = message;
    const isEnd = role === 'assistant' && index === messages.length - 1;
    if (!isFilled(content) && !isEnd && message['output_config'] === undefined)
      found.push('content-not-empty');
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : objectsOf(content);
    if (Array.isArray(content) && blocks.some(({ type, text }) => type === 'text' && text === ''))
      found.push('text-not-empty');
    if (role === 'system') continue;
    const last = turns.at(-1);
    if (last && last.role === role) for (const block of blocks) last.blocks.push(block);
    else turns.push({ role, blocks: [...blocks] });
  }
  if (turns[0]?.role === 'assistant' && turns[0].blocks[0]?.['type'] !== 'compaction')
    found.push('first-is-user');
  for (const [index, turn] of turns.entries())
    for (const fault of pairing(turn, turns[index + 1], turns[index - 1])) found.push(fault);
  return found;
}

function pairing(
  turn: MergedTurn,
  next: MergedTurn | undefined,
  before: MergedTurn | undefined,
): readonly string[] {
  const found: string[] = [];
  if (turn.role === 'assistant') {
    const ids = idsOf(turn, 'tool_use', 'id');
    if (new Set(ids).size < ids.length) found.push('call-ids-differ');
    const answered = new Set(leadingResults(next));
    for (const id of ids) if (!answered.has(id)) found.push('calls-answered-next');
    return found;
  }
  const asked = new Set(before?.role === 'assistant' ? idsOf(before, 'tool_use', 'id') : []);
  const results = idsOf(turn, 'tool_result', 'tool_use_id');
  for (const id of results) if (!asked.has(id)) found.push('results-answer-calls');
  if (new Set(results).size < results.length) found.push('one-result-a-call');
  return found;
}

function idsOf({ blocks }: MergedTurn, kind: string, key: string): readonly unknown[] {
  return blocks.filter(({ type }) => type === kind).map((block) => block[key]);
}

/** Results count only ahead of any other content. */
function leadingResults(turn: MergedTurn | undefined): readonly unknown[] {
  if (!turn || turn.role === 'assistant') return [];
  const end = turn.blocks.findIndex(({ type }) => type !== 'tool_result');
  const results = end < 0 ? turn.blocks : turn.blocks.slice(0, end);
  return results.map((block) => block['tool_use_id']);
}
