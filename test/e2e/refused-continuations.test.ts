/** Tests providers that refuse to continue after a recall: the gateway retries if that may help; else the client gets the provider's error. */
import Anthropic, {
  APIError as AnthropicError,
  RateLimitError as AnthropicRateLimitError,
} from '@anthropic-ai/sdk';
import { ApiError, GoogleGenAI } from '@google/genai';
import OpenAI, { APIError as OpenAIError, RateLimitError as OpenAIRateLimitError } from 'openai';
import { describe, expect, it } from 'vitest';
import type { Receipt } from '../../src/receipts/receipt.ts';
import type { Reply, Script, TurnPart } from '../support/fake-provider/script.ts';
import { formats, type Format, post, postAs, postStream, requestBody } from './bodies.ts';
import { replies } from './replies.ts';
import { offering, type Stack, startStack } from './stack.ts';

const recall: TurnPart = {
  type: 'tool-call',
  name: 'read_memory',
  arguments: { id: 'mem_0000000000000000' },
};
const looking: Reply = { type: 'turn', parts: [{ type: 'text', text: 'One moment. ' }, recall] };
const found: Reply = { type: 'turn', parts: [{ type: 'text', text: 'Here it is.' }] };
/** Asks the client to try again at once. */
const atOnce = { 'retry-after-ms': '1' };

/** Each provider's error body for too many requests. */
const limits: Readonly<Record<Format, object>> = {
  chat: { error: { message: 'Slow down.', type: 'tokens', param: null, code: 'rate_limit_exceeded' } },
  messages: {
    type: 'error',
    error: { type: 'rate_limit_error', message: 'Slow down.' },
    request_id: 'req_1',
  },
  responses: { error: { message: 'Slow down.', type: 'tokens', param: null, code: 'rate_limit_exceeded' } },
  gemini: { error: { code: 429, message: 'Slow down.', status: 'RESOURCE_EXHAUSTED' } },
};

/** The last event of a stream that ends with that error. */
const errorEvents: Readonly<Record<Format, string>> = {
  chat: `data: ${JSON.stringify(limits.chat)}\n\n`,
  messages: `event: error\ndata: ${JSON.stringify(limits.messages)}\n\n`,
  responses: `event: error\ndata: {"type":"error","code":"rate_limit_exceeded","message":"Slow down.","param":null,"sequence_number":`,
  gemini: `data: ${JSON.stringify(limits.gemini)}\n\n`,
};

const limited = (format: Format, headers: Readonly<Record<string, string>> = atOnce): Reply => ({
  type: 'error',
  status: 429,
  body: limits[format],
  headers,
});

/** Scripts a recall and then these answers; the last one repeats. */
function after(...answers: readonly Reply[]): Script {
  return ({ index }) => (index === 0 ? looking : (answers[index - 1] ?? answers.at(-1)!));
}

async function newestReceipt({ url }: Stack): Promise<Receipt> {
  const response = await fetch(`${url}/_leporello/receipts`, { headers: { authorization: 'Bearer dummy' } });
  return ((await response.json()) as { receipts: Receipt[] }).receipts[0]!;
}

describe.each(formats)('a %s continuation that is refused', (format) => {
  it.each([429, 500, 502, 503, 504, 529])('with %i succeeds when a retry is accepted', async (status) => {
    const refusal: Reply = { type: 'error', status, headers: atOnce };
    await using stack = await startStack(after(refusal, refusal, found), offering);
    const text = await (await postStream(stack.url, format)).text();
    expect(text).toMatch(replies[format].streamEnd);
    expect(text).not.toMatch(/event: error|"error":\{/);
    expect(stack.provider.requests.length).toBe(4);
    const [, first, second, third] = stack.provider.requests.map(({ body }) =>
      new TextDecoder().decode(body),
    );
    expect([second, third]).toEqual([first, first]);
    await using plain = await startStack(after(refusal, refusal, found), offering);
    const whole = await post(plain.url, format, requestBody(format));
    expect([whole.status, (await whole.text()).includes('Here it is.')]).toEqual([200, true]);
  });

  it("ends the stream with the provider's own error when it is refused again and again", async () => {
    await using stack = await startStack(after(limited(format)), offering);
    const text = await (await postStream(stack.url, format)).text();
    const [before, after_] = text.split(errorEvents[format]);
    expect(before).toContain('moment');
    expect(after_).toMatch(format === 'responses' ? /^\d+\}\n\n$/ : /^$/);
    expect(stack.provider.requests.length).toBe(4);
    expect(await newestReceipt(stack)).toMatchObject({
      upstreamStatus: 429,
      problem: 'The upstream answered 429 to a continuation.',
    });
  });

  it("is returned as the provider's own response if nothing was streamed", async () => {
    const headers = { 'retry-after': '3600', 'x-request-id': 'req_1', 'request-id': 'req_1' };
    await using stack = await startStack(after(limited(format, headers)), offering);
    const response = await post(stack.url, format, requestBody(format));
    expect([response.status, await response.json()]).toEqual([429, limits[format]]);
    expect(Object.fromEntries(response.headers)).toMatchObject(headers);
    expect(stack.provider.requests.length).toBe(2);
  });

  it.each(['whole', 'streamed'])('because it is too long goes on without the answers; %s', async (how) => {
    const error = { message: replies[format].overflow, type: 'invalid_request_error', code: 'some_code' };
    const tooLong: Reply = { type: 'error', status: 400, body: { type: 'error', error } };
    await using stack = await startStack(after(tooLong, looking, found), offering);
    const response = await postAs(stack.url, format, how);
    const text = await response.text();
    expect([response.status, text.includes('Here it is.')]).toEqual([200, true]);
    if (how === 'streamed') expect(text).toMatch(replies[format].streamEnd);
    const sent = stack.provider.requests.map(({ body }) => new TextDecoder().decode(body));
    const noRoom = 'The context window has no room left to read memory. Go on with what is there.';
    // The model recalls once more, and reads at once that there is no room.
    expect(sent.map((body) => body.split(noRoom).length - 1)).toEqual([0, 0, 1, 2]);
    expect(sent[2]!.length).toBeLessThan(sent[1]!.length);
    expect(await newestReceipt(stack)).toMatchObject({
      upstreamStatus: 200,
      problem: 'what was recalled did not fit into the window',
    });
  });

  it.each([
    ['the wait would be an hour', 429, { 'retry-after': '3600' }],
    ['the wait would be until a date years ahead', 503, { 'retry-after': 'Wed, 21 Oct 2065 07:28:00 GMT' }],
    ['the provider says not to', 429, { 'x-should-retry': 'false', 'retry-after': '0' }],
    ['the request is invalid', 400, { 'retry-after': '0' }],
  ])('is not retried if %s', async (_, status, headers) => {
    await using stack = await startStack(after({ type: 'error', status, headers }), offering);
    const text = await (await postStream(stack.url, format)).text();
    expect(text).not.toMatch(replies[format].streamEnd);
    expect(text).toContain('error');
    expect(stack.provider.requests.length).toBe(2);
  });

  it('with the HTML page of a proxy ends the stream with an error that fits its status', async () => {
    const page: Reply = {
      type: 'raw',
      status: 429,
      headers: { 'content-type': 'text/html', ...atOnce },
      chunks: ['<html>', 'Too many requests'],
    };
    await using stack = await startStack(after(page), offering);
    const text = await (await postStream(stack.url, format)).text();
    const kind = {
      chat: 'rate_limit_error',
      messages: 'rate_limit_error',
      responses: 'rate_limit_exceeded',
      gemini: 'RESOURCE_EXHAUSTED',
    };
    expect(text).toContain(`"${kind[format]}"`);
    expect(text).toContain(
      'Leporello could not continue the response after a recall. The upstream answered 429 to a continuation.',
    );
    expect(text).not.toContain('html');
  });

  it("with an error in its stream forwards the provider's own event", async () => {
    const event = errorEvents[format].endsWith('\n\n') ? errorEvents[format] : `${errorEvents[format]}3}\n\n`;
    const broken: Reply = {
      type: 'raw',
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      chunks: [event],
    };
    await using stack = await startStack(after(broken), offering);
    const text = await (await postStream(stack.url, format)).text();
    expect(text.endsWith(event)).toBe(true);
  });

  it("whose connection breaks ends the stream with the gateway's error", async () => {
    await using stack = await startStack(after({ type: 'cut', afterEvents: 0 }), offering);
    const text = await (await postStream(stack.url, format)).text();
    const ending = replies[format].errorEvent(
      `Leporello could not continue the response after a recall. ${stack.provider.url} could not be reached, or the connection broke (UND_ERR_SOCKET). Check that it is up and its URL is right.`,
    );
    expect(text.replace(/"sequence_number":\d+\}\n\n$/, '"sequence_number":2}\n\n').endsWith(ending)).toBe(
      true,
    );
  });
});

it.each(['chat', 'messages'] as const)(
  'a %s continuation that failed leaves no recall in the next request of a client that kept the text so far',
  async (format) => {
    const refusal: Reply = { type: 'error', status: 400 };
    const script: Script = ({ index }) => [looking, refusal, found][index]!;
    await using stack = await startStack(script, offering);
    await (await postStream(stack.url, format)).text();
    const messages = [
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: 'One moment. ' },
      { role: 'user', content: 'And now?' },
    ];
    await (await postStream(stack.url, format, { messages })).text();
    const sent = new TextDecoder().decode(stack.provider.requests[2]!.body);
    expect(JSON.parse(sent)).toMatchObject({ messages });
  },
);

describe('the official SDK', () => {
  const chatRequest = JSON.parse(requestBody('chat')) as OpenAI.ChatCompletionCreateParamsNonStreaming;
  const responsesRequest = JSON.parse(requestBody('responses')) as Omit<
    OpenAI.Responses.ResponseCreateParamsNonStreaming,
    'stream'
  >;
  const messagesRequest = JSON.parse(requestBody('messages')) as Anthropic.MessageCreateParamsNonStreaming;
  const tools = [{ functionDeclarations: [{ name: 'run', description: 'Runs.' }] }];
  const geminiRequest = { model: 'gemini-3-pro', contents: 'Go', config: { tools } };
  const openai = (url: string) => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'dummy', maxRetries: 0 });
  const anthropic = (url: string) => new Anthropic({ baseURL: url, apiKey: 'dummy', maxRetries: 0 });
  const google = (url: string) => new GoogleGenAI({ apiKey: 'dummy', httpOptions: { baseUrl: url } });

  async function drain(stream: AsyncIterable<unknown>): Promise<void> {
    for await (const _ of stream) {
      // Reads until the stream ends or fails.
    }
  }

  const asks: readonly {
    readonly format: Format;
    readonly streamed: (url: string) => Promise<unknown>;
    readonly plain: (url: string) => Promise<unknown>;
    /** The SDK's error for a stream; without a status, except if the SDK reads one from the event. */
    readonly error: object;
    readonly errorClass: abstract new (...args: never[]) => Error;
    readonly plainErrorClass: abstract new (...args: never[]) => Error;
  }[] = [
    {
      format: 'chat',
      streamed: async (url) =>
        drain(await openai(url).chat.completions.create({ ...chatRequest, stream: true })),
      plain: (url) => openai(url).chat.completions.create(chatRequest),
      error: { code: 'rate_limit_exceeded', type: 'tokens', message: 'Slow down.' },
      errorClass: OpenAIError,
      plainErrorClass: OpenAIRateLimitError,
    },
    {
      format: 'messages',
      streamed: (url) => anthropic(url).messages.stream(messagesRequest).finalMessage(),
      plain: (url) => anthropic(url).messages.create(messagesRequest),
      error: { type: 'rate_limit_error', error: limits.messages },
      errorClass: AnthropicError,
      plainErrorClass: AnthropicRateLimitError,
    },
    {
      format: 'responses',
      streamed: (url) => openai(url).responses.stream(responsesRequest).finalResponse(),
      plain: (url) => openai(url).responses.create(responsesRequest),
      error: { code: 'rate_limit_exceeded', message: 'Slow down.' },
      errorClass: OpenAIError,
      plainErrorClass: OpenAIRateLimitError,
    },
    {
      format: 'gemini',
      streamed: async (url) => drain(await google(url).models.generateContentStream(geminiRequest)),
      plain: (url) => google(url).models.generateContent(geminiRequest),
      error: { status: 429, message: expect.stringContaining('Slow down.') as string },
      errorClass: ApiError,
      plainErrorClass: ApiError,
    },
  ];

  it.each(asks)("for $format raises its own error class for the provider's error", async (ask) => {
    const { format, streamed, plain, error, errorClass, plainErrorClass } = ask;
    await using stack = await startStack(after(limited(format)), offering);
    const raised: unknown = await streamed(stack.url).catch((problem: unknown) => problem);
    expect(raised).toBeInstanceOf(errorClass);
    expect(raised).toMatchObject(error);
    await using other = await startStack(after(limited(format)), offering);
    const refused: unknown = await plain(other.url).catch((problem: unknown) => problem);
    expect(refused).toBeInstanceOf(plainErrorClass);
    expect(refused).toMatchObject({ status: 429 });
  });
});
