import { describe, expect, it } from 'vitest';
import type { RecordedRequest } from '../../src/testing/fake-provider/fake-provider.ts';
import type { Reply } from '../../src/testing/fake-provider/script.ts';
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

const chunk = (parts: readonly object[], finish?: string) => ({
  candidates: [{ content: { role: 'model', parts }, ...(finish ? { finishReason: finish } : {}), index: 0 }],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 2, totalTokenCount: 12 },
  responseId: 'response-1',
});

/** Recalls the first memory it sees a stub of, once, then answers with what it got. */
function provider({ target, body }: RecordedRequest): Reply {
  const text = new TextDecoder().decode(body);
  const memory = /mem_[0-9a-z]{16}/.exec(text)?.[0];
  const recalled = /"name":"read_memory","response":\{"output":"job (\d+): step 0/.exec(text)?.[1];
  const parts =
    memory && recalled === undefined
      ? [
          { text: 'Let me see. ' },
          { functionCall: { name: 'read_memory', args: { id: memory } }, thoughtSignature: 'own' },
        ]
      : [{ text: `It was job ${recalled}.` }];
  const isStream = target.includes(':streamGenerateContent');
  const type = isStream ? 'text/event-stream' : 'application/json';
  const sent = isStream
    ? parts.map(
        (part, at) =>
          `data: ${JSON.stringify(chunk([part], at === parts.length - 1 ? 'STOP' : undefined))}\r\n\r\n`,
      )
    : [JSON.stringify(chunk(parts, 'STOP'))];
  return { type: 'raw', status: 200, headers: { 'content-type': type }, chunks: sent };
}

const post = (url: string, action: string, body: string) =>
  fetch(`${url}/v1beta/models/gemini-3-pro:${action}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-goog-api-key': 'dummy' },
    body,
  });

describe('Gemini through the gateway', () => {
  it.each(['generateContent', 'streamGenerateContent?alt=sse'])(
    'folds, and answers a recall privately: %s',
    async (action) => {
      await using stack = await startStack([], { models: { '*': { window: 12_000 } } }, { other: provider });
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

  it('counts what would be sent, and passes the rest', async () => {
    await using stack = await startStack([], { models: { '*': { window: 12_000 } } }, { other: provider });
    await post(stack.url, 'countTokens', bodyOf(30));
    await post(stack.url, 'streamGenerateContent', bodyOf(30));
    expect(stack.provider.requests[0]!.body.length).toBeLessThan(bodyOf(30).length / 3);
    expect(new TextDecoder().decode(stack.provider.requests[1]!.body)).toBe(bodyOf(30));
  });
});
