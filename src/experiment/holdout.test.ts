import { expect, it } from 'vitest';
import { chatBody } from '../../test/support/chat-conversation.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { createDefaultEngine } from '../library/default-engine.ts';
import { noUsage } from '../receipts/cost.ts';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { type EndedExchange, openHoldout } from './holdout.ts';
import { createJournal, trialJournal } from './journal.ts';

const triggers = { tokenBudget: { triggerTokens: 8_000, targetTokens: 3_000, bufferTokens: 1 } };

/** Opens an engine and a holdout on one store, and counts the bodies that are read and the records that are written. */
function openGateway() {
  const store = inMemoryStore();
  const counts = { reads: 0, writes: 0 };
  const watched: typeof store = {
    ...store,
    putMany(entries) {
      counts.writes += entries.filter(({ key }) => key.includes('experiment/units')).length;
      return store.putMany(entries);
    },
  };
  const encryptedStore = createEncryptedStore({ store: watched, secret: new Uint8Array(32).fill(7) });
  const codec: typeof openaiChat = {
    ...openaiChat,
    read: (...args) => ((counts.reads += 1), openaiChat.read(...args)),
  };
  return {
    counts,
    codec,
    engine: createDefaultEngine({ triggers, holdout: 0.5 }, encryptedStore),
    holdout: openHoldout({
      encryptedStore,
      rate: 0.5,
      capUsd: 10,
      settings: 'settings',
      clock: () => 0,
      lost: () => undefined,
    }),
    records: () => createJournal(encryptedStore, trialJournal).list('tenant'),
  };
}

const bill = { uncached: 0.01, cacheRead: 0, cacheWrite: 0, output: 0, total: 0.01 };
const money = { paid: bill, recalls: 0, fold: 0, untouched: bill, untouchedUsage: noUsage, net: 0 };

const resultOf = (at: number) =>
  Array.from({ length: 90 }, (_, line) => `job ${at}, ${line * 7919 + at} rows`).join('\n');

function bodyOf(conversation: number, turns: number): Uint8Array {
  const steps = Array.from({ length: turns }, (_, at) => ({
    calls: [{ name: 'run', input: `{"n":${at % 11}}`, result: resultOf(at) }],
  }));
  return chatBody([{ user: `Run all jobs of ${conversation}.` }, ...steps], {
    tools: ['run'],
    model: 'gpt-4o',
  });
}

/** Calls a function in a runtime whose timers are numbers, as those of browsers are. */
function withNumbersAsTimers(call: () => void): void {
  const { setTimeout: own } = globalThis;
  globalThis.setTimeout = ((run: () => void, ms: number) => Number(own(run, ms))) as never;
  try {
    call();
  } finally {
    globalThis.setTimeout = own;
  }
}

it('notes many requests with one write, and reads none of their bodies again, in every runtime', async () => {
  const { counts, codec, engine, holdout, records } = openGateway();
  const ended: EndedExchange[] = [];
  for (const turns of [10, 11, 12]) {
    for (let conversation = 0; conversation < 20; conversation++) {
      const request = { codec, body: bodyOf(conversation, turns), tenant: 'tenant' };
      const prepared = await engine.prepare(request);
      const { report, outcome } = prepared;
      const receipt = {
        ...report,
        kind: 'request' as const,
        id: `receipt ${conversation} ${turns}`,
        at: turns,
        path: '/',
        outcome,
        session: undefined,
        upstreamStatus: 200,
        recalls: [],
        prompt: undefined,
        usage: undefined,
        rounds: [],
        money: turns === 12 ? undefined : money,
        problem: undefined,
        ms: { prepare: 1, total: 1 },
      };
      ended.push({ receipt, request, prepared });
    }
  }
  const { reads } = counts;
  withNumbersAsTimers(() => {
    for (const exchange of ended) holdout.note(exchange);
  });
  expect(counts.writes).toBe(0);
  await holdout.report('tenant');
  expect(counts).toEqual({ reads, writes: 1 });
  const noted = await records();
  expect(noted).toHaveLength(20);
  expect(new Set(noted.map(({ isControl }) => isControl))).toEqual(new Set([true, false]));
  for (const record of noted) {
    expect(record).toMatchObject({
      firstAt: 10,
      lastAt: 12,
      usd: 0.02,
      requests: 3,
      unpriced: 1,
      recalls: 0,
    });
    // Counted from the message on at which the arms parted: the twelfth call repeats the first.
    expect(record.counts).toMatchObject({ toolCalls: 2, refetches: 1 });
    expect(record.foldedTokens > 0).toBe(!record.isControl);
  }
});
