/**
 * The invariants of Anthropic Messages that a compressor could break.
 * https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use and the page on extended thinking.
 */
import { bytesOf, type Conversation, type Message, type Part } from '../../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../../conversation/edit.ts';
import { type PartPlace, placeKey } from '../../conversation/pairing.ts';
import { lastAssistant } from '../../conversation/turns.ts';
import type { FormatRules, Problem } from '../codec.ts';

export const rules: FormatRules = { problems, mayEdit, complete };

/**
 * Models whose thinking signatures are bound to everything before them: system, tools and every earlier message.
 * "Invalid `signature` in `thinking` block … bound to a different conversation" (docs, preserved thinking, 2026-08).
 */
const boundReasoning = /(?:fable|mythos)-5[-.][12]|(?:opus|sonnet|haiku)-5[-.]5/;

function problems(conversation: Conversation): readonly Problem[] {
  const { body, messages } = conversation;
  const found: Problem[] = [];
  if (messages.length === 0)
    found.push({ rule: 'messages-not-empty', message: 0, detail: 'there is no message' });
  // System messages between the others belong to neither side.
  const spoken = messages.filter((message) => message.role !== 'system');
  const first = spoken[0];
  if (first?.role === 'assistant')
    found.push(problem('first-is-user', first, 'the first message is not from the user'));
  spoken.forEach((message, index) => {
    found.push(...emptiness(body, message, message.index === messages.length - 1));
    if (message.role === 'assistant') found.push(...unanswered(message, spoken[index + 1]));
    else found.push(...results(message, spoken[index - 1]));
  });
  return found;
}

/** "all messages must have non-empty content except for the optional final assistant message", "text content blocks must be non-empty" */
function emptiness(body: Uint8Array, message: Message, isLast: boolean): readonly Problem[] {
  if (isLast && message.role === 'assistant') return [];
  if (message.parts.length === 0)
    return [problem('content-not-empty', message, 'the message has no content')];
  return message.parts.flatMap((part, index) =>
    part.type === 'text' && part.texts.some((text) => bytesOf(body, message, text).length === 2)
      ? [problem('text-not-empty', message, `part ${index} is a text without a character`)]
      : [],
  );
}

/** "`tool_use` ids were found without `tool_result` blocks immediately after: … Each `tool_use` block must have a corresponding `tool_result` block in the next message." */
function unanswered(message: Message, next: Message | undefined): readonly Problem[] {
  if (!next) return [];
  const answered = new Set(next.role === 'assistant' ? [] : next.parts.map(callIdOf));
  return message.parts.flatMap((part) =>
    part.type === 'tool-call' && !answered.has(part.id)
      ? [
          problem(
            'calls-answered-next',
            message,
            `tool_use ${part.id} has no tool_result in the next message`,
          ),
        ]
      : [],
  );
}

/** "`tool_result` block(s) provided when previous message does not contain any `tool_use` blocks"; results come before other content. */
function results(message: Message, previous: Message | undefined): readonly Problem[] {
  const asked = new Set(
    previous?.role === 'assistant'
      ? previous.parts.map((part) => (part.type === 'tool-call' ? part.id : undefined))
      : [],
  );
  const seen = new Set<string>();
  const found: Problem[] = [];
  let other = false;
  for (const part of message.parts) {
    if (part.type !== 'tool-result') {
      other = true;
      continue;
    }
    const id = part.callId;
    if (!asked.has(id))
      found.push(
        problem(
          'results-answer-calls',
          message,
          `tool_result ${id} answers no tool_use of the message before`,
        ),
      );
    if (seen.has(id)) found.push(problem('one-result-a-call', message, `tool_result ${id} stands twice`));
    seen.add(id);
    if (other)
      found.push(problem('results-come-first', message, `tool_result ${id} stands behind other content`));
  }
  return found;
}

/** Text and results may change; system messages, signed, encrypted and unknown parts, and the newest assistant message may not. */
function mayEdit(conversation: Conversation, edit: Edit): boolean {
  const at = lastMessageOf(edit);
  const message = conversation.messages[at];
  if (!message) return false;
  if (edit.kind === 'insert-message') return !conversation.messages.slice(at).some(mustStand);
  if (message.role === 'system') return false;
  if (edit.kind === 'drop-part') {
    const part = message.parts[edit.part];
    // What a finished turn thought may be left out, of the newest assistant message too.
    if (part?.type === 'reasoning') return at < thinkingStart(conversation);
    return at !== lastAssistant(conversation) && droppable(part);
  }
  if (at === lastAssistant(conversation)) return false;
  if (edit.kind === 'drop-message') return !mustStand(message);
  const type = message.parts[edit.at.part]?.type;
  return type === 'text' || type === 'tool-result';
}

function droppable(part: Part | undefined): boolean {
  return part !== undefined && part.type !== 'opaque' && part.type !== 'media';
}

/** A server compaction block is the checked beginning of history: "one, first, unchanged". What has a key twice is not understood. */
function mustStand(message: Message): boolean {
  return message.parts.some(
    (part) => part.type === 'opaque' && (part.kind === 'compaction' || part.kind === 'duplicate-keys'),
  );
}

/**
 * For models that bind reasoning to the prefix. An edit behind all reasoning touches no prefix: it is taken as it is. One before
 * goes together with all reasoning ("thinking may be removed from the start of history, never from between kept blocks"), which
 * is possible only while the running turn has none. The edits are those not yet sent: what later reasoning was made after is part
 * of the prefix it is bound to.
 */
function complete(conversation: Conversation, edits: readonly Edit[]): ReturnType<FormatRules['complete']> {
  if (edits.length === 0 || !boundReasoning.test(conversation.model ?? '')) return { status: 'ok', edits };
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
  if (newest.message >= thinkingStart(conversation)) {
    return {
      status: 'refused',
      reason: 'The running turn holds reasoning that is bound to everything before it.',
    };
  }
  const dropped = kept.map((place): Edit => ({ kind: 'drop-part', ...place, memory: undefined }));
  return { status: 'ok', edits: [...edits, ...dropped] };
}

/** True when the edit changes something in front of the place. */
function isBefore(edit: Edit, place: PartPlace): boolean {
  const message = lastMessageOf(edit);
  if (message !== place.message) return message < place.message;
  switch (edit.kind) {
    case 'replace-text':
      return edit.at.part < place.part;
    case 'drop-part':
      return edit.part < place.part;
    case 'drop-message':
    case 'insert-message':
      return true;
  }
}

/** First message of the stretch whose thinking the provider still wants: the newest user message that answers no call. */
function thinkingStart(conversation: Conversation): number {
  const start = conversation.messages.findLast(
    (message) => message.role === 'user' && message.parts.every((part) => part.type !== 'tool-result'),
  );
  return start?.index ?? 0;
}

function callIdOf(part: Part): string | undefined {
  return part.type === 'tool-result' ? part.callId : undefined;
}

function problem(rule: string, message: Message, detail: string): Problem {
  return { rule, message: message.index, detail };
}
