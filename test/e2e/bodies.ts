/** Request bodies in every format, for tests that call the gateway with plain fetch; replies.ts has the responses. */

export const formats = ['chat', 'messages', 'responses', 'gemini'] as const;
export type Format = (typeof formats)[number];

type Fields = Readonly<Record<string, unknown>>;

/** The paths, fields and messages of one format. */
type Shape = {
  readonly path: string;
  /** The path of a streaming request, if it differs. */
  readonly streamPath?: string;
  /** The body fields that request a stream. */
  readonly stream: Fields;
  /** The field with the messages, and a message's field with its content. */
  readonly messages: string;
  readonly content: string;
  readonly settings: Fields;
  readonly user: (text: string) => unknown;
  /** Messages with a call of the tool `run` and its result. */
  readonly job: (id: string, result: string) => readonly unknown[];
  /** Request fields with a system prompt and these messages. */
  readonly withRules: (text: string, messages: readonly unknown[]) => Fields;
};

const tool = { name: 'run', description: 'Runs.' };
const sayUser = (content: string) => ({ role: 'user', content });

export const shapes: Readonly<Record<Format, Shape>> = {
  chat: {
    path: '/v1/chat/completions',
    stream: { stream: true, stream_options: { include_usage: true } },
    messages: 'messages',
    content: 'content',
    settings: { model: 'gpt-4o', max_tokens: 100, tools: [{ type: 'function', function: tool }] },
    user: sayUser,
    job: (id, content) => [
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id, type: 'function', function: { name: 'run', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: id, content },
    ],
    withRules: (text, messages) => ({ messages: [{ role: 'system', content: text }, ...messages] }),
  },
  messages: {
    path: '/v1/messages',
    stream: { stream: true },
    messages: 'messages',
    content: 'content',
    settings: {
      model: 'claude-sonnet-5',
      max_tokens: 100,
      tools: [{ ...tool, input_schema: { type: 'object' } }],
    },
    user: sayUser,
    job: (id, content) => [
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'run', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content }] },
    ],
    withRules: (text, messages) => ({ system: [{ type: 'text', text }], messages }),
  },
  responses: {
    path: '/v1/responses',
    stream: { stream: true },
    messages: 'input',
    content: 'content',
    settings: {
      model: 'gpt-4o',
      max_output_tokens: 100,
      store: false,
      tools: [{ type: 'function', ...tool, parameters: { type: 'object' }, strict: false }],
    },
    user: sayUser,
    job: (call_id, output) => [
      { type: 'function_call', call_id, name: 'run', arguments: '{}' },
      { type: 'function_call_output', call_id, output },
    ],
    withRules: (instructions, input) => ({ instructions, input }),
  },
  gemini: {
    path: '/v1beta/models/gemini-3-pro:generateContent',
    streamPath: '/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse',
    stream: {},
    messages: 'contents',
    content: 'parts',
    settings: { generationConfig: { maxOutputTokens: 100 }, tools: [{ functionDeclarations: [tool] }] },
    user: (text) => ({ role: 'user', parts: [{ text }] }),
    job: (id, output) => [
      {
        role: 'model',
        parts: [{ functionCall: { id, name: 'run', args: {} }, thoughtSignature: 'c2lnbmVk' }],
      },
      { role: 'user', parts: [{ functionResponse: { id, name: 'run', response: { output } } }] },
    ],
    withRules: (text, contents) => ({ systemInstruction: { parts: [{ text }] }, contents }),
  },
};

/** Returns a request that offers one tool, so that the gateway adds the recall tool. */
export function requestBody(format: Format, change: Fields = {}): string {
  const { settings, messages, user } = shapes[format];
  return JSON.stringify({ ...settings, [messages]: [user('Go')], ...change });
}

export function post(
  url: string,
  format: Format,
  body: RequestInit['body'],
  headers: Record<string, string> = {},
): Promise<Response> {
  return send(url + shapes[format].path, body, headers);
}

/** Posts the same request as a streaming request. */
export function postStream(url: string, format: Format, change: Fields = {}): Promise<Response> {
  const { path, streamPath, stream } = shapes[format];
  return send(url + (streamPath ?? path), requestBody(format, { ...stream, ...change }), {});
}

/** Posts the same request in one of the two ways. */
export function postAs(url: string, format: Format, how: string): Promise<Response> {
  return how === 'whole' ? post(url, format, requestBody(format)) : postStream(url, format);
}

function send(
  url: string,
  body: RequestInit['body'],
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer dummy', ...headers },
    body: body ?? null,
  });
}

/** Returns a conversation with this many jobs, each with a result of about 1,000 tokens. */
export function longBody(format: Format, jobs: number): string {
  const { messages, user, job } = shapes[format];
  const done = Array.from({ length: jobs }, (_, at) => job(`call_${at}`, result(at)));
  return requestBody(format, { [messages]: [user('Run all jobs.'), ...done.flat()] });
}

function result(at: number): string {
  return Array.from({ length: 100 }, (_, step) => `job ${at}: step ${step} took ${step * 7} ms\n`).join('');
}
