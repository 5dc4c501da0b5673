/**
 * Where messages of role `system` may stand among the turns. Newer clients put a reminder behind every result.
 * https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
 */
import type { Conversation, Message } from '../../conversation/conversation.ts';
import { scanObject } from '../../conversation/json-scan.ts';
import type { Problem } from '../codec.ts';
import { isNull } from '../read-body.ts';

/**
 * "role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result", "role 'system' must precede an
 * 'assistant' message or end the array; the directive-only form (content: [] with output_config) is accepted at any position". Several
 * in a row count as one. "use the top-level 'system' parameter for the initial system prompt": so one that is first follows nobody.
 */
export function systemProblems({ body, messages }: Conversation): readonly Problem[] {
  const found: Problem[] = [];
  let before: Message | undefined;
  for (const message of messages) {
    if (isDirective(body, message)) continue;
    if (message.role === 'system') {
      if (before?.role !== 'system' && !mayPrecedeSystem(before)) {
        const detail =
          'a system message stands neither behind a user message nor behind a server tool result';
        found.push({ rule: 'system-follows-user', message: message.index, detail });
      }
    } else if (before?.role === 'system' && message.role !== 'assistant') {
      const detail = 'a system message stands in front of a user message';
      found.push({ rule: 'system-precedes-assistant', message: before.index, detail });
    }
    before = message;
  }
  return found;
}

/** True for a system message that says nothing and only sets how the model answers: `content: []` with its own `output_config`. */
export function isDirective(body: Uint8Array, { role, parts, span }: Message): boolean {
  if (role !== 'system' || parts.length > 0) return false;
  return scanObject(body, span.start).members.some(
    ({ key, value }) => key === 'output_config' && !isNull(body, value),
  );
}

function mayPrecedeSystem(message: Message | undefined): boolean {
  if (message?.role !== 'assistant') return message !== undefined;
  const last = message.parts.at(-1);
  return last?.type === 'opaque' && last.kind.endsWith('_tool_result');
}
