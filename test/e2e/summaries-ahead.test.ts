/** Summaries by a model, in every format: written ahead with the conversation's own credential, and waited for by no request. */
import { describe, expect, it, vi } from 'vitest';
import type { Reply, ScriptRequest } from '../../src/testing/fake-provider/script.ts';
import { formats, longBody, post } from './bodies.ts';
import { type Stack, startStack } from './stack.ts';

const says = (text: string): Reply => ({ type: 'turn', parts: [{ type: 'text', text }] });

/** A fold at 20,000 tokens that leaves hardly more than a summary. */
const settings = {
  summaries: { kind: 'model' },
  shrinks: false,
  calibration: false,
  models: { '*': { tokenizer: { encoding: 'o200k_base' } } },
  triggers: {
    tokenBudget: { trigger: 20_000, target: 1_500, buffer: 1 },
    cacheRent: false,
    coldCache: false,
  },
} as const;

const isForSummary = ({ body }: Pick<ScriptRequest, 'body'>) =>
  JSON.stringify(body).includes('You write down what an agent has done so far.');

/** A provider that answers summaries when it is let, and everything else at once. */
function provider(summary: Reply) {
  const asked: ScriptRequest[] = [];
  const gate = Promise.withResolvers<void>();
  const script = async (request: ScriptRequest): Promise<Reply> => {
    if (!isForSummary(request)) return says('Hello.');
    asked.push(request);
    await gate.promise;
    return summary;
  };
  return { asked, script, open: gate.resolve };
}

/** What the newest request of the conversation itself said upstream. */
const newest = ({ provider: { requests } }: Stack): string =>
  requests
    .map(({ body }) => Buffer.from(body).toString())
    .findLast((body) => !body.includes('You write down what an agent'))!;

const until = (stack: Stack, message: string) =>
  vi.waitFor(() => expect(stack.logged.some((line) => line.startsWith(message))).toBe(true), 20_000);

describe.each(formats)('summaries by a model for %s requests', (format) => {
  const ask = async (stack: Stack, jobs: number, url = stack.url) => {
    const response = await post(url, format, longBody(format, jobs));
    expect(response.status).toBe(200);
    await response.text();
  };

  it('are written ahead, and found by the fold, after a restart too', async () => {
    const { asked, script, open } = provider(says('All jobs passed so far.\nJob ZEBRA-17 is next.'));
    open();
    await using stack = await startStack(script, settings);
    await ask(stack, 14);
    await until(stack, 'a summary is ready');
    expect(asked.map(({ streaming, body }) => [streaming, 'tools' in body])).toEqual([[false, false]]);
    const [own, summary] = stack.provider.requests;
    const credential = ['authorization', 'Bearer dummy'];
    expect(own!.headers).toContainEqual(credential);
    expect(summary!.headers).toContainEqual(credential);
    await stack.restart();
    await ask(stack, 25);
    expect(newest(stack)).toContain('[Summary of ');
    expect(newest(stack)).toContain('- Job ZEBRA-17 is next.');
    expect(newest(stack)).toContain('Run all jobs.');
    const sent = newest(stack);
    await ask(stack, 25, await stack.another());
    expect(newest(stack)).toBe(sent);
  });

  it('are waited for by no request: a fold that comes earlier leaves an extract', async () => {
    const { asked, script, open } = provider(says('Job ZEBRA-17 is next.'));
    await using stack = await startStack(script, settings);
    try {
      await ask(stack, 14);
      await vi.waitFor(() => expect(asked.length).toBe(1));
      await ask(stack, 25);
      expect(newest(stack)).toContain('[Summary of ');
      expect(newest(stack)).not.toContain('ZEBRA');
    } finally {
      open();
    }
  });

  it('that fail are told to the log, and an extract stands in', async () => {
    const { script, open } = provider({ type: 'error', status: 500 });
    open();
    await using stack = await startStack(script, settings);
    await ask(stack, 14);
    await until(stack, 'no summary was written ahead');
    await ask(stack, 25);
    expect(newest(stack)).toContain('[Summary of ');
  });
});
