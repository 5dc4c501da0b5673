/**
 * Checks the invariants of Chat Completions that a compressor could break, and says which edits are allowed.
 * https://platform.openai.com/docs/api-reference/chat/create
 */
import { bytesOf, type Conversation, type Message } from '../../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../../conversation/edit.ts';
import { scanObject } from '../../conversation/json-scan.ts';
import type { FormatRules, Problem } from '../codec.ts';
import { exceptKept } from '../what-stays.ts';
import { faults } from './faults.ts';

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
        problem('calls-answered-next', asking!.message, `tool call ${id} has no tool message behind it`),
      );
    asking = undefined;
  };
  for (const message of conversation.messages) {
    const result = message.parts.find((part) => part.type === 'tool-result');
    if (!result) {
      close();
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
