/** Tests compressed requests: they are folded like all others, and unchanged ones are sent with their original bytes. */
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { Receipt } from '../../src/receipts/receipt.ts';
import type { Reply } from '../support/fake-provider/script.ts';
import { formats, longBody, post, requestBody } from './bodies.ts';
import { offering, type Stack, startStack } from './stack.ts';

const hello: Reply = { type: 'turn', parts: [{ type: 'text', text: 'Hello.' }] };
const small = { models: { '*': { windowTokens: 12_000 } } };
const codings: readonly [string, (body: string) => Uint8Array<ArrayBuffer>][] = [
  ['gzip', (body) => new Uint8Array(gzipSync(body))],
  ['br', (body) => new Uint8Array(brotliCompressSync(body))],
  ['zstd', (body) => new Uint8Array(zstdCompressSync(body))],
  ['deflate', (body) => new Uint8Array(deflateSync(body))],
  ['Identity', (body) => new Uint8Array(Buffer.from(body))],
];

function sent({ provider }: Stack, at = -1) {
  const { body, headers } = provider.requests.at(at)!;
  return { body, coding: headers.find(([name]) => name === 'content-encoding')?.[1] };
}

async function newestReceipt({ url }: Stack): Promise<Receipt> {
  const response = await fetch(`${url}/_leporello/receipts`, { headers: { authorization: 'Bearer dummy' } });
  return ((await response.json()) as { receipts: Receipt[] }).receipts[0]!;
}

describe.each(formats)('a compressed %s request', (format) => {
  it.each(codings)('is folded as without %s, and sent uncompressed', async (coding, pack) => {
    await using stack = await startStack(() => hello, small);
    const body = longBody(format, 30);
    const packed = await post(stack.url, format, pack(body), { 'content-encoding': coding });
    expect([packed.status, packed.headers.get('x-leporello-outcome')]).toEqual([200, 'compacted']);
    await post(stack.url, format, body);
    expect(sent(stack, 0)).toEqual({ body: sent(stack, 1).body, coding: undefined });
    expect(sent(stack).body.length).toBeLessThan(body.length / 2);
  });

  it.each(codings)('with nothing to fold is sent with its original %s bytes', async (coding, pack) => {
    await using stack = await startStack(() => hello, { offerRecall: 'never' });
    const wire = pack(requestBody(format));
    await post(stack.url, format, wire, { 'content-encoding': coding });
    expect(Buffer.from(sent(stack).body).equals(wire)).toBe(true);
    expect(sent(stack).coding).toBe(coding);
    expect(await newestReceipt(stack)).toMatchObject({
      outcome: { status: 'untouched', reason: 'no trigger fired' },
    });
  });

  it('that cannot be decompressed is sent unchanged, and the receipt says why', async () => {
    await using stack = await startStack(() => hello);
    const body = requestBody(format);
    const twice = new Uint8Array(brotliCompressSync(gzipSync(body)));
    const cases: readonly [string, Uint8Array<ArrayBuffer>, string][] = [
      [
        'gzip',
        new Uint8Array(Buffer.from(body)),
        'the body cannot be decompressed with its content-encoding (gzip): correct or remove that header',
      ],
      ['compress', new Uint8Array([1, 2, 3]), 'the gateway cannot read this content-encoding (compress)'],
      ['gzip, br', twice, 'the body is compressed more than once (gzip, br)'],
    ];
    for (const [coding, wire, reason] of cases) {
      await post(stack.url, format, wire, { 'content-encoding': coding });
      expect([sent(stack).coding, Buffer.from(sent(stack).body).equals(wire)]).toEqual([coding, true]);
      expect(await newestReceipt(stack)).toMatchObject({ outcome: { status: 'untouched', reason } });
    }
  });

  it('that is too large when decompressed is answered 413 and not sent', async () => {
    await using stack = await startStack(() => hello, { maxBodyBytes: 100_000 });
    const bomb = new Uint8Array(gzipSync(new Uint8Array(1024 * 1024)));
    const response = await post(stack.url, format, bomb, { 'content-encoding': 'gzip' });
    expect([response.status, stack.provider.requests.length]).toEqual([413, 0]);
  });

  it('that the provider refuses when folded is sent again with its original bytes', async () => {
    const wire = new Uint8Array(gzipSync(longBody(format, 30)));
    await using stack = await startStack(
      () => ({ type: 'error', status: 400, body: { error: { message: 'messages: something is odd' } } }),
      { triggers: { tokenBudget: { triggerTokens: 20_000, targetTokens: 10_000 } } },
    );
    await post(stack.url, format, wire, { 'content-encoding': 'gzip' });
    expect(stack.provider.requests.map(({ headers }) => new Map(headers).get('content-encoding'))).toEqual([
      undefined,
      'gzip',
    ]);
    expect(Buffer.from(sent(stack).body).equals(wire)).toBe(true);
  });
});

it('a recall in the reply to a compressed request is answered in an uncompressed request', async () => {
  const recall = { type: 'tool-call', name: 'read_memory', arguments: { id: 'mem_0' } } as const;
  await using stack = await startStack([{ type: 'turn', parts: [recall] }, hello], offering);
  const wire = new Uint8Array(zstdCompressSync(requestBody('messages')));
  const response = await post(stack.url, 'messages', wire, { 'content-encoding': 'zstd' });
  expect(await response.text()).toContain('Hello.');
  expect([sent(stack, 0).coding, sent(stack, 1).coding]).toEqual([undefined, undefined]);
});
