import { request } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { startFakeProvider } from './fake-provider.ts';
import type { FakeProvider, FakeProviderOptions } from './fake-provider.ts';
import type { JsonObject, Reply, Script } from './script.ts';

let provider: FakeProvider;

afterEach(() => provider.close());

async function start(script: Script, more: Omit<FakeProviderOptions, 'script'> = {}): Promise<void> {
  provider = await startFakeProvider({ script, ...more });
}

const text = (words: string): Reply => ({ type: 'turn', parts: [{ type: 'text', text: words }] });
const user = { role: 'user', content: 'go' };
const chat = { model: 'm', messages: [user] };
const messages = { model: 'm', max_tokens: 9, messages: [user] };
const paths = { chat: '/v1/chat/completions', messages: '/v1/messages' };

function post(path: string, body: unknown): Promise<Response> {
  return fetch(provider.url + path, { method: 'POST', body: JSON.stringify(body) });
}

async function errorOf(path: string, body: unknown): Promise<unknown> {
  const response = await post(path, body);
  const { error } = (await response.json()) as { error?: JsonObject };
  return response.status === 200 ? 'taken' : error?.['message'];
}

describe('a streamed turn', () => {
  const parts: Reply & { type: 'turn' } = {
    type: 'turn',
    parts: [
      { type: 'text', text: 'Hi 😀!' },
      { type: 'tool-call', name: 'look', arguments: { a: 1 } },
    ],
    usage: { input: 30, output: 7, cacheRead: 20, cacheWrite: 4 },
    chunkSize: 4,
  };

  it('is framed as Chat Completions frames it', async () => {
    await start([parts]);
    const body = { ...chat, stream: true, stream_options: { include_usage: true } };
    const response = await post(paths.chat, body);
    const head =
      '"id":"chatcmpl-0","object":"chat.completion.chunk","created":1700000000,"model":"m","service_tier":"default","system_fingerprint":null,"usage":null';
    const chunk = (delta: string, finish = 'null'): string =>
      `data: {${head},"choices":[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finish}}]}\n\n`;
    const usage =
      '{"prompt_tokens":30,"completion_tokens":7,"total_tokens":37,"prompt_tokens_details":{"cached_tokens":20,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}';
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(await response.text()).toBe(
      [
        chunk('{"role":"assistant","content":"","refusal":null}'),
        chunk('{"content":"Hi 😀"}'),
        chunk('{"content":"!"}'),
        chunk(
          '{"tool_calls":[{"index":0,"id":"call_0_0","type":"function","function":{"name":"look","arguments":""}}]}',
        ),
        chunk('{"tool_calls":[{"index":0,"function":{"arguments":"{\\"a\\""}}]}'),
        chunk('{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}'),
        chunk('{}', '"tool_calls"'),
        `data: {${head.replace('"usage":null', `"usage":${usage}`)},"choices":[]}\n\n`,
        'data: [DONE]\n\n',
      ].join(''),
    );
  });

  it('is framed as the Messages API frames it', async () => {
    const thought: Reply = {
      ...parts,
      parts: [{ type: 'thinking', text: 'Hm.', signature: 'sig' }, ...parts.parts],
    };
    await start([thought]);
    const response = await post(paths.messages, { ...messages, stream: true });
    const usage =
      '"input_tokens":6,"cache_creation_input_tokens":4,"cache_read_input_tokens":20,"output_tokens"';
    const event = (data: string): string => `event: ${data.slice(9).split('"')[0]}\ndata: ${data}\n\n`;
    expect(await response.text()).toBe(
      [
        `{"type":"message_start","message":{"id":"msg_0","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{${usage}:1}}}`,
        '{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}',
        '{"type":"ping"}',
        '{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}',
        '{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}',
        '{"type":"content_block_stop","index":0}',
        '{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}',
        '{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hi 😀"}}',
        '{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"!"}}',
        '{"type":"content_block_stop","index":1}',
        '{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_0_2","name":"look","input":{}}}',
        '{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}',
        '{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\\"a\\""}}',
        '{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":":1}"}}',
        '{"type":"content_block_stop","index":2}',
        `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{${usage}:7}}`,
        '{"type":"message_stop"}',
      ]
        .map(event)
        .join(''),
    );
  });

  it('has blocks in the form of the provider, whole and in pieces', async () => {
    const call = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'a' } };
    const result = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] };
    const turn: Reply = {
      type: 'turn',
      parts: [
        { type: 'block', block: call },
        { type: 'block', block: result },
      ],
    };
    await start([turn, turn, turn]);
    expect(await (await post(paths.messages, messages)).json()).toMatchObject({ content: [call, result] });
    const streamed = await (await post(paths.messages, { ...messages, stream: true })).text();
    expect(streamed).toContain(JSON.stringify({ ...call, input: {} }));
    expect(streamed).toContain('"partial_json":"{\\"query\\":\\"a\\""');
    expect(streamed).toContain(JSON.stringify(result));
    const inChat = await (await post(paths.chat, chat)).json();
    expect(JSON.stringify(inChat)).not.toContain('web_search');
  });

  it('waits before a part until it is released', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    await start([
      {
        type: 'turn',
        parts: [
          { type: 'text', text: 'first' },
          { type: 'text', text: 'second' },
        ],
        pauseBeforePart: { 1: promise },
      },
    ]);
    const response = await post(paths.chat, { ...chat, stream: true });
    let seen = '';
    let seenBefore: string | undefined;
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      seen += chunk;
      if (!seen.includes('first')) continue;
      seenBefore ??= seen;
      resolve();
    }
    expect(seenBefore).not.toContain('second');
    expect(seen).toContain('second');
  });
});

describe('other replies', () => {
  it('are errors in the shape of each provider, or as the script says', async () => {
    const limit: Reply = { type: 'error', status: 429, headers: { 'retry-after': '2' } };
    await start([limit, limit, { type: 'error', status: 500, body: { odd: 1 } }]);
    const first = await post(paths.chat, chat);
    const message = 'The script answers this request with status 429.';
    expect([first.status, first.headers.get('retry-after'), await first.json()]).toEqual([
      429,
      '2',
      { error: { message, type: 'requests', param: null, code: null } },
    ]);
    expect(await (await post(paths.messages, messages)).json()).toEqual({
      type: 'error',
      error: { type: 'rate_limit_error', message },
      request_id: 'req_fake',
    });
    expect(await (await post(paths.chat, chat)).json()).toEqual({ odd: 1 });
  });

  it('are raw bytes, chunk by chunk', async () => {
    await start([
      {
        type: 'raw',
        status: 206,
        headers: { 'set-cookie': ['a=1', 'b=2'] },
        chunks: ['ab', Uint8Array.of(255)],
      },
    ]);
    const response = await post(paths.chat, chat);
    expect([response.status, response.headers.getSetCookie(), await response.bytes()]).toEqual([
      206,
      ['a=1', 'b=2'],
      Uint8Array.of(97, 98, 255),
    ]);
  });

  it('break off after so many events, or in the middle of a plain response', async () => {
    await start(() => ({ type: 'cut', afterEvents: 2 }));
    const streamed = await post(paths.messages, { ...messages, stream: true });
    let seen = '';
    const reading = async (): Promise<void> => {
      for await (const chunk of streamed.body!.pipeThrough(new TextDecoderStream())) seen += chunk;
    };
    await expect(reading()).rejects.toThrow('terminated');
    expect(seen.match(/^event: .*/gm)).toEqual(['event: message_start', 'event: content_block_start']);
    const plain = await post(paths.chat, chat);
    await expect(plain.text()).rejects.toThrow('terminated');
    expect(await provider.requests[0]!.ended).toBe('broken-off');
  });

  it('hang until the client disconnects', async () => {
    await start([{ type: 'hang' }, { type: 'hang', afterEvents: 1 }]);
    const gone = new AbortController();
    const options = { method: 'POST', body: JSON.stringify({ ...chat, stream: true }), signal: gone.signal };
    const silent = fetch(provider.url + paths.chat, options);
    await provider.received(1);
    const begun = await fetch(provider.url + paths.chat, options);
    expect(begun.status).toBe(200);
    gone.abort();
    await expect(silent).rejects.toThrow('aborted');
    expect(await Promise.all(provider.requests.map(({ ended }) => ended))).toEqual([
      'broken-off',
      'broken-off',
    ]);
  });

  it('say that the provider is up on the root path', async () => {
    await start([]);
    const response = await fetch(provider.url, { method: 'HEAD' });
    expect([response.status, provider.requests[0]!.format]).toEqual([200, 'other']);
  });

  it('count tokens, serve other paths, and report when the script is over or fails', async () => {
    await start([], { other: () => ({ type: 'raw', status: 200, headers: {}, chunks: ['other'] }) });
    const count = await post('/v1/messages/count_tokens?beta=true', { model: 'm', messages: [user] });
    expect(await count.json()).toEqual({ input_tokens: 15 });
    expect(await (await fetch(`${provider.url}/v1/models`)).text()).toBe('other');
    expect(await errorOf(paths.chat, chat)).toBe('The script has 0 replies and this is request 1.');
    await provider.close();
    await start(() => {
      throw new Error('oops');
    });
    expect(await errorOf(paths.chat, chat)).toBe('The script failed: Error: oops');
    expect(await errorOf('/v1/models', {})).toBe('Invalid URL (POST /v1/models)');
  });
});

describe('the record', () => {
  it('keeps headers, bytes and end of every request, even refused ones', async () => {
    await start(({ format, index }) => text(`${format} ${index}`));
    const body = '{ "model":"m", "messages":[{"role":"user","content":"\\u00e9"}], "n": 1.0 }';
    const seen = await new Promise<string>((resolve, reject) => {
      const headers = ['Authorization', 'Bearer k', 'X-Two', '1', 'X-Two', '2', 'Host', 'h'];
      const sent = request(`${provider.url}${paths.chat}?q`, { method: 'POST', headers }, (response) => {
        response.setEncoding('utf8').once('data', resolve);
      });
      sent.once('error', reject).end(body);
    });
    await post(paths.chat, {});
    await provider.received(2);
    const [first, second] = provider.requests;
    expect(seen).toContain('"content":"chat 0"');
    expect({ ...first, receivedAt: 0, body: first!.body.toString() }).toMatchObject({
      format: 'chat',
      method: 'POST',
      target: '/v1/chat/completions?q',
      body,
    });
    expect(first!.headers.slice(0, 3)).toEqual([
      ['authorization', 'Bearer k'],
      ['x-two', '1'],
      ['x-two', '2'],
    ]);
    expect([await first!.ended, await second!.ended]).toEqual(['complete', 'complete']);
  });
});
