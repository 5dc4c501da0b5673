/** Provides the AI SDK's `pruneMessages` as two policies, as its two pages of documentation use it. */
import { type ModelMessage, pruneMessages } from 'ai';
import type { Policy } from '../../src/replay/policies.ts';
import { type ChatMessage, createChatState } from './chat-state.ts';

/** Prunes above 100,000 tokens (length / 4), as the page on compaction in `prepareStep` does. Later steps start from the pruned messages. */
export const pruneOverThreshold: Policy = prunePolicy('AI SDK pruneMessages over 100k', (messages) =>
  JSON.stringify(messages).length / 4 > 100_000
    ? pruneMessages({
        messages,
        reasoning: 'all',
        toolCalls: 'before-last-3-messages',
        emptyMessages: 'remove',
      })
    : messages,
);

/** Prunes before every request, as the reference page does. */
export const pruneAlways: Policy = prunePolicy('AI SDK pruneMessages always', (messages) =>
  pruneMessages({
    messages,
    reasoning: 'before-last-message',
    toolCalls: 'before-last-2-messages',
    emptyMessages: 'remove',
  }),
);

function prunePolicy(name: string, prune: (messages: ModelMessage[]) => ModelMessage[]): Policy {
  return {
    name,
    hasMemory: false,
    open() {
      let state: ModelMessage[] = [];
      const chat = createChatState();
      const converter = createConverter();
      return {
        async send({ conversation }) {
          state = prune([...state, ...converter.read(chat.added(conversation))]);
          return {
            body: chat.body(
              conversation,
              state.flatMap((message) => converter.write(message)),
            ),
            prepared: undefined,
          };
        },
      };
    },
  };
}

type Added = ReturnType<ReturnType<typeof createChatState>['added']>;
type AssistantParts = Extract<ModelMessage, { role: 'assistant' }>['content'];
type ToolResults = Extract<ModelMessage, { role: 'tool' }>['content'];

/** Converts chat messages to the SDK's messages and back. Messages that pruning leaves complete keep their bytes: it copies messages, not parts. */
function createConverter() {
  const toolNames = new Map<string, string>();
  const written = new WeakMap<object, { readonly bytes: Uint8Array; readonly parts: number }>();

  function assistantOf({ content, tool_calls: calls = [] }: ChatMessage, bytes: Uint8Array): ModelMessage {
    const texts = content ? [{ type: 'text' as const, text: content }] : [];
    const parts = calls.map(({ id, function: { name, arguments: json } }) => {
      toolNames.set(id, name);
      const input: unknown = JSON.parse(json);
      return { type: 'tool-call' as const, toolCallId: id, toolName: name, input };
    });
    const all = [...texts, ...parts];
    for (const part of all) written.set(part, { bytes, parts: all.length });
    return { role: 'assistant', content: all };
  }

  function resultOf({ content, tool_call_id: id = '' }: ChatMessage, bytes: Uint8Array): ToolResults[number] {
    const output = { type: 'text' as const, value: content ?? '' };
    const part = { type: 'tool-result' as const, toolCallId: id, toolName: toolNames.get(id) ?? '', output };
    written.set(part, { bytes, parts: 1 });
    return part;
  }

  return {
    /** Puts all results of a turn into one message. */
    read(added: Added): readonly ModelMessage[] {
      const messages: ModelMessage[] = [];
      for (const { message, bytes } of added) {
        const last = messages.at(-1);
        if (message.role === 'tool') {
          const result = resultOf(message, bytes);
          if (last?.role === 'tool') last.content.push(result);
          else messages.push({ role: 'tool', content: [result] });
        } else if (message.role === 'assistant') messages.push(assistantOf(message, bytes));
        else {
          const plain: ModelMessage = { role: message.role, content: message.content ?? '' };
          written.set(plain, { bytes, parts: 1 });
          messages.push(plain);
        }
      }
      return messages;
    },
    write(message: ModelMessage): readonly Uint8Array[] {
      if (message.role === 'tool') return message.content.map((part) => written.get(part)!.bytes);
      if (message.role !== 'assistant' || typeof message.content === 'string')
        return [written.get(message)!.bytes];
      const known = message.content[0] && written.get(message.content[0]);
      return [known?.parts === message.content.length ? known.bytes : assistantBytes(message.content)];
    },
  };
}

function assistantBytes(content: AssistantParts): Uint8Array {
  const parts = typeof content === 'string' ? [] : content;
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const calls = parts.flatMap((part) =>
    part.type === 'tool-call'
      ? [
          {
            id: part.toolCallId,
            type: 'function',
            function: { name: part.toolName, arguments: JSON.stringify(part.input) },
          },
        ]
      : [],
  );
  const message = {
    role: 'assistant',
    content: text === '' ? null : text,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
  return new TextEncoder().encode(JSON.stringify(message));
}
