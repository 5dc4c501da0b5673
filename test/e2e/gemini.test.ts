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

  it('are counted as they would be sent; other actions pass through', async () => {
    await using stack = await startStack(script, { models: { '*': { windowTokens: 12_000 } } });
    await post(stack.url, 'countTokens', bodyOf(30));
    await post(stack.url, 'streamGenerateContent', bodyOf(30));
    expect(stack.provider.requests[0]!.body.length).toBeLessThan(bodyOf(30).length / 3);
    expect(new TextDecoder().decode(stack.provider.requests[1]!.body)).toBe(bodyOf(30));
  });
});
