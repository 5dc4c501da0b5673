import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import type { Reply, ScriptRequest } from '../support/fake-provider/script.ts';
import { formats, longBody, post, requestBody, shapes } from './bodies.ts';
import { replies } from './replies.ts';
import { offering, type Stack, startStack } from './stack.ts';
import { hasStub } from '../support/stub-texts.ts';

const hello: Reply = { type: 'turn', parts: [{ type: 'text', text: 'Hello.' }] };
const refusal = (message: string, status = 400): Reply => ({
  type: 'error',
  status,
  body: { type: 'error', error: { type: 'invalid_request_error', message } },
});
const sizeOf = ({ body }: ScriptRequest) => JSON.stringify(body).length;
const sizes = (stack: { provider: { requests: readonly { body: Uint8Array }[] } }) =>
  stack.provider.requests.map((request) => request.body.length);

describe.each(formats)('a %s request that the provider refuses', (format) => {
  it('as too long is folded harder until it is accepted, and stays folded', async () => {
    // The known window is larger than the real one.
    await using stack = await startStack(
      (request) => (sizeOf(request) > 39_000 ? refusal(replies[format].overflow) : hello),
      {
        triggers: { tokenBudget: false, cacheRent: false },
      },
    );
    const response = await post(stack.url, format, longBody(format, 30));
    expect(response.status).toBe(200);
    expect(response.headers.get('x-leporello-outcome')).toBe('compacted');
    const tries = sizes(stack).length;
    expect(tries).toBeGreaterThan(1);
    expect(tries).toBeLessThanOrEqual(11);
    expect(sizes(stack).toSorted((a, b) => b - a)).toEqual(sizes(stack));
    expect((await post(stack.url, format, longBody(format, 31))).status).toBe(200);
    expect(sizes(stack).length).toBe(tries + 1);
  });

  it('as too long is folded below the limit that the refusal names, which is then known for all conversations with the model', async () => {
    const { overflowNaming } = replies[format];
    // This provider has a tokenizer that the gateway does not know.
    const tokensOf = (request: ScriptRequest) => Math.ceil(sizeOf(request) / 3);
    await using stack = await startStack(
      (request) => (tokensOf(request) > 20_000 ? refusal(overflowNaming(tokensOf(request), 20_000)) : hello),
      { triggers: { tokenBudget: false, cacheRent: false } },
    );
    for (const [jobs, requests] of [
      [40, 2],
      [41, 3],
    ] as const) {
      expect((await post(stack.url, format, longBody(format, jobs))).status).toBe(200);
      expect(sizes(stack).length).toBe(requests);
    }
    const other = longBody(format, 42).replaceAll('Run all jobs', 'Run everything');
    expect((await post(stack.url, format, other)).status).toBe(200);
    expect(sizes(stack).length).toBe(4);
  });

  it('as too long, however much is folded, is refused to the client after a few tries', async () => {
    await using stack = await startStack(() => refusal(replies[format].overflow), {
      triggers: { tokenBudget: false },
    });
    const response = await post(stack.url, format, longBody(format, 30));
    expect(response.status).toBe(400);
    expect(JSON.stringify(await response.json())).toContain(replies[format].overflow);
    expect(sizes(stack).length).toBeLessThanOrEqual(11);
  });

  it('as too long is folded harder at once, at most a few times, without asking a model for a summary', async () => {
    // The request is so long that, once accepted, a summary would be written in the background.
    const settings = {
      summaries: { kind: 'model' },
      shrinks: false,
      calibration: false,
      models: { '*': { windowTokens: 200_000, tokenizer: { encoding: 'o200k_base' } } },
      triggers: { tokenBudget: { triggerTokens: 55_000, targetTokens: 20_000 }, cacheRent: false },
    } as const;
    const { messages, user } = shapes[format];
    const read =
      format === 'gemini'
        ? { role: 'model', parts: [{ text: 'Read.' }] }
        : { role: 'assistant', content: 'Read.' };
    const turns = Array.from({ length: 40 }, (_, at) => [
      user(`Letter ${at}. ${'And so it went on. '.repeat(200)}`),
      read,
    ]);
    const letters = requestBody(format, { [messages]: turns.flat().slice(0, -1) });
    const isForSummary = (body: string) => body.includes('You write down what an agent has done so far.');
    const play = async (longest: number) => {
      const stack = await startStack((request) => {
        const isTooLong = !isForSummary(JSON.stringify(request.body)) && sizeOf(request) > longest;
        return isTooLong ? refusal(replies[format].overflow) : hello;
      }, settings);
      const { status } = await post(stack.url, format, letters);
      const forSummaries = () =>
        stack.provider.requests.filter(({ body }) => isForSummary(new TextDecoder().decode(body))).length;
      return Object.assign(stack, { status, forSummaries });
    };
    const receiptOf = async ({ url }: Stack) => {
      const headers = { authorization: 'Bearer dummy' };
      const { receipts } = (await (await fetch(`${url}/_leporello/receipts`, { headers })).json()) as {
        receipts: readonly Receipt[];
      };
      return receipts;
    };
    await using taken = await play(1_000_000);
    await eventually(() => expect(taken.forSummaries()).toBe(1));
    await using folded = await play(100_000);
    expect([folded.status, folded.forSummaries()]).toEqual([200, 0]);
    expect(await receiptOf(folded)).toMatchObject([
      { trigger: 'overflow', compressions: [{ by: 'extractive', problem: 'none was begun in time' }] },
    ]);
    await using refused = await play(10);
    expect([refused.status, refused.forSummaries()]).toEqual([400, 0]);
    for (const { provider } of [folded, refused]) {
      expect(provider.requests.length).toBeGreaterThan(1);
      expect(provider.requests.length).toBeLessThanOrEqual(11);
    }
    expect(folded.forSummaries()).toBe(0);
  });

  it('because of our edits is sent again unchanged, and the conversation is not folded any more', async () => {
    await using stack = await startStack(
      ({ body }) => (hasStub(JSON.stringify(body)) ? refusal('messages: something is odd') : hello),
      { triggers: { tokenBudget: { triggerTokens: 20_000, targetTokens: 10_000 } } },
    );
    const response = await post(stack.url, format, longBody(format, 30));
    expect(response.status).toBe(200);
    expect(response.headers.get('x-leporello-outcome')).toBe('failed');
    expect(sizes(stack).length).toBe(2);
    expect(new TextDecoder().decode(stack.provider.requests[1]!.body)).toBe(longBody(format, 30));
    expect(stack.logged.join()).toContain('the provider answered 400 to the folded request');
    for (const jobs of [31, 32]) {
      await post(stack.url, format, longBody(format, jobs));
      expect(new TextDecoder().decode(stack.provider.requests.at(-1)!.body)).toBe(longBody(format, jobs));
    }
    expect(sizes(stack).length).toBe(4);
  });

  it('because of its own content is refused to the client, and later requests are folded', async () => {
    let refuses = true;
    await using stack = await startStack(() => (refuses ? refusal('unknown parameter') : hello), {
      triggers: { tokenBudget: { triggerTokens: 20_000, targetTokens: 10_000 } },
    });
    const response = await post(stack.url, format, longBody(format, 30));
    expect(response.status).toBe(400);
    expect(JSON.stringify(await response.json())).toContain('unknown parameter');
    refuses = false;
    const next = await post(stack.url, format, longBody(format, 31));
    expect(next.headers.get('x-leporello-outcome')).toBe('compacted');
  });

  it.each([400, 413, 422])('because of the recall tool is sent without it (%d)', async (status) => {
    await using stack = await startStack(
      ({ body }) =>
        JSON.stringify(body).includes('read_memory') ? refusal('too many tools', status) : hello,
      offering,
    );
    expect((await post(stack.url, format, requestBody(format))).status).toBe(200);
    expect(new TextDecoder().decode(stack.provider.requests.at(-1)!.body)).toBe(requestBody(format));
    expect((await post(stack.url, format, requestBody(format))).status).toBe(200);
    expect(sizes(stack).length).toBe(3);
  });

  it('without any edit of ours is sent once', async () => {
    await using stack = await startStack(() => refusal('unknown parameter'), { offerRecall: 'never' });
    expect((await post(stack.url, format, requestBody(format))).status).toBe(400);
    expect(sizes(stack).length).toBe(1);
  });

  it('with a long HTML error page keeps its status', async () => {
    const headers = { 'content-type': 'text/html' };
    await using stack = await startStack(
      () => ({ type: 'raw', status: 400, headers, chunks: ['<html>', 'x'.repeat(1_200_000)] }),
      { models: { '*': { windowTokens: 2_000 } } },
    );
    const response = await post(stack.url, format, longBody(format, 30));
    expect(response.status).toBe(400);
    expect((await response.text()).length).toBe(1_200_006);
  });
});
