/** Tests summaries by a model in every format: they are written in the background with the conversation's credential; no request waits. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import type { AnyReceipt } from '../../src/gateway/receipts/receipts.ts';
import type { Reply, ScriptRequest } from '../support/fake-provider/script.ts';
import { formats, longBody, post } from './bodies.ts';
import { type Stack, startStack } from './stack.ts';

const says = (text: string): Reply => ({ type: 'turn', parts: [{ type: 'text', text }] });

/** Folds at 20,000 tokens and leaves little more than the summary. */
const settings = {
  summaries: { kind: 'model' },
  shrinks: false,
  calibration: false,
  usdPerMillionTokens: { '*': { input: 1, output: 5 } },
  models: { '*': { tokenizer: { encoding: 'o200k_base' } } },
  triggers: {
    tokenBudget: { triggerTokens: 20_000, targetTokens: 600, bufferTokens: 1 },
    cacheRent: false,
    coldCache: false,
  },
} as const;

const isForSummary = ({ body }: Pick<ScriptRequest, 'body'>) =>
  JSON.stringify(body).includes('You write down what an agent has done so far.');

/** A provider that writes the summary after `open()` and answers everything else at once. */
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

/** Returns the gateway's receipts, oldest first. */
async function receiptsOf({ url }: Stack): Promise<readonly AnyReceipt[]> {
  const response = await fetch(`${url}/_leporello/receipts`, { headers: { authorization: 'Bearer dummy' } });
  const { receipts } = (await response.json()) as { receipts: AnyReceipt[] };
  return receipts.toReversed();
}

/** Returns the newest body sent for the conversation itself. */
const newest = ({ provider: { requests } }: Stack): string =>
  requests
    .map(({ body }) => Buffer.from(body).toString())
    .findLast((body) => !body.includes('You write down what an agent'))!;

const until = (stack: Stack, message: string) =>
  eventually(() => expect(stack.logged.some((line) => line.startsWith(message))).toBe(true));

describe.each(formats)('summaries by a model for %s requests', (format) => {
  const ask = async (stack: Stack, jobs: number, url = stack.url) => {
    const response = await post(url, format, longBody(format, jobs), { 'idempotency-key': 'once' });
    expect(response.status).toBe(200);
    await response.text();
  };

  it('are written in the background and used by the fold, also after a restart', async () => {
    const { asked, script, open } = provider(says('All jobs passed so far.\nJob ZEBRA-17 is next.'));
    open();
    // A timer cannot wait for 30 days.
    const summaries = { kind: 'model', deadlineMs: 30 * 24 * 3_600_000 } as const;
    await using stack = await startStack(script, { ...settings, summaries });
    await ask(stack, 14);
    await until(stack, 'a summary is ready');
    expect(asked.map(({ streaming, body }) => [streaming, 'tools' in body])).toEqual([[false, false]]);
    const [own, summary] = stack.provider.requests;
    const credential = ['authorization', 'Bearer dummy'];
    expect(own!.headers).toContainEqual(credential);
    expect(summary!.headers).toContainEqual(credential);
    // It belongs to the client's own request.
    const key = ['idempotency-key', 'once'];
    expect(own!.headers).toContainEqual(key);
    expect(summary!.headers).not.toContainEqual(key);
    const [began, summaryReceipt] = await receiptsOf(stack);
    expect(summaryReceipt).toMatchObject({
      kind: 'summary',
      outcome: { status: 'written' },
      behind: began!.id,
      session: began!.session,
      calls: 1,
      usage: { output: expect.any(Number) },
      paid: { total: expect.any(Number) },
    });
    await stack.restart();
    await ask(stack, 25);
    expect(newest(stack)).toContain('[Summary of ');
    expect(newest(stack)).toContain('- Job ZEBRA-17 is next.');
    const folded = (await receiptsOf(stack))[0];
    expect(folded).toMatchObject({ compressions: [{ level: 'history', by: 'both' }] });
    expect(folded).not.toHaveProperty('compressions.0.problem');
    expect(newest(stack)).toContain('Run all jobs.');
    const sent = newest(stack);
    await ask(stack, 25, await stack.another());
    expect(newest(stack)).toBe(sent);
  });

  it('delay no request: an earlier fold uses an extractive summary', async () => {
    const { asked, script, open } = provider(says('Job ZEBRA-17 is next.'));
    await using stack = await startStack(script, settings);
    try {
      await ask(stack, 14);
      await eventually(() => expect(asked.length).toBe(1));
      // The conversation has grown and wants another summary, but only one is written at a time.
      await ask(stack, 15);
      await ask(stack, 25);
      expect(asked.length).toBe(1);
      expect(newest(stack)).toContain('[Summary of ');
      expect(newest(stack)).not.toContain('ZEBRA');
      expect((await receiptsOf(stack)).at(-1)).toMatchObject({
        compressions: [{ by: 'extractive', problem: 'the summary was still being written' }],
      });
    } finally {
      open();
    }
  });

  it('are not requested while the next fold is more than six requests away', async () => {
    const { asked, script, open } = provider(says('Job ZEBRA-17 is next.'));
    open();
    await using stack = await startStack(script, settings);
    // 11 of the 17 jobs or more that fit the budget.
    await ask(stack, 11);
    expect(asked).toEqual([]);
    await ask(stack, 14);
    await until(stack, 'a summary is ready');
    expect(asked).toHaveLength(1);
  });

  it('are not requested if stubs of results are enough', async () => {
    const { asked, script, open } = provider(says('Never asked for.'));
    open();
    const triggers = {
      ...settings.triggers,
      tokenBudget: { triggerTokens: 20_000, targetTokens: 8_000, bufferTokens: 1 },
    };
    await using stack = await startStack(script, { ...settings, triggers });
    for (const jobs of [14, 15, 16, 25]) await ask(stack, jobs);
    expect(newest(stack)).toContain('[Folded result');
    expect(newest(stack)).not.toContain('[Summary of ');
    expect(asked).toEqual([]);
  });

  it('are requested once by two gateways on one store, and used by both', async () => {
    const { asked, script, open } = provider(says('Job ZEBRA-17 is next.'));
    await using stack = await startStack(script, settings);
    const other = await stack.another();
    try {
      await Promise.all([ask(stack, 14), ask(stack, 14, other)]);
      await eventually(() => expect(asked.length).toBe(1));
      // The conversation continues at both while the summary is written.
      for (const url of [stack.url, other]) await ask(stack, 15, url);
    } finally {
      open();
    }
    await until(stack, 'a summary is ready');
    for (const url of [other, stack.url]) {
      await ask(stack, 25, url);
      expect(newest(stack)).toContain('- Job ZEBRA-17 is next.');
    }
    expect(asked.length).toBe(1);
  });

  it('that fail are logged, and the fold uses an extractive one', async () => {
    const { script, open } = provider({ type: 'error', status: 500 });
    open();
    await using stack = await startStack(script, settings);
    await ask(stack, 14);
    await until(stack, 'the model wrote no summary');
    await ask(stack, 25);
    expect(newest(stack)).toContain('[Summary of ');
    const why = 'The upstream answered 500 to a request for a summary.';
    expect((await receiptsOf(stack)).slice(1)).toMatchObject([
      { kind: 'summary', outcome: { status: 'failed', reason: why }, calls: 1 },
      { compressions: [{ by: 'extractive', problem: why }] },
    ]);
  });
});
