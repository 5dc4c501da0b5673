/** The invariants of Chat Completions that a compressor could break. https://platform.openai.com/docs/api-reference/chat/create */
import type { Conversation, Message, Part } from '../../conversation/conversation.ts';
import type { Edit } from '../../conversation/edit.ts';
import type { FormatRules, Problem } from '../codec.ts';

export const rules: FormatRules = {
  problems,
  mayEdit,
  // Nothing in this format is bound to what stands before it.
  complete: (_conversation, edits) => ({ status: 'ok', edits }),
};

/**
 * "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'", all before the
 * next message that is not one; "messages with role 'tool' must be a response to a preceding message with 'tool_calls'".
 */
function problems(conversation: Conversation): readonly Problem[] {
  const found: Problem[] = [];
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
  // Calls at the very end are not answered yet: the client may be asking for just that.
  if (asking && asking.answered.size > 0) close();
  return found;
}

function mayEdit(conversation: Conversation, edit: Edit): boolean {
  switch (edit.kind) {
    case 'insert-message':
      return true;
    case 'replace-text': {
      const part = conversation.messages[edit.at.message]?.parts[edit.at.part];
      return part?.type === 'text' || part?.type === 'tool-result';
    }
    case 'drop-part':
      return droppable(conversation.messages[edit.message]?.parts[edit.part]);
    case 'drop-message':
      return conversation.messages[edit.message]?.parts.every((part) => part.type !== 'opaque') ?? false;
  }
}

/** Content may be missing only beside tool calls, so texts are replaced, never dropped one by one. */
function droppable(part: Part | undefined): boolean {
  return part?.type === 'tool-call' || part?.type === 'tool-result';
}

function problem(rule: string, message: Message, detail: string): Problem {
  return { rule, message: message.index, detail };
}
