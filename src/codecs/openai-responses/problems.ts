/**
 * Checks the invariants of OpenAI Responses that a compressor could break, each with the provider's words.
 * https://platform.openai.com/docs/guides/reasoning, https://platform.openai.com/docs/guides/function-calling
 */
import type { Conversation, Message } from '../../conversation/conversation.ts';
import type { Problem } from '../codec.ts';
import { isKind, isReasoning, itemText, structureOf } from './structure.ts';

export function problems(conversation: Conversation): readonly Problem[] {
  const { messages } = conversation;
  if (messages.length === 0)
    return [{ rule: 'messages-not-empty', message: 0, detail: 'there is no input item' }];
  return [
    ...pairing(conversation),
    ...approvals(conversation),
    ...messages.flatMap((message) => [...reasoning(messages, message), ...trigger(messages, message)]),
  ];
}

/**
 * "No tool output found for function call call_…", "No tool call found for function call output with call_id call_…". An output
 * may come anywhere behind its call; an id may be used again once its call is answered. Calls that the provider keeps cannot be
 * checked.
 */
function pairing(conversation: Conversation): readonly Problem[] {
  const { continues, hasReferences } = structureOf(conversation);
  const open = new Map<string, Message>();
  const answered = new Set<string>();
  const found: Problem[] = [];
  for (const message of conversation.messages) {
    for (const part of message.parts) {
      if (part.type === 'tool-call') {
        if (open.has(part.id))
          found.push(
            problem('call-ids-differ', message, `call ${part.id} occurs twice without an output between`),
          );
        open.set(part.id, message);
      } else if (part.type === 'tool-result') {
        if (open.delete(part.callId)) answered.add(part.callId);
        else if (answered.has(part.callId))
          found.push(problem('one-result-a-call', message, `call ${part.callId} has two outputs`));
        else if (!continues && !hasReferences)
          found.push(
            problem('results-answer-calls', message, `output ${part.callId} answers no call before it`),
          );
      }
    }
  }
  const unanswered = [...open].map(([id, message]) =>
    problem('calls-answered-next', message, `call ${id} has no output behind it`),
  );
  return [...found, ...unanswered];
}

/** An approval names its request: "Approval response references unknown approval request". */
function approvals(conversation: Conversation): readonly Problem[] {
  const { continues, hasReferences } = structureOf(conversation);
  if (continues || hasReferences) return [];
  const asked = new Set<string | undefined>();
  return conversation.messages.flatMap((message) => {
    if (isKind(message, 'mcp_approval_request')) asked.add(itemText(conversation, message, 'id'));
    if (!isKind(message, 'mcp_approval_response')) return [];
    const id = itemText(conversation, message, 'approval_request_id');
    return asked.has(id)
      ? []
      : [
          problem(
            'approvals-answer-requests',
            message,
            `the approval answers ${id}, which nothing before it asks`,
          ),
        ];
  });
}

/**
 * "Item 'rs_…' of type 'reasoning' was provided without its required following item." The next item must be what the reasoning
 * led to, not more reasoning (openai/codex#1235).
 */
function reasoning(messages: readonly Message[], message: Message): readonly Problem[] {
  if (!isReasoning(message)) return [];
  const next = messages[message.index + 1];
  return next?.role === 'assistant' && !isReasoning(next)
    ? []
    : [problem('reasoning-is-followed', message, 'no item of the model follows the reasoning')];
}

/** The trigger asks the provider to compact everything before it. */
function trigger(messages: readonly Message[], message: Message): readonly Problem[] {
  return isKind(message, 'compaction_trigger') && message.index < messages.length - 1
    ? [problem('compaction-trigger-is-last', message, 'something follows the compaction trigger')]
    : [];
}

function problem(rule: string, message: Message, detail: string): Problem {
  return { rule, message: message.index, detail };
}
