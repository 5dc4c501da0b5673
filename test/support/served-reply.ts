/** Serves one request whose reply is scripted, through the gateway's code in this process. */
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../src/codecs/codec.ts';
import { gemini } from '../../src/codecs/gemini/index.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import { type GatewayDeps, gatewayParts } from '../../src/gateway/app.ts';
import { readBody } from '../../src/gateway/http/body.ts';
import { fetchUpstream } from '../../src/gateway/http/fetch.ts';
import { serveModel } from '../../src/gateway/model-call.ts';
import { inMemoryStore } from '../../src/store/in-memory.ts';
import { messagesFixture } from './codec-suite/anthropic-messages/fixture.ts';
import type { CodecFixture, ScriptedPart } from './codec-suite/fixture.ts';
import { geminiFixture } from './codec-suite/gemini/fixture.ts';
import { chatFixture } from './codec-suite/openai-chat/fixture.ts';
import { responsesFixture } from './codec-suite/openai-responses/fixture.ts';

/** The codecs, each with its fixture. */
export const codecs = [
  [openaiChat, chatFixture],
  [anthropicMessages, messagesFixture],
  [openaiResponses, responsesFixture],
  [gemini, geminiFixture],
] as const;

export const words: ScriptedPart = { type: 'text', pieces: ['Some ', 'words ', 'for you.'] };
export const recall: ScriptedPart = {
  type: 'call',
  id: 'c1',
  name: 'read_memory',
  pieces: ['{"id":"mem_a"}'],
};
export const run: ScriptedPart = { ...recall, id: 'c2', name: 'run' };

/** Serves one request whose reply has these parts, with a changed codec. Returns the client's reply, the provider's, and what was noted. */
export async function served(
  codec: Codec,
  fixture: CodecFixture,
  {
    streamed,
    parts,
    type = streamed ? 'text/event-stream' : 'application/json',
    deps,
  }: {
    readonly streamed: boolean;
    readonly parts: readonly ScriptedPart[];
    /** The content type of the reply; `none` for a reply without one. */
    readonly type?: string;
    /** Parts of the gateway instead of the usual ones. */
    readonly deps?: Partial<GatewayDeps>;
  },
) {
  const usage = { input: 1, cacheRead: 0, cacheWrite: 0, output: 1 };
  const turn = { parts, finish: parts.includes(recall) ? 'calls' : 'stop', usage } as const;
  const provider = streamed ? fixture.stream(turn, 0) : new TextDecoder().decode(fixture.response(turn));
  const logged: string[] = [];
  const problems: unknown[] = [];
  const options = gatewayParts(
    { tenant: 'local', offerRecall: 'always' },
    {
      store: inMemoryStore(),
      secret: new Uint8Array(32).fill(1),
      upstream: fetchUpstream(async () => {
        // A reply whose body is a text would get a type.
        const bytes = new TextEncoder().encode(provider);
        return new Response(bytes, { headers: type === 'none' ? {} : { 'content-type': type } });
      }),
      log: {
        info: () => undefined,
        warn: (fields, message) => void logged.push(`${message} ${JSON.stringify(fields)}`),
      },
      onReceipt: (receipt) => void problems.push(receipt.kind === 'request' && receipt.problem),
      ...deps,
    },
  );
  const body = fixture.body({ turns: [{ say: 'user', text: 'Go.' }], tools: ['run'], stream: streamed });
  const response = await serveModel(
    options,
    {
      method: 'POST',
      target: '/',
      headers: [],
      body: (async function* whole() {
        yield await Promise.resolve(body);
      })(),
      signal: new AbortController().signal,
    },
    {
      kind: 'model',
      codec: fixture.route.in === 'url' ? { ...codec, route: { model: 'm', streaming: streamed } } : codec,
      url: 'http://127.0.0.1:9/v1?alt=sse',
    },
    'local',
  );
  const bytes =
    response.body instanceof Uint8Array ? response.body : await readBody(response.body, 1_000_000);
  return { status: response.status, text: new TextDecoder().decode(bytes), provider, logged, problems };
}
