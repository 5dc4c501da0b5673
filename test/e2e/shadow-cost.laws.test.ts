/**
 * Proves on whole gateways that repeated requests cost no more than the cap, whatever fails and whoever sends at the same time: the scripted provider adds up
 * what it bills for them.
 */
import { expect, it } from 'vitest';
import type { GatewaySettings } from '../../src/gateway/app.ts';
import { createBudget } from '../../src/experiment/budget.ts';
import type { ExperimentResults } from '../../src/experiment/spell.ts';
import { createEncryptedStore } from '../../src/store/encrypted-store.ts';
import { inMemoryStore } from '../../src/store/in-memory.ts';
import { randomFrom } from '../experiments/scripted.ts';
import type { Reply, Script } from '../support/fake-provider/script.ts';
import { longBody, postStream } from './bodies.ts';
import { foldingEarly, startStack } from './stack.ts';

const price = { input: 10, cacheRead: 1, cacheWrite: 12.5, output: 50 };
const usdPerDay = 0.3;

const settings: GatewaySettings = {
  ...foldingEarly,
  usdPerMillionTokens: { '*': price },
  experiment: { shadow: { share: 1, usdPerDay, billShare: 1 } },
};

/** Characters of the longest request that is served, folded or small. */
const foldedLength = 26_000;

it.each([
  [1, false],
  [2, false],
  [3, true],
  [4, true],
] as const)(
  'two gateways never spend more than the cap together (seed %i, breaks: %s)',
  async (seed, breaks) => {
    const random = randomFrom(seed);
    const seen = new Set<string>();
    /** USD that the provider bills for repeated requests. */
    let billed = 0;
    const script: Script = ({ body }): Reply => {
      const text = JSON.stringify(body);
      // A folded request comes again with the same bytes; the whole one is longer than any that is served.
      const isRepeated = seen.has(text) || text.length > foldedLength;
      seen.add(text);
      const draw = random();
      // The prompt decides the tokens, as it does with a real provider; the reply is as long as it likes, up to its limit.
      const usage = {
        input: Math.ceil(text.length / 30),
        cacheRead: 0,
        cacheWrite: 0,
        output: Math.ceil(random() * 100),
      };
      const parts = [{ type: 'text', text: 'Done with all of it.' }] as const;
      if (isRepeated && draw < 0.1) return { type: 'error', status: 500 };
      if (isRepeated) billed += (usage.input * price.input + usage.output * price.output) / 1e6;
      if (!isRepeated || draw > (breaks ? 0.25 : 0)) return { type: 'turn', parts, usage };
      // A reply that breaks off is billed, but nobody learns its usage.
      return { type: 'cut', afterEvents: 3, parts };
    };
    const store = inMemoryStore();
    const secret = new Uint8Array(32).fill(9);
    await using stack = await startStack(script, settings, { store, secret });
    const urls = [stack.url, await stack.another()];
    for (let batch = 0; batch < 40; batch++) {
      const texts = await Promise.all(
        [0, 1, 2, 3].map(async (at) => {
          const { messages } = JSON.parse(
            longBody('messages', batch < 15 ? 6 : 12).replace('Run all jobs.', `Job ${batch} ${at}`),
          );
          const response = await postStream(urls[at % 2]!, 'messages', { messages });
          return response.text().catch(() => '');
        }),
      );
      expect(texts).toHaveLength(4);
    }
    // Nothing is in progress any more.
    for (let count = -1; count !== stack.provider.requests.length; ) {
      count = stack.provider.requests.length;
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
    const { shadows } = (await (await fetch(`${urls[0]}/_leporello/experiment`)).json()) as ExperimentResults;
    const tallied = shadows.reduce((sum, { tally }) => sum + tally.usd, 0);
    const compared = shadows.reduce((sum, { levels }) => sum + levels.target.first.samples, 0);
    const dropped = shadows.flatMap(({ tally }) => Object.keys(tally.dropped));
    const budget = createBudget({
      encryptedStore: createEncryptedStore({ store, secret }),
      usdPerDay,
      clock: Date.now,
    });
    const taken = await budget.today('local');
    expect(compared).toBeGreaterThan(0);
    expect(taken).toBeLessThanOrEqual(usdPerDay);
    expect(tallied).toBeCloseTo(taken, 6);
    expect(billed).toBeLessThanOrEqual(taken + 1e-9);
    expect(dropped).toContain('the cap of the day might have been exceeded');
    // Without a reply of unknown usage, the cost is that of the provider to the billionth.
    if (!breaks) expect(taken).toBeCloseTo(billed, 8);
  },
);
