import { describe, expect, it } from 'vitest';
import type { ScriptRequest, Turn } from '../support/fake-provider/script.ts';
import { startStack } from './stack.ts';

const declaration = {
  name: 'run',
  description: 'Runs.',
  parameters: { type: 'OBJECT', properties: { n: { type: 'INTEGER' } } },
};
const log = (job: number) =>
  Array.from({ length: 100 }, (_, step) => `job ${job}: step ${step} took ${step * 7} ms\n`).join('');

function bodyOf(jobs: number): string {
  const turns = Array.from({ length: jobs }, (_, job) => [
    {
      role: 'model',
      parts: [{ functionCall: { name: 'run', args: { n: job } }, thoughtSignature: `sig${job}` }],
    },
    { role: 'user', parts: [{ functionResponse: { name: 'run', response: { output: log(job) } } }] },
  ]);
  return JSON.stringify({
    contents: [{ role: 'user', parts: [{ text: 'Run all jobs.' }] }, ...turns.flat()],
    tools: [{ functionDeclarations: [declaration] }],
  });
}

/** Recalls the first original that it sees a stub of, once, then answers with its content. */
function script({ body }: ScriptRequest): Turn {
  const text = JSON.stringify(body);
  const memory = /mem_[0-9a-z]{16}/.exec(text)?.[0];
  const recalled = /"name":"read_memory","response":\{"output":"job (\d+): step 0/.exec(text)?.[1];
  return {
    type: 'turn',
    parts:
      memory !== undefined && recalled === undefined
        ? [
            { type: 'thinking', text: 'Which one was it?', signature: 'b3du' },
            { type: 'text', text: 'Let me see. ' },
            { type: 'tool-call', name: 'read_memory', arguments: { id: memory } },
          ]
        : [{ type: 'text', text: `It was job ${recalled}.` }],
    chunkSize: 40,
  };
}

type GeminiItem = {
  readonly candidates?: readonly {
    readonly content?: { readonly parts?: readonly { readonly text?: string }[] };
  }[];
};

const post = (url: string, action: string, body: string) =>
  fetch(`${url}/v1beta/models/gemini-3-pro:${action}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-goog-api-key': 'dummy' },
    body,
  });

describe('Gemini requests through the gateway', () => {
  it.each(['generateContent', 'streamGenerateContent?alt=sse'])(
    'are folded, and recalls are answered privately: %s',
    async (action) => {
      await using stack = await startStack(script, { models: { '*': { windowTokens: 12_000 } } });
      const response = await post(stack.url, action, bodyOf(30));
      expect(response.headers.get('x-leporello-outcome')).toBe('compacted');
      const text = await response.text();
      expect(text).toContain('Let me see. ');
      expect(text).toContain('It was job 0.');
      expect(text).not.toContain('read_memory');
      expect(stack.provider.requests.map((request) => request.target)).toEqual(
        Array.from({ length: 2 }, () => `/v1beta/models/gemini-3-pro:${action}`),
      );
      expect(stack.provider.requests[0]!.body.length).toBeLessThan(bodyOf(30).length / 3);
    },
  );

  it('are folded when they ask for a stream as one JSON array, and recalls are answered in it', async () => {
    await using stack = await startStack(script, { models: { '*': { windowTokens: 12_000 } } });
    const response = await post(stack.url, 'streamGenerateContent?key=dummy', bodyOf(30));
    expect(response.headers.get('x-leporello-outcome')).toBe('compacted');
    expect(response.headers.get('content-type')).toBe('application/json; charset=UTF-8');
    const items = (await response.json()) as readonly GeminiItem[];
    const parts = items.flatMap(({ candidates = [] }) => candidates[0]?.content?.parts ?? []);
    expect(parts.map(({ text = '' }) => text).join('')).toBe('Which one was it?Let me see. It was job 0.');
    expect(JSON.stringify(items)).not.toContain('read_memory');
    expect(stack.provider.requests.map((request) => request.target)).toEqual(
      Array.from({ length: 2 }, () => '/v1beta/models/gemini-3-pro:streamGenerateContent?key=dummy&alt=sse'),
    );
  });

  it('get an error as an array of one item when they ask for an array', async () => {
    const body = { error: { code: 429, message: 'Slower, please.', status: 'RESOURCE_EXHAUSTED' } };
    await using stack = await startStack(() => ({ type: 'error', status: 429, body }));
    const response = await post(stack.url, 'streamGenerateContent', bodyOf(1));
    expect([response.status, await response.json()]).toEqual([429, [body]]);
    await stack.provider.close();
    const unsent = await post(stack.url, 'streamGenerateContent', bodyOf(1));
    expect([unsent.status, await unsent.json()]).toEqual([
      502,
      [{ error: expect.objectContaining({ code: 502 }) as unknown }],
    ]);
  });

  it('are counted as they would be sent; other actions pass through', async () => {
    await using stack = await startStack(script, { models: { '*': { windowTokens: 12_000 } } });
    await post(stack.url, 'countTokens', bodyOf(30));
    await post(stack.url, 'streamGenerateContent?alt=proto', bodyOf(30));
    expect(stack.provider.requests[0]!.body.length).toBeLessThan(bodyOf(30).length / 3);
    expect(new TextDecoder().decode(stack.provider.requests[1]!.body)).toBe(bodyOf(30));
  });
});
