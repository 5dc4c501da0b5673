/**
 * Converts a Chat Completions body to the Responses body that a client which keeps its own history would send for the same conversation:
 * every assistant turn begins with encrypted reasoning, and each of its calls is an item.
 */

type ChatMessage = {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
};

type ChatBody = {
  readonly model?: string;
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly { readonly function: Readonly<Record<string, unknown>> }[];
};

export function asResponses(chat: Uint8Array): Uint8Array {
  const { model, messages, tools } = JSON.parse(new TextDecoder().decode(chat)) as ChatBody;
  const body = {
    model: model ?? 'test-model',
    input: messages.flatMap(itemsOf),
    ...(tools ? { tools: tools.map((tool) => ({ type: 'function', ...tool.function, strict: false })) } : {}),
    store: false,
    include: ['reasoning.encrypted_content'],
  };
  return new TextEncoder().encode(JSON.stringify(body));
}

function itemsOf(message: ChatMessage, at: number): readonly unknown[] {
  switch (message.role) {
    case 'tool':
      return [
        { type: 'function_call_output', call_id: message.tool_call_id, output: textOf(message.content) },
      ];
    case 'assistant': {
      const text = textOf(message.content);
      const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: given } }) => ({
        type: 'function_call',
        call_id: id,
        name,
        arguments: given,
      }));
      return [
        { type: 'reasoning', id: `rs_${at}`, summary: [], encrypted_content: 'gAAAAAB'.repeat(40) },
        // A turn needs a text or a call, because the provider refuses reasoning alone.
        ...(text !== '' || calls.length === 0 ? [{ type: 'message', role: 'assistant', content: text }] : []),
        ...calls,
      ];
    }
    default:
      return [{ type: 'message', role: message.role, content: textOf(message.content) }];
  }
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return (content as readonly { readonly text?: string }[]).map(({ text }) => text ?? '').join('');
}
