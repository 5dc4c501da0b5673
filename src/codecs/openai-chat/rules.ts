/**
 * Checks the invariants of Chat Completions that a compressor could break, and says which edits are allowed.
 * https://platform.openai.com/docs/api-reference/chat/create
 */
import type { FormatRules, Problem } from '../codec.ts';
import { parsedBody } from '../../conversation/steps.ts';
import { type Edit, exceptKept, lastMessageOf } from '../../conversation/edit.ts';
import { openNotes } from '../../caches.ts';
import type { Conversation, Message } from '../../conversation/conversation.ts';
import { bytesOf } from '../../conversation/messages.ts';
import {
  type JsonRecord,
  isRecord,
  scanObject,
  isFilled,
  objectsOf,
  wordAt,
} from '../../conversation/json-scan.ts';

export const rules: FormatRules = {
  problems,
  faults,
  mayEdit: exceptKept(mayEdit),
  // No part of this format is bound to its prefix.
  bindsPrefix: () => false,
  complete: (_conversation, edits) => ({ status: 'ok', edits }),
};

/**
 * "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'", all before the
 * next message that is not one; "messages with role 'tool' must be a response to a preceding message with 'tool_calls'".
 */
function problems(conversation: Conversation): readonly Problem[] {
  const found: Problem[] = [];
  if (conversation.messages.length === 0)
    found.push({ rule: 'messages-not-empty', message: 0, detail: 'there is no message' });
  let asking:
    | { readonly message: Message; readonly open: Set<string>; readonly answered: Set<string> }
    | undefined;
  const close = () => {
    for (const id of asking?.open ?? [])
      found.push(
        problem('calls-answered-next', asking!.message, `tool call ${id} has no tool message after it`),
      );
    asking = undefined;
  };
  const { messages } = conversation;
  let from = messages.length - 1;
  while (from > 0 && !soundBefore.has(messages[from]!)) from--;
  for (let index = Math.max(from, 0); index < messages.length; index++) {
    const message = messages[index]!;
    const result = message.parts.find((part) => part.type === 'tool-result');
    if (!result) {
      close();
      if (found.length === 0 && index >= messages.length - newestMessages) soundBefore.set(message, true);
      const ids = message.parts.flatMap((part) => (part.type === 'tool-call' ? [part.id] : []));
      if (ids.length > 0) asking = { message, open: new Set(ids), answered: new Set() };
      if (new Set(ids).size < ids.length)
        found.push(problem('call-ids-differ', message, 'two tool calls of the message share an id'));
      if (message.parts.length > 0 && message.parts.every((part) => part.type === 'reasoning'))
        found.push(
          problem('content-not-empty', message, 'the assistant message has neither content nor tool calls'),
        );
      continue;
    }
    if (asking?.open.delete(result.callId)) asking.answered.add(result.callId);
    else if (asking?.answered.has(result.callId))
      found.push(problem('one-result-a-call', message, `tool call ${result.callId} is answered twice`));
    else
      found.push(
        problem(
          'results-answer-calls',
          message,
          `the tool message answers ${result.callId}, which no message before it asks`,
        ),
      );
  }
  close();
  return found;
}

/** Messages before which no rule is broken and no call is open. A message object always follows the same messages, so this stays true. */
const soundBefore = openNotes<Message, true>('message');

/** The newest messages that are remembered: a turn adds a few, and clients often rewrite the last ones. */
const newestMessages = 8;

/**
 * System messages and opaque parts stay. Content may be missing only in messages with tool calls, so texts are replaced, never
 * dropped.
 */
function mayEdit(conversation: Conversation, edit: Edit): boolean {
  const message = conversation.messages[lastMessageOf(edit)];
  if (!message) return false;
  if (edit.kind === 'insert-message') return true;
  if (message.role === 'system') return false;
  switch (edit.kind) {
    case 'replace-text': {
      const part = message.parts[edit.at.part];
      return (part?.type === 'text' || part?.type === 'tool-result') && edit.at.text in part.texts;
    }
    case 'replace-media':
      return true;
    case 'replace-input':
      return isFunctionCall(conversation, message, edit.part);
    case 'drop-part': {
      const type = message.parts[edit.part]?.type;
      return type === 'tool-call' || type === 'tool-result';
    }
    case 'drop-message':
      return message.parts.every((part) => part.type !== 'opaque');
  }
}

/**
 * True for a call with JSON arguments: the input of a custom tool is free text. A call of the legacy function form is itself the
 * object with the arguments.
 */
function isFunctionCall({ body }: Conversation, message: Message, index: number): boolean {
  const part = message.parts[index];
  if (part?.type !== 'tool-call') return false;
  return scanObject(bytesOf(body, message, part.span), 0).members.some(
    ({ key }) => key === 'function' || key === 'arguments',
  );
}

function problem(rule: string, message: Message, detail: string): Problem {
  return { rule, message: message.index, detail };
}

// Faults: the rules that a body breaks, found with `JSON.parse` alone, so that they do not depend on our own reader.

function faults(body: Uint8Array): readonly string[] {
  const parsed = parsedBody(body);
  if (!parsed) return ['body-is-json'];
  const messages = objectsOf(parsed['messages']);
  if (messages.length === 0) return ['messages-not-empty'];
  const found: string[] = [];
  /** Calls of the last assistant message by id, each with the number of results it still waits for. */
  let open = new Map<string, number>();
  let isAsked = false;
  const close = () => {
    for (const left of open.values()) if (left > 0) found.push('calls-answered-next');
    open = new Map();
  };
  for (const [index, message] of messages.entries()) {
    if (message['role'] === 'tool') {
      const id = String(message['tool_call_id']);
      const left = open.get(id);
      if (left === undefined || !isAsked) found.push('results-answer-calls');
      else if (left === 0) found.push('one-result-a-call');
      else open.set(id, left - 1);
      if (message['content'] === undefined) found.push('content-not-empty');
      continue;
    }
    close();
    found.push(...messageFaults(message, messages[index - 1]));
    const calls = objectsOf(message['tool_calls']).map(({ id }) => String(id));
    isAsked = message['role'] === 'assistant';
    open = new Map(calls.map((id) => [id, 1]));
    if (open.size < calls.length) found.push('call-ids-differ');
  }
  close();
  return found;
}

function messageFaults(message: JsonRecord, before: JsonRecord | undefined): readonly string[] {
  const { role, content } = message;
  const found: string[] = [];
  if (Array.isArray(message['tool_calls']) && message['tool_calls'].length === 0)
    found.push('calls-not-empty');
  if (role === 'function' && !isAnswer(message, before)) found.push('results-answer-calls');
  const isSaid = typeof content === 'string' || isFilled(content);
  const isElse = ['tool_calls', 'function_call', 'refusal', 'audio'].some((key) => message[key]);
  if (!isSaid && !(role === 'assistant' && isElse)) found.push('content-not-empty');
  return found;
}

/** True for a result of the legacy function form: it names its function and comes right after the call. */
function isAnswer(message: JsonRecord, before: JsonRecord | undefined): boolean {
  const called = before?.['function_call'];
  return isRecord(called) && wordAt(called, 'name') === wordAt(message, 'name');
}
