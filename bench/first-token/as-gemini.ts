/** Converts a Chat Completions body with tool calls to a generateContent body of the same conversation. */

export type ChatMessage = {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly type: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
};

type ChatBody = {
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly { readonly function: object }[];
};

/** Returns no model and no `stream`, because this format has both in the path of the URL. */
export function asGemini(chat: Uint8Array): Uint8Array {
  const { messages, tools } = JSON.parse(new TextDecoder().decode(chat)) as ChatBody;
  const names = new Map(
    messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id, function: { name } }) => [id, name])),
  );
  const system = messages.filter(({ role }) => role === 'system').map(({ content }) => ({ text: content }));
  const body = {
    systemInstruction: { parts: system },
    contents: messages
      .filter(({ role }) => role !== 'system')
      .map((message) => ({
        role: message.role === 'assistant' ? 'model' : 'user',
        parts: partsOf(message, names),
      })),
    tools: [{ functionDeclarations: tools.map((tool) => tool.function) }],
  };
  return new TextEncoder().encode(JSON.stringify(body));
}

function partsOf(message: ChatMessage, names: ReadonlyMap<string, string>): readonly object[] {
  const { role, content, tool_calls: calls = [], tool_call_id: id = '' } = message;
  if (role === 'tool')
    return [{ functionResponse: { id, name: names.get(id), response: { output: content } } }];
  const text = content === null ? [] : [{ text: content }];
  const called = calls.map(({ id: callId, function: { name, arguments: given } }) => ({
    functionCall: { id: callId, name, args: JSON.parse(given) as unknown },
  }));
  return [...text, ...called];
}
