import { afterEach, describe, expect, it } from 'vitest';
import { startFakeProvider } from './fake-provider.ts';
import type { FakeProvider } from './fake-provider.ts';
import type { Reply, Script, Turn } from './script.ts';

let provider: FakeProvider;

afterEach(() => provider.close());

async function start(script: Script): Promise<void> {
  provider = await startFakeProvider({ script });
}

const body = { contents: [{ role: 'user', parts: [{ text: 'go' }] }] };

function send(action: string, sent: unknown = body, model = 'gemini-3-pro'): Promise<Response> {
  const url = `${provider.url}/v1beta/models/${model}:${action}`;
  return fetch(url, { method: 'POST', body: JSON.stringify(sent) });
}

const turn: Turn = {
  type: 'turn',
  parts: [
    { type: 'thinking', text: 'Hmmm.', signature: 'c2VhbA==' },
    { type: 'text', text: 'Hi 😀!' },
    { type: 'tool-call', name: 'look', arguments: { a: 1 } },
    { type: 'tool-call', name: 'look', arguments: { a: 2 }, id: 'mine' },
  ],
  usage: { input: 30, output: 20, cacheRead: 8 },
  chunkSize: 4,
};
const call = (a: number, id: string, more = ''): string =>
  `{"functionCall":{"name":"look","args":{"a":${a}},"id":"${id}"}${more}}`;
const first = call(1, 'call_0_2', ',"thoughtSignature":"c2VhbA=="');
/** `said` and `thought` are the tokens so far. */
const reply = (parts: string, said: number, thought: number, finish = ''): string =>
  `{"candidates":[{"content":{"parts":[${parts}],"role":"model"},${finish && `"finishReason":"${finish}",`}"index":0}],"usageMetadata":{"promptTokenCount":30,"candidatesTokenCount":${said},"totalTokenCount":${30 + said + thought},"cachedContentTokenCount":8,"promptTokensDetails":[{"modality":"TEXT","tokenCount":30}],"thoughtsTokenCount":${thought}},"modelVersion":"gemini-3-pro","responseId":"response-0"}`;
const chunks = [
  reply('{"text":"Hmmm","thought":true}', 0, 1),
  reply('{"text":".","thought":true}', 0, 2),
  reply('{"text":"Hi 😀"}', 0, 3),
  reply('{"text":"!"}', 0, 4),
  reply(first, 1, 4),
  reply(call(2, 'mine'), 16, 4, 'STOP'),
];

describe('a turn of generateContent', () => {
  it('is one object when it is plain', async () => {
    await start([turn]);
    const answered = await send('generateContent');
    const parts = ['{"text":"Hmmm.","thought":true}', '{"text":"Hi 😀!"}', first, call(2, 'mine')];
    expect(await answered.text()).toBe(reply(parts.join(), 16, 4, 'STOP'));
  });

  it('is streamed in chunks with running totals', async () => {
    await start([turn]);
    const answered = await send('streamGenerateContent?alt=sse');
    expect(answered.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(await answered.text()).toBe(chunks.map((chunk) => `data: ${chunk}\r\n\r\n`).join(''));
  });

  it('is streamed as one array unless events are requested', async () => {
    await start([turn]);
    const answered = await send('streamGenerateContent');
    expect(answered.headers.get('content-type')).toBe('application/json; charset=UTF-8');
    expect(await answered.text()).toBe(`[${chunks.join(',\r\n')}\n]`);
  });

  it('is signed at its end without calls, and only by models that check', async () => {
    const said: Reply = { type: 'turn', parts: [{ type: 'text', text: 'Hi' }] };
    const parts = (text: string): readonly string[] => text.match(/(?<="parts":\[).*?(?=\])/g)!;
    await start(() => said);
    expect(parts(await (await send('generateContent')).text())).toEqual([
      '{"text":"Hi","thoughtSignature":"c2lnbmF0dXJlIDA="}',
    ]);
    expect(parts(await (await send('streamGenerateContent?alt=sse')).text())).toEqual([
      '{"text":"Hi"}',
      '{"text":"","thoughtSignature":"c2lnbmF0dXJlIDE="}',
    ]);
    const older = await send('generateContent', body, 'gemini-2.5-pro');
    expect(parts(await older.text())).toEqual(['{"text":"Hi"}']);
  });

  it('ends as scripted, and is empty without parts', async () => {
    await start([{ type: 'turn', parts: [], finish: 'SAFETY' }]);
    const answered = await send('streamGenerateContent?alt=sse', body, 'm');
    expect(await answered.text()).toMatch(
      /^data: .*\{"parts":\[\{"text":""\}\],"role":"model"\},"finishReason":"SAFETY"[^\n]*\r\n\r\n$/,
    );
  });
});

describe('other requests', () => {
  it('tokens are counted, even of a whole request', async () => {
    await start([]);
    const whole = { generateContentRequest: { model: 'models/gemini-3-pro', ...body } };
    for (const sent of [body, whole]) {
      const totalTokens = Math.ceil(JSON.stringify(sent).length / 4);
      expect(await (await send('countTokens', sent)).json()).toEqual({
        totalTokens,
        promptTokensDetails: [{ modality: 'TEXT', tokenCount: totalTokens }],
      });
    }
  });

  it('errors have the shape of this provider', async () => {
    await start([{ type: 'error', status: 429 }]);
    expect(await (await send('generateContent')).json()).toEqual({
      error: {
        code: 429,
        message: 'The script answers this request with status 429.',
        status: 'RESOURCE_EXHAUSTED',
      },
    });
    expect(await (await send('generateContent', {})).json()).toEqual({
      error: {
        code: 400,
        message: '* GenerateContentRequest.contents: contents is not specified\n',
        status: 'INVALID_ARGUMENT',
      },
    });
    expect(await (await send('embedContent')).json()).toEqual({
      error: {
        code: 404,
        message: 'Invalid URL (POST /v1beta/models/gemini-3-pro:embedContent)',
        status: 'NOT_FOUND',
      },
    });
  });

  it('a script sees the model and the streaming named in the path', async () => {
    await start(({ format, model, streaming }) => ({
      type: 'turn',
      parts: [{ type: 'text', text: `${format} ${model} ${streaming}` }],
      chunkSize: 99,
    }));
    expect(await (await send('generateContent', body, 'tuned%20one')).text()).toContain(
      '"gemini tuned one false"',
    );
    expect(await (await send('streamGenerateContent')).text()).toContain('"gemini gemini-3-pro true"');
  });
});
