/** Tests receipts of responses that did not reach their end, because the client left or because the provider broke off. */
import { describe, expect, it } from 'vitest';
import type { Receipt } from '../../src/receipts/receipt.ts';
import { eventually } from '../support/eventually.ts';
import type { Reply, TurnPart } from '../support/fake-provider/script.ts';
import { type Format, formats, postStream, requestBody, shapes } from './bodies.ts';
import { type Stack, offering, startStack } from './stack.ts';

const parts: readonly TurnPart[] = [{ type: 'text', text: 'There are many errors in the log of the pump.' }];
const recall: Reply = {
  type: 'turn',
  parts: [{ type: 'tool-call', name: 'read_memory', arguments: { id: 'mem_0000000000000000' } }],
  usage: { input: 1_000, output: 20 },
};
const hangs: Reply = { type: 'hang', afterEvents: 6, parts };

const settings = {
  ...offering,
  tenant: 'local',
  usdPerMillionTokens: { '*': { input: 10, cacheRead: 1, cacheWrite: 12.5, output: 50 } },
};

/** Asks for a stream, reads its first words, and leaves. */
async function leaveEarly({ url }: Stack, format: Format): Promise<void> {
  const { body } = await postStream(url, format);
  let received = '';
  for await (const piece of body!.pipeThrough(new TextDecoderStream())) {
    received += piece;
    if (received.includes('There')) break;
  }
}

async function newestReceipt({ url }: Stack): Promise<Receipt> {
  return eventually(async () => {
    const answer = await (await fetch(`${url}/_leporello/receipts`)).json();
    const { receipts } = answer as { receipts: readonly Receipt[] };
    expect(receipts.length).toBe(1);
    return receipts[0]!;
  });
}

describe.each(formats)('the receipt of a %s stream', (format) => {
  /** Streams of these formats report the tokens of the prompt before their end. */
  const reportsEarly = format === 'messages' || format === 'gemini';

  it('that the client left says so, and has the usage and the cost that the provider had reported', async () => {
    await using stack = await startStack([hangs], settings);
    await leaveEarly(stack, format);
    const { cutOff, problem, usage, rounds, money, prompt } = await newestReceipt(stack);
    expect([cutOff, problem]).toEqual(['client left', undefined]);
    const input = usage?.input ?? 0;
    expect([
      input > 0,
      rounds.length,
      (money?.paid.total ?? 0) >= input / 100_000 && money !== undefined,
    ]).toEqual(reportsEarly ? [true, 1, true] : [false, 0, false]);
    // A report in the middle of a reply may be preliminary, so it corrects no count.
    expect(prompt).toBe(undefined);
    expect(stack.logged.filter((line) => line.startsWith('the client left'))).toHaveLength(1);
  });

  it('that the client left after a recall has both rounds, as far as they were reported', async () => {
    await using stack = await startStack([recall, hangs], settings);
    await leaveEarly(stack, format);
    const { cutOff, rounds, usage, prompt, recalls } = await newestReceipt(stack);
    expect([cutOff, recalls.length, rounds[0], rounds.length]).toEqual([
      'client left',
      1,
      { input: 1_000, cacheRead: 0, cacheWrite: 0, output: 20 },
      reportsEarly ? 2 : 1,
    ]);
    expect(usage?.input).toBe(rounds.reduce((sum, { input }) => sum + input, 0));
    expect(prompt?.reported).toBe(1_000);
  });

  it('that the provider broke off says so', async () => {
    await using stack = await startStack([{ type: 'cut', afterEvents: 6, parts }], settings);
    const response = await postStream(stack.url, format);
    await expect(response.text()).rejects.toThrow();
    const { cutOff, problem, usage } = await newestReceipt(stack);
    expect([cutOff, problem, usage !== undefined]).toEqual([
      'broke off',
      'the response broke off',
      reportsEarly,
    ]);
  });

  it('of which no byte came before the client left says so', async () => {
    await using stack = await startStack([{ type: 'hang' }], settings);
    const leaving = new AbortController();
    const { path, streamPath, stream } = shapes[format];
    const asked = fetch(stack.url + (streamPath ?? path), {
      method: 'POST',
      body: requestBody(format, stream),
      signal: leaving.signal,
    });
    await eventually(() => expect(stack.provider.requests.length).toBe(1));
    leaving.abort();
    await expect(asked).rejects.toThrow();
    expect((await newestReceipt(stack)).cutOff).toBe('client left');
  });

  it('that was read to its end has no such mark', async () => {
    await using stack = await startStack([{ type: 'turn', parts }], settings);
    await (await postStream(stack.url, format)).text();
    expect((await newestReceipt(stack)).cutOff).toBe(undefined);
  });
});
