/**
 * The invariants of Anthropic Messages that a compressor could break.
 * https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use and the page on extended thinking.
 */
import type { Conversation, Message, Part } from '../../conversation/conversation.ts';
import type { Edit } from '../../conversation/edit.ts';
import { placeKey } from '../../conversation/pairing.ts';
import { lastAssistant, turnStart } from '../../conversation/turns.ts';
import type { FormatRules, Problem } from '../codec.ts';

export const rules: FormatRules = { problems, mayEdit, complete };

/**
 * Models whose thinking signatures are bound to everything before them: system, tools and every earlier message.
 * "Invalid `signature` in `thinking` block … bound to a different conversation" (docs, preserved thinking, 2026-08).
 */
const boundReasoning = /(?:fable|mythos)-5-[12]|(?:opus|sonnet|haiku)-5-5/;

function problems(conversation: Conversation): readonly Problem[] {
  const found: Problem[] = [];
  const first = conversation.messages[0];
  if (first?.role === 'assistant')
    found.push(problem('first-is-user', first, 'the first message is not from the user'));
  conversation.messages.forEach((message, index) => {
    found.push(...emptiness(message, index === conversation.messages.length - 1));
    if (message.role === 'assistant') found.push(...unanswered(message, conversation.messages[index + 1]));
    else found.push(...results(message, conversation.messages[index - 1]));
  });
  return found;
}

function emptiness(message: Message, isLast: boolean): readonly Problem[] {
  if (message.parts.length > 0 || (isLast && message.role === 'assistant')) return [];
  return [problem('content-not-empty', message, 'the message has no content')];
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
  message.parts.forEach((part, index) => {
    if (part.type !== 'tool-result') return;
    if (!asked.has(part.callId))
      found.push(
        problem(
          'results-answer-calls',
          message,
          `tool_result ${part.callId} answers no tool_use of the message before`,
        ),
      );
    if (seen.has(part.callId))
      found.push(problem('one-result-a-call', message, `tool_result ${part.callId} stands twice`));
    seen.add(part.callId);
    if (message.parts.slice(0, index).some((before) => before.type !== 'tool-result'))
      found.push(
        problem('results-come-first', message, `tool_result ${part.callId} stands behind other content`),
      );
  });
  return found;
}

/** Text and results may change; signed, encrypted and unknown parts, and the newest assistant message, may not. */
function mayEdit(conversation: Conversation, edit: Edit): boolean {
  switch (edit.kind) {
    case 'insert-message':
      return true;
    case 'replace-text': {
      const part = conversation.messages[edit.at.message]?.parts[edit.at.part];
      return (
        edit.at.message !== lastAssistant(conversation) &&
        (part?.type === 'text' || part?.type === 'tool-result')
      );
    }
    case 'drop-part':
      return (
        edit.message !== lastAssistant(conversation) &&
        droppable(conversation.messages[edit.message]?.parts[edit.part])
      );
    case 'drop-message':
      return (
        edit.message !== lastAssistant(conversation) && !holdsCompaction(conversation.messages[edit.message])
      );
  }
}

function droppable(part: Part | undefined): boolean {
  return part !== undefined && part.type !== 'opaque' && part.type !== 'media';
}

/** A server compaction block is the checked beginning of history: "one, first, unchanged". */
function holdsCompaction(message: Message | undefined): boolean {
  return message?.parts.some((part) => part.type === 'opaque' && part.kind === 'compaction') ?? false;
}

/**
 * For models that bind reasoning to the prefix, an edit goes together with all reasoning of the finished turns ("thinking may be
 * removed from the start of history, never from between kept blocks"). Inside a turn whose reasoning must stay, no edit is possible.
 */
function complete(conversation: Conversation, edits: readonly Edit[]): ReturnType<FormatRules['complete']> {
  if (edits.length === 0 || !boundReasoning.test(conversation.model ?? '')) return { status: 'ok', edits };
  const start = turnStart(conversation) ?? 0;
  const reasoning = conversation.messages.flatMap((message) =>
    message.parts.flatMap((part, index) =>
      part.type === 'reasoning' ? [{ message: message.index, part: index }] : [],
    ),
  );
  if (reasoning.some((place) => place.message >= start)) {
    return {
      status: 'refused',
      reason: 'The running turn holds reasoning that is bound to everything before it.',
    };
  }
  const already = new Set(edits.map((edit) => (edit.kind === 'drop-part' ? placeKey(edit) : '')));
  const dropped = reasoning
    .filter((place) => !already.has(placeKey(place)))
    .map((place): Edit => ({ kind: 'drop-part', ...place, memory: undefined }));
  return { status: 'ok', edits: [...edits, ...dropped] };
}

function callIdOf(part: Part): string | undefined {
  return part.type === 'tool-result' ? part.callId : undefined;
}

function problem(rule: string, message: Message, detail: string): Problem {
  return { rule, message: message.index, detail };
}
