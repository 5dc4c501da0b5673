import { expect, it } from 'vitest';
import { passThrough } from '../../engine/types.ts';
import { receiptArchive } from './archive.ts';
import type { AnyReceipt, ReceiptSource } from './receipts.ts';

/** Archives a receipt of a request that another thread has prepared, and returns the questions to that thread. */
async function questions(source: Partial<ReceiptSource>, summary?: object): Promise<readonly string[]> {
  const asked: string[] = [];
  const archive = receiptArchive();
  const prepared = {
    ...passThrough(new Uint8Array(), { status: 'compacted' }),
    ...(summary && ({ summary } as object)),
    detail: async () => void asked.push('detail'),
    release: () => void asked.push('release'),
  } as ReceiptSource['prepared'];
  const receipt = { kind: 'request', id: 'receipt', recalls: [], bytesBefore: 0, bytesAfter: 0 };
  archive.add('tenant', receipt as unknown as AnyReceipt, {
    prepared,
    asked: [],
    reply: undefined,
    request: undefined,
    resender: undefined,
    ...source,
  });
  await archive.close();
  return asked;
}

it('a request is released once its detail is known', async () => {
  expect(await questions({})).toEqual(['detail', 'release']);
});

it('a request that an experiment or a summary still needs is not released', async () => {
  const request = { body: new Uint8Array() } as unknown as ReceiptSource['request'];
  expect(await questions({ request })).toEqual(['detail']);
  expect(await questions({}, { key: 'summary' })).toEqual(['detail']);
});
