/** The client of the demo: it streams Chat Completions with plain `fetch`, and puts the message together. */
import { splitEvents } from '../../gateway/http/sse.ts';
import type { ChatBody, ChatCall, ChatMessage } from './chat.ts';

export interface ChatClient {
  /** Returns the model's message, put together from the stream. */
  send(body: ChatBody): Promise<{ readonly message: ChatMessage; readonly headers: Headers }>;
}

/** A client of the gateway at `url`, which has no path. `send` rejects when the gateway answers with an error status. */
export function chatClient(url: string): ChatClient {
  return {
    async send(body) {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer demo' },
        body: JSON.stringify({ ...body, stream: true }),
      });
      if (!response.ok || response.body === null) {
        throw new Error(`The gateway answered ${response.status}: ${await response.text()}`);
      }
      return { message: await messageOf(chunksOf(response.body)), headers: response.headers };
    },
  };
}

type Chunk = {
  readonly choices: readonly { readonly delta: Delta }[];
};

type Delta = {
  readonly content?: string | null;
  readonly tool_calls?: readonly {
    readonly index: number;
    readonly id?: string;
    readonly function?: { readonly name?: string; readonly arguments?: string };
  }[];
};

async function* chunksOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<Chunk> {
  for await (const { data } of splitEvents(body)) {
    if (data !== '' && data !== '[DONE]') yield JSON.parse(data) as Chunk;
  }
}

async function messageOf(chunks: AsyncIterable<Chunk>): Promise<ChatMessage> {
  let content = '';
  const calls: ChatCall[] = [];
  for await (const { choices } of chunks) {
    const delta = choices[0]?.delta;
    content += delta?.content ?? '';
    for (const { index, id, function: called } of delta?.tool_calls ?? []) {
      const begun = calls[index] ?? { id: id ?? '', type: 'function', function: { name: '', arguments: '' } };
      const { name, arguments: json } = begun.function;
      const grown = { name: name + (called?.name ?? ''), arguments: json + (called?.arguments ?? '') };
      calls[index] = { ...begun, function: grown };
    }
  }
  const said = { role: 'assistant', content: content === '' ? null : content };
  return calls.length === 0 ? said : { ...said, tool_calls: calls };
}
