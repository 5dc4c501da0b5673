/** Tests that the gateway adds cache breakpoints for a client that sets none, so that its prompt is read from the cache. */
import { describe, expect, it } from 'vitest';
import type { Receipt } from '../../src/receipts/receipt.ts';
import type { Reply } from '../support/fake-provider/script.ts';
import { runAnthropic } from './agent.ts';
import { longBody, post, requestBody } from './bodies.ts';
import { offering, type Stack, startStack } from './stack.ts';

const hello: Reply = { type: 'turn', parts: [{ type: 'text', text: 'Hello.' }] };
const reads = (...paths: readonly string[]): Reply => ({
  type: 'turn',
  parts: paths.map((path) => ({ type: 'tool-call', name: 'read_file', arguments: { path } })),
});
const recalls: Reply = {
  type: 'turn',
  parts: [{ type: 'tool-call', name: 'read_memory', arguments: { id: 'mem_0000000000000000' } }],
};

type Usage = { readonly cache_read_input_tokens: number; readonly cache_creation_input_tokens: number };

const sent = ({ provider }: Stack) => provider.requests.map(({ body }) => new TextDecoder().decode(body));
const marksIn = (body: string) => body.split('"cache_control"').length - 1;

const agent = {
  model: 'claude-opus-4-8',
  task: 'Read all. '.repeat(600),
  runTool: () => 'a line\n'.repeat(600),
};

/** Returns the cache reads and writes that each response reported. */
function cacheUsageOf(usage: readonly unknown[]) {
  const reported = usage as readonly Usage[];
  return {
    read: reported.map((each) => each.cache_read_input_tokens),
    written: reported.map((each) => each.cache_creation_input_tokens),
  };
}

async function receipts({ url }: Stack): Promise<readonly Receipt[]> {
  const response = await fetch(`${url}/_leporello/receipts`, { headers: { authorization: 'Bearer dummy' } });
  return ((await response.json()) as { readonly receipts: readonly Receipt[] }).receipts;
}

describe('a client that sets no cache breakpoints', () => {
  it.each([true, false])(
    'reads the whole earlier prompt from the cache, from the third request on (streaming: %s)',
    async (streaming) => {
      await using stack = await startStack([...['a', 'b', 'c', 'd'].map((path) => reads(path)), hello]);
      const { usage } = await runAnthropic({ ...agent, url: stack.url, streaming });
      expect(sent(stack).map(marksIn)).toEqual([0, 3, 3, 3, 3]);
      const { read, written } = cacheUsageOf(usage);
      expect([read[0], written[0], read[1]]).toEqual([0, 0, 0]);
      for (const at of [2, 3, 4]) expect(read[at]).toBe(read[at - 1]! + written[at - 1]!);
      expect(read.every((tokens, at) => at < 2 || tokens > read[at - 1]!)).toBe(true);
      expect((await receipts(stack)).toReversed().map(({ cacheMarks }) => cacheMarks)).toEqual([
        0, 3, 3, 3, 3,
      ]);
    },
  );

  it('does so if a turn has more blocks than the provider looks back', async () => {
    const many = Array.from({ length: 15 }, (_, at) => `${at}`);
    await using stack = await startStack([reads('a'), reads('b'), reads(...many), reads('c'), hello]);
    const { usage } = await runAnthropic({ ...agent, url: stack.url, streaming: true });
    const { read, written } = cacheUsageOf(usage);
    for (const at of [2, 3, 4]) expect(read[at]).toBe(read[at - 1]! + written[at - 1]!);
  });

  it('does so with recalls and folds in between', async () => {
    const jobs = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((path) => reads(path));
    await using stack = await startStack([...jobs.slice(0, 4), recalls, ...jobs.slice(4), recalls, hello], {
      ...offering,
      triggers: { tokenBudget: { triggerTokens: 14_000, targetTokens: 5_000 } },
      // All results are equal in this test.
      shrinks: { lossless: false, repeats: false },
    });
    const { toolsRun, answer } = await runAnthropic({ ...agent, url: stack.url, streaming: true });
    expect([toolsRun.length, answer]).toEqual([8, 'Hello.']);
    // The continuation after a recall has the breakpoints of its request. A fold removes the message with the newest one.
    expect(sent(stack).map(marksIn)).toEqual([0, 3, 3, 3, 3, 3, 3, 2, 3, 3, 3]);
    const done = (await receipts(stack)).toReversed();
    const made = done.filter(({ steps }) => steps.length > 0);
    expect(made.length).toBeGreaterThan(0);
    expect(done.map(({ upstreamStatus, unstableFrom }) => [upstreamStatus, unstableFrom])).toEqual(
      done.map(() => [200, undefined]),
    );
    const read = done.map(({ usage }) => usage!.cacheRead);
    expect(read.slice(2).every((tokens) => tokens > 0)).toBe(true);
  });

  it('gets none if the setting is off', async () => {
    await using stack = await startStack([reads('a'), reads('b'), hello], { cacheMarks: false });
    await runAnthropic({ ...agent, url: stack.url, streaming: true });
    expect(sent(stack).map(marksIn)).toEqual([0, 0, 0]);
  });

  it('has its own bytes sent if the provider refuses breakpoints, and gets none from then on', async () => {
    await using stack = await startStack(
      ({ body }) =>
        JSON.stringify(body).includes('cache_control')
          ? {
              type: 'error',
              status: 400,
              body: { error: { message: 'cache_control: Extra inputs are not permitted' } },
            }
          : hello,
      { offerRecall: 'never', shrinks: false },
    );
    for (const jobs of [5, 6, 7]) {
      expect((await post(stack.url, 'messages', longBody('messages', jobs))).status).toBe(200);
      expect(sent(stack).at(-1)).toBe(longBody('messages', jobs));
    }
    expect(sent(stack).map(marksIn)).toEqual([0, 3, 0, 0]);
  });
});

it("a client's own breakpoints are sent unchanged, and none are added", async () => {
  await using stack = await startStack(() => hello, { offerRecall: 'never', shrinks: false });
  for (const jobs of [5, 6, 7]) {
    const { messages, tools } = JSON.parse(longBody('messages', jobs)) as {
      readonly messages: readonly unknown[];
      readonly tools: readonly object[];
    };
    const marked = tools.map((tool) => ({ ...tool, cache_control: { type: 'ephemeral', ttl: '1h' } }));
    const body = requestBody('messages', { messages, tools: marked });
    expect((await post(stack.url, 'messages', body)).status).toBe(200);
    expect(sent(stack).at(-1)).toBe(body);
  }
});
