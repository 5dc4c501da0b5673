/** The client of the demo: it streams Chat Completions, and plays a sample conversation. */
import { splitEvents } from '../../gateway/http/http.ts';

import sampleFile from '../samples/missing-invoices.json' with { type: 'json' };

/** The part of a Chat Completions request that the demo uses. */
export type ChatBody = {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly unknown[];
};

export type ChatMessage = {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly ChatCall[];
  readonly tool_call_id?: string;
};

export type ChatCall = {
  readonly id: string;
  readonly type: string;
  readonly function: { readonly name: string; readonly arguments: string };
};

/** The complete conversation of an agent, as its client has it at the end. */
export const sampleBody: ChatBody = sampleFile;

export interface ChatClient {
  /** Sends a request, and returns the model's message, assembled from the stream. */
  send(body: ChatBody): Promise<{ readonly message: ChatMessage; readonly headers: Headers }>;
}

/** Creates a client of the gateway at `url`, which has no path. `send` rejects when the gateway answers with an error status. */
export function chatClient(url: string): ChatClient {
  return {
    async send(body) {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer demo' },
        body: JSON.stringify({ ...body, stream: true }),
      });
      if (!response.ok || response.body === null) {
        throw new Error(`The gateway responded with status ${response.status}: ${await response.text()}`);
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
      const call = calls[index] ?? { id: id ?? '', type: 'function', function: { name: '', arguments: '' } };
      const { name, arguments: json } = call.function;
      const extended = { name: name + (called?.name ?? ''), arguments: json + (called?.arguments ?? '') };
      calls[index] = { ...call, function: extended };
    }
  }
  const message = { role: 'assistant', content: content === '' ? null : content };
  return calls.length === 0 ? message : { ...message, tool_calls: calls };
}
