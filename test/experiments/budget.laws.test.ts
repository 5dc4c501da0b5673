/** Proves that gateways on one store never spend more on measuring than the cap, whatever they do at the same time and wherever they crash. */
import { describe, expect, it } from 'vitest';
import { createBudget, type MeasuringBudget } from '../../src/experiment/budget.ts';
import { createEncryptedStore } from '../../src/store/encrypted-store.ts';
import { inMemoryStore } from '../../src/store/in-memory.ts';
import type { Store } from '../../src/store/store.ts';
import { LeporelloError } from '../../src/errors.ts';
import { randomFrom } from './scripted.ts';

const secret = new Uint8Array(32).fill(7);
const usdPerDay = 1;
const day = 20_000 * 24 * 60 * 60 * 1_000;

function gatewayOn(store: Store, clock = () => day): MeasuringBudget {
  return createBudget({ encryptedStore: createEncryptedStore({ store, secret }), usdPerDay, clock });
}

/** Fails some calls, before or after the store has carried them out: a caller cannot tell which. */
function unreliable(store: Store, random: () => number): Store {
  async function maybe<T>(work: () => Promise<T>): Promise<T> {
    const draw = random();
    if (draw < 0.1) throw new LeporelloError('store-failed', 'not carried out');
    const answer = await work();
    if (draw < 0.2) throw new LeporelloError('deadline', 'carried out, but not answered');
    return answer;
  }
  return {
    ...store,
    getMany: (keys) => maybe(() => store.getMany(keys)),
    putUnless: (guards, entries) => maybe(() => store.putUnless(guards, entries)),
  };
}

/** Runs some gateways at once. Returns what was really spent, in billionths, at its highest. */
async function spendAtOnce(seed: number): Promise<{ readonly spent: number; readonly sent: number }> {
  const random = randomFrom(seed);
  const store = inMemoryStore();
  let spent = 0;
  let sent = 0;
  async function gateway(): Promise<void> {
    let budget = gatewayOn(unreliable(store, random));
    for (let round = 0; round < 12; round++) {
      const reserved = Math.ceil(random() * 0.2 * 1e9) / 1e9;
      const reservation = await budget.reserve('one', reserved).catch(() => undefined);
      if (!reservation) continue;
      sent += 1;
      const cost = Math.floor(random() * reserved * 1e9) / 1e9;
      spent += cost;
      expect(spent).toBeLessThanOrEqual(usdPerDay + 1e-9);
      // A gateway that crashes never settles, and starts again with what is stored.
      if (random() < 0.2) budget = gatewayOn(unreliable(store, random));
      else await reservation.settle(cost);
    }
  }
  await Promise.all([gateway(), gateway(), gateway()]);
  expect(await gatewayOn(store).today('one')).toBeGreaterThanOrEqual(spent - 1e-9);
  expect(await gatewayOn(store).today('one')).toBeLessThanOrEqual(usdPerDay);
  return { spent, sent };
}

describe('the budget of measuring', () => {
  it('is never exceeded by concurrent gateways, crashes and a store that fails', async () => {
    let sent = 0;
    for (let seed = 1; seed <= 100; seed++) sent += (await spendAtOnce(seed)).sent;
    expect(sent).toBeGreaterThan(1_000);
  });

  it('gives back what a reservation did not cost, to every gateway', async () => {
    const store = inMemoryStore();
    const [one, other] = [gatewayOn(store), gatewayOn(store)];
    const reservation = await one.reserve('one', 0.9);
    expect(await other.reserve('one', 0.2)).toBeUndefined();
    await reservation!.settle(0.1);
    expect(await other.reserve('one', 0.9)).toBeDefined();
    expect(await one.reserve('one', 0.01)).toBeUndefined();
    expect(await one.reserve('another', 0.9)).toBeDefined();
    expect(await one.today('one')).toBe(1);
  });

  it('counts what was reserved before a crash as spent, until the next day', async () => {
    const store = inMemoryStore();
    expect(await gatewayOn(store).reserve('one', 0.9)).toBeDefined();
    expect(await gatewayOn(store).reserve('one', 0.2)).toBeUndefined();
    const tomorrow = gatewayOn(store, () => day + 24 * 60 * 60 * 1_000);
    expect(await tomorrow.reserve('one', 0.2)).toBeDefined();
  });

  it('finds the end of a long list after a start', async () => {
    const store = inMemoryStore();
    const before = gatewayOn(store);
    for (let at = 0; at < 500; at++) await (await before.reserve('one', 0.002))!.settle(0.001);
    expect(await gatewayOn(store).today('one')).toBeCloseTo(0.5, 9);
  });

  it('settles a reservation once', async () => {
    const budget = gatewayOn(inMemoryStore());
    const reservation = await budget.reserve('one', 0.5);
    await reservation!.settle(0.25);
    await reservation!.settle(0);
    expect(await budget.today('one')).toBe(0.25);
  });
});
