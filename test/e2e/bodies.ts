/** Request bodies for tests that speak to the gateway with plain fetch. */

export const formats = ['chat', 'messages'] as const;
export type Format = (typeof formats)[number];

export const paths: Readonly<Record<Format, string>> = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
};

const models: Readonly<Record<Format, string>> = { chat: 'gpt-4o', messages: 'claude-sonnet-5' };

/** A request that offers one tool, so that the gateway adds its own. */
export function requestBody(format: Format, change: Readonly<Record<string, unknown>> = {}): string {
  const tool = { name: 'run', description: 'Runs.' };
  return JSON.stringify({
    model: models[format],
    max_tokens: 100,
    messages: [{ role: 'user', content: 'Go' }],
    tools: [
      format === 'chat'
        ? { type: 'function', function: tool }
        : { ...tool, input_schema: { type: 'object' } },
    ],
    ...change,
  });
}

export function post(
  url: string,
  format: Format,
  body: RequestInit['body'],
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(url + paths[format], {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer dummy', ...headers },
    body: body ?? null,
  });
}

/** A conversation of so many jobs, each with a result of about 1,000 tokens. */
export function longBody(format: Format, jobs: number): string {
  const messages = Array.from({ length: jobs }, (_, at) =>
    format === 'chat'
      ? [
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: `call_${at}`, type: 'function', function: { name: 'run', arguments: '{}' } }],
          },
          { role: 'tool', tool_call_id: `call_${at}`, content: result(at) },
        ]
      : [
          { role: 'assistant', content: [{ type: 'tool_use', id: `call_${at}`, name: 'run', input: {} }] },
          {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: `call_${at}`, content: result(at) }],
          },
        ],
  );
  return requestBody(format, { messages: [{ role: 'user', content: 'Run all jobs.' }, ...messages.flat()] });
}

function result(at: number): string {
  return Array.from({ length: 100 }, (_, step) => `job ${at}: step ${step} took ${step * 7} ms\n`).join('');
}
