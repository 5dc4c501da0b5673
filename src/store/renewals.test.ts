import { describe, expect, it } from 'vitest';
import { LeporelloError } from '../errors.ts';
import { createRenewals } from './records.ts';

const day = 24 * 60 * 60 * 1_000;

/** Renewals with a store that records its calls, at times that the test sets. */
function renewing({ fails = false } = {}) {
  let now = 100 * day;
  const touched: string[] = [];
  const state = { fails };
  const store = {
    touch(keys: readonly string[], expiresAt: number) {
      touched.push(`${keys.join(' ')} until day ${expiresAt / day}`);
      return state.fails ? Promise.reject(new LeporelloError('store-failed', 'away')) : Promise.resolve();
    },
  };
  return {
    renewals: createRenewals(store, () => now),
    state,
    setDay: (to: number) => void (now = to * day),
    /** Returns the calls of the store since the last time. */
    async asked() {
      await new Promise((resolve) => setImmediate(resolve));
      return touched.splice(0);
    },
  };
}

describe('records in use', () => {
  it('are renewed once each, in one call per turn of the event loop', async () => {
    const { renewals, asked } = renewing();
    renewals.used('a', 30 * day);
    renewals.used('b', 30 * day, { along: () => ['b1', 'b2'] });
    renewals.used('a', 30 * day);
    expect(await asked()).toEqual(['a b b1 b2 until day 130']);
    renewals.used('a', 30 * day);
    expect(await asked()).toEqual([]);
  });

  it.each([
    ['a day', 30, 1],
    ['a tenth of their time', 5, 0.5],
  ])('are renewed again after %s', async (_, ttlDays, pause) => {
    const { renewals, setDay, asked } = renewing();
    renewals.written(['a']);
    renewals.used('b', ttlDays * day);
    expect(await asked()).toEqual([`b until day ${100 + ttlDays}`]);
    setDay(100 + pause - 0.01);
    renewals.used('a', ttlDays * day);
    renewals.used('b', ttlDays * day);
    expect(await asked()).toEqual([]);
    setDay(100 + pause);
    renewals.used('a', ttlDays * day);
    renewals.used('b', ttlDays * day);
    expect(await asked()).toEqual([`a b until day ${100 + pause + ttlDays}`]);
  });

  it('are not renewed if another process wrote them a moment ago', async () => {
    const { renewals, setDay, asked } = renewing();
    renewals.used('a', 30 * day, { writtenAt: 99.5 * day });
    expect(await asked()).toEqual([]);
    setDay(100.4);
    renewals.used('a', 30 * day);
    expect(await asked()).toEqual([]);
    setDay(100.5);
    renewals.used('a', 30 * day, { writtenAt: 99.5 * day });
    expect(await asked()).toEqual(['a until day 130.5']);
  });

  it('are renewed again after a minute if the store failed', async () => {
    const { renewals, state, setDay, asked } = renewing({ fails: true });
    const along = () => ['a1'];
    renewals.used('a', 30 * day, { along });
    expect(await asked()).toEqual(['a a1 until day 130']);
    state.fails = false;
    renewals.used('a', 30 * day, { along });
    expect(await asked()).toEqual([]);
    setDay(100 + 61_000 / day);
    renewals.used('a', 30 * day, { along });
    expect((await asked()).map((call) => call.split(' until')[0])).toEqual(['a a1']);
    renewals.used('a', 30 * day, { along });
    expect(await asked()).toEqual([]);
  });

  it('are renewed in pieces of 64 if there are many, so that each call ends within its deadline', async () => {
    const { renewals, asked } = renewing();
    renewals.used('a', 30 * day, { along: () => Array.from({ length: 99 }, (_, at) => `m${at}`) });
    const sizes = (await asked()).map((call) => call.split(' until')[0]!.split(' ').length);
    expect(sizes).toEqual([64, 36]);
  });

  it('are renewed in one call per retention', async () => {
    const { renewals, asked } = renewing();
    renewals.used('a', 30 * day);
    renewals.used('b', 10 * day);
    expect(await asked()).toEqual(['a until day 130', 'b until day 110']);
  });
});
