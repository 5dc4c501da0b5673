/** Converts a Chat Completions body to the Messages body that a client of that format would send for the same conversation. */

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
  readonly tools?: readonly {
    readonly function: {
      readonly name: string;
      readonly description?: string;
      readonly parameters?: unknown;
    };
  }[];
};

type Block = Readonly<Record<string, unknown>>;
type Message = { readonly role: 'user' | 'assistant'; readonly content: readonly Block[] };

export function asAnthropic(chat: Uint8Array): Uint8Array {
  const { model, messages, tools, ...others } = JSON.parse(new TextDecoder().decode(chat)) as ChatBody;
  const system = messages
    .filter((message) => message.role === 'system')
    .map((message) => textBlock(message.content));
  const turns = mergeTurns(messages.filter((message) => message.role !== 'system').map(messageOf));
  const body = {
    ...others,
    model: model ?? 'test-model',
    max_tokens: 1_024,
    ...(system.length > 0 ? { system } : {}),
    // In this format the first message is the user's.
    messages: turns[0]?.role === 'assistant' ? [{ role: 'user', content: 'Begin.' }, ...turns] : turns,
    ...(tools
      ? {
          tools: tools.map(({ function: { parameters, ...tool } }) => ({
            ...tool,
            input_schema: parameters ?? { type: 'object' },
          })),
        }
      : {}),
  };
  return new TextEncoder().encode(JSON.stringify(body));
}

function messageOf(message: ChatMessage): Message {
  if (message.role === 'tool') {
    const result = { type: 'tool_result', tool_use_id: message.tool_call_id, content: message.content };
    return { role: 'user', content: [result] };
  }
  const calls = (message.tool_calls ?? []).map((call) => ({
    type: 'tool_use',
    id: call.id,
    name: call.function.name,
    input: parseInput(call.function.arguments),
  }));
  const text =
    typeof message.content === 'string' && message.content !== '' ? [textBlock(message.content)] : [];
  const content = [...text, ...calls];
  return {
    role: message.role === 'assistant' ? 'assistant' : 'user',
    // The provider refuses empty messages.
    content: content.length > 0 ? content : [textBlock('(nothing)')],
  };
}

/** Joins the results of one assistant message in one user message, and other neighbors of one role. */
function mergeTurns(messages: readonly Message[]): readonly Message[] {
  const merged: Message[] = [];
  for (const message of messages) {
    const last = merged.at(-1);
    const joins = last?.role === message.role && isResults(last) === isResults(message);
    if (last && joins)
      merged[merged.length - 1] = { role: last.role, content: [...last.content, ...message.content] };
    else merged.push(message);
  }
  return merged;
}

function isResults({ content }: Message): boolean {
  return content.every((block) => block['type'] === 'tool_result');
}

function textBlock(text: unknown): Block {
  return { type: 'text', text };
}

function parseInput(json: string): unknown {
  const value: unknown = JSON.parse(json);
  return typeof value === 'object' && value !== null ? value : { value };
}
