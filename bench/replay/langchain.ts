/** Provides LangChain's context editing as a policy: its own middleware with its defaults, applied to the state of an agent. */
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from '@langchain/core/messages';
import { contextEditingMiddleware } from 'langchain';
import type { Policy } from '../../src/replay/policies.ts';
import { type ChatMessage, createChatState } from './chat-state.ts';

/** Clears all tool results except the last three above 100,000 tokens. It edits the state itself, so cleared results stay cleared. */
export const langchainContextEditing: Policy = {
  name: 'LangChain contextEditing',
  hasMemory: false,
  open() {
    const { wrapModelCall } = contextEditingMiddleware();
    if (typeof wrapModelCall !== 'function')
      throw new Error('contextEditingMiddleware has no wrapModelCall. Check the version of langchain.');
    const state: BaseMessage[] = [];
    const written = new WeakMap<BaseMessage, Uint8Array>();
    const chat = createChatState();
    return {
      async send({ conversation }) {
        for (const { message, bytes } of chat.added(conversation)) {
          const next = fromChat(message);
          written.set(next, bytes);
          state.push(next);
        }
        // Context editing reads only the messages of a request.
        const request = { messages: state } as Parameters<typeof wrapModelCall>[0];
        await wrapModelCall(request, () => new AIMessage(''));
        const messages = state.map((message) => written.get(message) ?? toChat(message, written));
        return { body: chat.body(conversation, messages), prepared: undefined };
      },
    };
  },
};

function fromChat(message: ChatMessage): BaseMessage {
  const content = message.content ?? '';
  switch (message.role) {
    case 'system':
      return new SystemMessage(content);
    case 'user':
      return new HumanMessage(content);
    case 'assistant': {
      const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: json } }) => ({
        id,
        name,
        args: JSON.parse(json) as Record<string, unknown>,
      }));
      return new AIMessage({ content, tool_calls: calls });
    }
    case 'tool':
      return new ToolMessage({ content, tool_call_id: message.tool_call_id ?? '' });
  }
}

/** Returns the bytes of a message that the middleware replaced. It replaces only tool messages. */
function toChat(message: BaseMessage, written: WeakMap<BaseMessage, Uint8Array>): Uint8Array {
  if (!ToolMessage.isInstance(message))
    throw new Error(
      `Expected edits of tool messages only, but a ${message.type} message was edited. Check the version of langchain.`,
    );
  const { tool_call_id, content } = message;
  const bytes = new TextEncoder().encode(JSON.stringify({ role: 'tool', tool_call_id, content }));
  written.set(message, bytes);
  return bytes;
}
