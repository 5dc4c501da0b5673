import { describe, expect, it } from 'vitest';
import type { Handler } from '../../gateway/http/http.ts';
import { type WrapSums, createWraps } from './wraps.ts';

const state = { version: '1', pid: 1 } as never;

/** Returns what a gateway with wraps answers to GET requests; `handler` answers those of the wrapped client. */
function gatewayWith(handler: Handler) {
  const wraps = createWraps({
    secret: new Uint8Array(32),
    state,
    allowedHosts: undefined,
    endsWithWraps: false,
    isRunning: () => true,
    // A test must not wait for receipts that never come.
    pauses: { first: 1, unnamed: 1, unused: 1, look: 1, receipts: 10 * 60_000 },
  });
  const serve = wraps.watched(handler);
  const { signal } = new AbortController();
  return {
    wraps,
    get: (target: string) => serve({ method: 'GET', target, headers: [], body: undefined, signal }),
  };
}

describe('a request of a wrapped client', () => {
  it('is passed on with its path as it is, however odd', async () => {
    const { get } = gatewayWith(async ({ target }) => ({
      status: 400,
      headers: [['x-target', target]],
      body: undefined,
    }));
    for (const path of ['//[', '//host/hold', '/v1/messages?a=1']) {
      const { status, headers } = await get(`/_leporello/wraps/w${path}`);
      expect([status, headers]).toEqual([400, [['x-target', path]]]);
    }
  });

  it('does not hold up the sums when its receipt never came and 1,000 others did', async () => {
    let requests = 0;
    const { wraps, get } = gatewayWith(async () => ({
      status: 200,
      headers: [['x-leporello-receipt', `r${requests++}`]],
      body: undefined,
    }));
    await get('/_leporello/wraps/w/hold?pid=1');
    const receipt = {
      kind: 'request',
      outcome: { status: 'untouched' },
      steps: [],
      recalls: [],
      compressions: [],
    };
    for (let at = 0; at <= 1_000; at++) {
      await get('/_leporello/wraps/w/v1/messages');
      if (at > 0) wraps.onReceipt({ ...receipt, id: `r${at}` } as never);
    }
    const { body } = await get('/_leporello/wraps/w');
    expect((JSON.parse(new TextDecoder().decode(body as Uint8Array)) as WrapSums).requests).toBe(1_000);
  });
});
