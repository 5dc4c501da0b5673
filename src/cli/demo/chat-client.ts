/** The client of the demo: the official SDK where it is installed, else plain fetch. Both stream, and keep no more than the message. */
import type { OpenAI } from 'openai';
import { splitEvents } from '../../gateway/sse.ts';
import type { ChatBody, ChatCall, ChatMessage } from './chat.ts';

export interface ChatClient {
  /** For people: what it is made of. */
  readonly name: string;
  /** The model's message, put together from the stream. */
  send(body: ChatBody): Promise<{ readonly message: ChatMessage; readonly headers: Headers }>;
}

/** `url` is the gateway's, without a path. */
export async function loadChatClient(url: string): Promise<ChatClient> {
  const sdk = await import('openai').catch(() => undefined);
  // Whoever has it may have one from before it looked like this.
  return typeof sdk?.OpenAI === 'function' ? sdkClient(sdk, url) : fetchClient(url);
}

type SdkBody = OpenAI.ChatCompletionCreateParamsStreaming;

function sdkClient(sdk: { readonly OpenAI: typeof OpenAI }, url: string): ChatClient {
  // Everything that it would else take from the environment is said, so that no real key is sent.
  const client = new sdk.OpenAI({
    baseURL: `${url}/v1`,
    apiKey: 'demo',
    organization: null,
    project: null,
    maxRetries: 0,
  });
  return {
    name: 'the official openai SDK',
    async send(body) {
      const wanted = { ...body, stream: true } as unknown as SdkBody;
      const { data, response } = await client.chat.completions.create(wanted).withResponse();
      return { message: await messageOf(data), headers: response.headers };
    },
  };
}

/** For packages installed without the SDK. */
export function fetchClient(url: string): ChatClient {
  return {
    name: 'plain fetch (the openai SDK is not installed)',
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
