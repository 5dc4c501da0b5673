/**
 * Tests that notes about ended requests do not fill the memory while the store takes none: requests are served, a bounded number of notes waits, all
 * others are counted as lost in `/metrics`, and a conversation with a lost note is left out of the costs of the holdout.
 */
import { expect, it } from 'vitest';
import { createJournal, trialJournal } from '../../src/experiment/journal.ts';
import type { ExperimentResults } from '../../src/experiment/spell.ts';
import type { GatewaySettings } from '../../src/gateway/app.ts';
import { receiptArchive } from '../../src/gateway/receipts/archive.ts';
import { createEncryptedStore } from '../../src/store/encrypted-store.ts';
import { inMemoryStore } from '../../src/store/in-memory.ts';
import type { Store } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import type { Script } from '../support/fake-provider/script.ts';
import { longBody, post } from './bodies.ts';
import { foldingEarly, startStack } from './stack.ts';

const settings: GatewaySettings = {
  ...foldingEarly,
  usdPerMillionTokens: { '*': { input: 10, cacheRead: 1, cacheWrite: 12.5, output: 50 } },
};

const script: Script = () => ({
  type: 'turn',
  parts: [{ type: 'text', text: 'Done.' }],
  usage: { input: 1_000, cacheRead: 0, cacheWrite: 0, output: 10 },
});

const secret = new Uint8Array(32).fill(9);

/** Requests that are sent while the store takes no note, and notes of each kind that may wait. */
const requests = 230;
const maxWaiting = 200;

/** A store whose writes of notes wait, from `close` on until `open` of what it returns. Folds are written all the same. */
function gatedStore() {
  const working = inMemoryStore();
  let gate: PromiseWithResolvers<void> | undefined;
  const isNote = (key: string) => /\/(?:experiment|receipts?)\b/.test(key);
  const store: Store = {
    ...working,
    async putMany(entries) {
      if (entries.some(({ key }) => isNote(key))) await gate?.promise;
      return working.putMany(entries);
    },
    async putUnless(guards, entries) {
      if (entries.some(({ key }) => isNote(key))) await gate?.promise;
      return working.putUnless(guards, entries);
    },
  };
  return {
    store,
    close() {
      const own = Promise.withResolvers<void>();
      gate = own;
      return { open: own.resolve, [Symbol.dispose]: own.resolve };
    },
  };
}

async function lostIn(url: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const found = text.matchAll(/^leporello_notes_lost_total\{kind="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...found].map(([, kind, count]) => [kind!, Number(count)]));
}

async function resultsOf(url: string): Promise<ExperimentResults> {
  return (await (await fetch(`${url}/_leporello/experiment`)).json()) as ExperimentResults;
}

/** Sends one request of each of these conversations. All are large enough to be folded. */
async function ask(url: string, conversations: readonly number[], jobs = 12): Promise<void> {
  for (const at of conversations) {
    const body = longBody('messages', jobs).replace('Run all jobs.', `Conversation ${at}.`);
    const response = await post(url, 'messages', body);
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('Done.');
  }
}

const conversations = Array.from({ length: requests }, (_, at) => at);

it('receipts and notes of a holdout wait up to their bounds, and the others are counted', async () => {
  const gated = gatedStore();
  const experiment = { holdout: 0.5 };
  const deps = { store: gated.store, secret, archive: receiptArchive({ groupMs: 20 }) };
  await using stack = await startStack(script, { ...settings, experiment }, deps);
  // The notes that wait are let in at the end, also when the test fails.
  using closed = gated.close();
  await ask(stack.url, conversations);
  const lost = requests - maxWaiting;
  expect(await lostIn(stack.url)).toEqual({ receipt: lost, holdout: lost, shadow: 0 });

  closed.open();
  const journal = createJournal(createEncryptedStore({ store: gated.store, secret }), trialJournal);
  await eventually(async () => expect(await journal.list('local')).toHaveLength(maxWaiting));
  await eventually(async () => expect(await deps.archive.list('local', 1_000)).toHaveLength(maxWaiting));

  // The next request of each conversation says which of them have lost a note: their cost is unknown.
  for (const [from, to] of [
    [0, 115],
    [115, requests],
  ] as const) {
    await ask(stack.url, conversations.slice(from, to), 13);
    await eventually(async () => {
      const noted = (await journal.list('local')).reduce((sum, record) => sum + record.requests, 0);
      expect(noted).toBe(maxWaiting + to);
    });
  }
  await eventually(async () => {
    const records = await journal.list('local');
    expect(records).toHaveLength(requests);
    const known = records.filter(({ unpriced }) => unpriced === 0);
    expect(known).toHaveLength(maxWaiting);
    expect(new Set(known.map((record) => record.requests))).toEqual(new Set([2]));
    expect(records.every(({ unpriced }) => unpriced <= 1)).toBe(true);
  });
  expect(await lostIn(stack.url)).toEqual({ receipt: lost, holdout: lost, shadow: 0 });
});

it('a conversation whose last note was lost is left out, too', async () => {
  const gated = gatedStore();
  await using stack = await startStack(
    script,
    { ...settings, experiment: { holdout: 0.5 } },
    { store: gated.store, secret },
  );
  await ask(stack.url, [-1]);
  const journal = createJournal(createEncryptedStore({ store: gated.store, secret }), trialJournal);
  await eventually(async () => expect(await journal.list('local')).toHaveLength(1));
  // The notes that wait are let in at the end, also when the test fails.
  using closed = gated.close();
  await ask(stack.url, conversations.slice(0, maxWaiting));
  await ask(stack.url, [-1], 13);
  expect((await lostIn(stack.url))['holdout']).toBe(1);
  closed.open();
  await eventually(async () => {
    const records = await journal.list('local');
    expect(records).toHaveLength(maxWaiting + 1);
    expect(records.filter(({ unpriced }) => unpriced === 1)).toMatchObject([{ requests: 1 }]);
  });
});

it('notes of a shadow about requests that were not compared wait up to their bound', async () => {
  const gated = gatedStore();
  const shadow = { share: 1, usdPerDay: 0.001, billShare: 1 };
  await using stack = await startStack(
    script,
    { ...settings, experiment: { shadow } },
    { store: gated.store, secret },
  );
  await ask(stack.url, [-1]);
  await eventually(async () => expect((await resultsOf(stack.url)).shadows).toHaveLength(1));
  // The notes that wait are let in at the end, also when the test fails.
  using closed = gated.close();
  await ask(stack.url, conversations);
  // The first of them began a comparison, whose note waits as well.
  await eventually(async () =>
    expect((await lostIn(stack.url))['shadow']).toBeGreaterThanOrEqual(requests - maxWaiting - 5),
  );
  const { shadow: lost = 0 } = await lostIn(stack.url);
  closed.open();
  await eventually(async () => {
    const [report] = (await resultsOf(stack.url)).shadows;
    const noted = Object.values(report!.tally.dropped).reduce((sum, count) => sum + count, 0);
    expect(noted + lost).toBe(requests + 1);
  });
});
