import { expect, it } from 'vitest';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { openShadowNotes, type RequestComparison } from './shadow.ts';

const open = (store = inMemoryStore()) =>
  openShadowNotes(createEncryptedStore({ store, secret: new Uint8Array(32).fill(7) }));

const agreement = { folded: true, whole: true, cross: 0 };

/** A comparison in which the folded replies agree with each other, and never with the whole ones. */
const harmful = (at: number, strategies = 'offload-results'): RequestComparison => ({
  unit: `place ${at}`,
  lastAt: at,
  model: 'a model',
  strategies,
  settings: 'settings',
  conversation: `conversation ${at}`,
  isFirst: true,
  probability: 0.1,
  agreements: { tool: agreement, target: agreement, arguments: agreement },
  recalls: 0,
});

it('a verdict is looked for after each of the first comparisons, and more seldom later', async () => {
  const notes = open();
  const looked: number[] = [];
  for (let at = 1; at <= 220; at++) {
    const state = await notes.compared('tenant', harmful(at));
    if (state !== undefined) looked.push(at);
    if (at < 50) expect(state).toBe('too few');
    if (at === 50) expect(state).toBe('harm shown');
  }
  const each = Array.from({ length: 51 }, (_, at) => at + 1);
  expect(looked.slice(0, 51)).toEqual(each);
  // Above 50 after two, above 200 after five: two in a hundred of those at the last look.
  expect(looked.slice(51, 54)).toEqual([53, 55, 57]);
  expect(looked.slice(-3)).toEqual([209, 214, 219]);
  expect(await notes.compared('tenant', harmful(300, 'summarize-history'))).toBe('too few');
});

it('folds are harmless from the newest verdict on, under the same settings, for every gateway', async () => {
  const store = inMemoryStore();
  const [one, other] = [open(store), open(store)];
  const safeIn = async (settings: string) => (await open(store).verdicts('tenant', settings, 0)).safe;
  await one.judge('tenant', harmful(1), 'safe', 1_000, false);
  expect(await safeIn('settings')).toEqual([{ model: 'a model', strategies: 'offload-results' }]);
  expect(await safeIn('other settings')).toEqual([]);
  await other.judge('tenant', harmful(1), 'not shown', 2_000, false);
  expect(await safeIn('settings')).toEqual([]);
  await one.judge('tenant', harmful(1), 'safe', 3_000, false);
  expect(await safeIn('settings')).toHaveLength(1);
  await other.judge('tenant', harmful(1), 'harm shown', 4_000, true);
  expect(await open(store).verdicts('tenant', 'settings', 5_000)).toEqual({
    safe: [],
    holds: [{ model: 'a model', strategies: 'offload-results', until: 4_000 + 7 * 24 * 60 * 60 * 1_000 }],
  });
});
