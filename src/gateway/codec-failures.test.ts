/** Tests errors of our own code while a reply is read: the client keeps what it paid for if nothing in it must be hidden. */
import { describe, expect, it } from 'vitest';
import { chatFixture } from '../../test/support/codec-suite/openai-chat/fixture.ts';
import { geminiFixture } from '../../test/support/codec-suite/gemini/fixture.ts';
import { messagesFixture } from '../../test/support/codec-suite/anthropic-messages/fixture.ts';
import { responsesFixture } from '../../test/support/codec-suite/openai-responses/fixture.ts';
import type { CodecFixture, ScriptedPart } from '../../test/support/codec-suite/fixture.ts';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import type { Codec } from '../codecs/codec.ts';
import { gemini } from '../codecs/gemini/index.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { gatewayParts } from './app.ts';
import { readBody } from './http/body.ts';
import { fetchUpstream } from './http/fetch.ts';
import { serveModel } from './model-call.ts';

const fail = (): never => {
  throw new TypeError('SECRET of the reply');
};
const words: ScriptedPart = { type: 'text', pieces: ['Some ', 'words ', 'for you.'] };
const recall: ScriptedPart = { type: 'call', id: 'c1', name: 'read_memory', pieces: ['{"id":"mem_a"}'] };

/** Serves one request whose reply has these parts, with a changed codec. Returns the client's reply, the provider's, and what was noted. */
async function served(
  codec: Codec,
  fixture: CodecFixture,
  { streamed, parts }: { readonly streamed: boolean; readonly parts: readonly ScriptedPart[] },
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
        const type = streamed ? 'text/event-stream' : 'application/json';
        return new Response(provider, { headers: { 'content-type': type } });
      }),
      log: {
        info: () => undefined,
        warn: (fields, message) => void logged.push(`${message} ${JSON.stringify(fields)}`),
      },
      onReceipt: (receipt) => void problems.push(receipt.kind === 'request' && receipt.problem),
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
    { kind: 'model', codec, url: 'http://127.0.0.1:9/v1' },
    'local',
  );
  const bytes =
    response.body instanceof Uint8Array ? response.body : await readBody(response.body, 1_000_000);
  return { status: response.status, text: new TextDecoder().decode(bytes), provider, logged, problems };
}

describe.each([
  [openaiChat, chatFixture],
  [anthropicMessages, messagesFixture],
  [openaiResponses, responsesFixture],
  [gemini, geminiFixture],
] as const)('an error of our own code in a reply of $name', (codec, fixture) => {
  const afterTwo: Codec['openStream'] = (options) => {
    const relay = codec.openStream(options);
    let events = 0;
    return {
      ...relay,
      skip: (_, from) => from,
      take: (event) => (events++ < 2 ? relay.take(event) : fail()),
    };
  };

  it.each([
    ['whole', { ...codec, readResponse: fail }, false],
    ['streamed', { ...codec, openStream: afterTwo }, true],
  ] as const)('leaves the %s reply as the provider sent it', async (_, failing, streamed) => {
    const { status, text, provider, logged, problems } = await served(failing, fixture, {
      streamed,
      parts: [words],
    });
    expect([status, text]).toEqual([200, provider]);
    expect(problems).toEqual(['the response could not be read: TypeError']);
    expect(logged.join()).toMatch(
      /^an error of Leporello itself: please report it .*"error":"TypeError","at":\["at .*fail.*:\d+:\d+/,
    );
    expect(logged.join()).not.toContain('SECRET');
  });

  it.each([
    ['read', { ...codec, readResponse: fail }],
    ['written', { ...codec, writeResponse: fail }],
  ] as const)(
    'is reported as what it is if a recall must be hidden and the reply cannot be %s',
    async (_, failing) => {
      const { status, text, logged } = await served(failing, fixture, {
        streamed: false,
        parts: [words, recall, { ...recall, id: 'c2', name: 'run' }],
      });
      expect(status).toBe(500);
      expect(text).toContain('Leporello itself failed on this request. Its log says where.');
      expect(text).not.toContain('read_memory');
      expect(logged.join()).toContain('an error of Leporello itself');
    },
  );
});
