/** Tests functions of the embedding program that throw: no reply may depend on a log, on metrics or on `onReceipt`, and an upstream that fails is no fault of ours. */
import { expect, it } from 'vitest';
import { codecs, served, words } from '../../test/support/served-reply.ts';
import type { GatewayDeps } from './app.ts';

const fail = (): never => {
  throw new Error('broken');
};
/** An async function, which types without lint let through where nothing is awaited. */
const failLater = (() => Promise.reject(new Error('broken'))) as () => unknown as typeof fail;

const throwing = (work: () => never): Partial<GatewayDeps> => ({
  log: { info: work, warn: work },
  metrics: {
    requestEnded: work,
    summaryEnded: work,
    shadowEnded: work,
    notesLost: work,
    storeCalled: work,
    page: fail,
  },
  onReceipt: work,
});

it.each([
  ['throw', false, fail],
  ['throw', true, fail],
  ['reject', false, failLater],
  ['reject', true, failLater],
] as const)('functions that %s leave the reply as it is; streamed: %s', async (_, streamed, work) => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', note);
  const [[codec, fixture]] = codecs;
  // The codec's error is logged.
  const unreadable = { ...codec, readResponse: fail, openStream: fail };
  for (const one of streamed ? [codec] : [codec, unreadable]) {
    const { status, text, provider } = await served(one, fixture, {
      streamed,
      parts: [words],
      deps: throwing(work),
    });
    expect([status, text]).toEqual([200, provider]);
  }
  await new Promise(setImmediate);
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});

it('an upstream of the program that throws any error is reported as one that could not be reached', async () => {
  const [[codec, fixture]] = codecs;
  const upstream = { send: () => Promise.reject(new TypeError('no route')), close: () => Promise.resolve() };
  const { status, text, logged } = await served(codec, fixture, {
    streamed: false,
    parts: [words],
    deps: { upstream },
  });
  expect([status, logged]).toEqual([502, []]);
  expect(text).toContain('could not be reached, or the connection broke (TypeError)');
});
