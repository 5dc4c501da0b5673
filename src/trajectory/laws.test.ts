/** Properties of every trajectory, for any actions, any summarizer, and with or without waiting. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inMemoryStore } from '../store/in-memory.ts';
import type { Store } from '../store/store.ts';
import type { Compression } from '../receipts/receipt.ts';
import type { Summarizer, SummaryRequest, SummaryStep } from '../outline/summarizer.ts';
import { loadTokenCounter } from '../tokens/load-counter.ts';
import type { HierarchyOptions } from './fold.ts';
import type { Action } from './state.ts';
import { openTrajectory, type Trajectory } from './trajectory.ts';

const counter = await loadTokenCounter('gpt-4o');
const secret = new Uint8Array(32).fill(3);

type Step =
  | { readonly do: 'start'; readonly goal: string }
  | { readonly do: 'add'; readonly action: Action }
  | { readonly do: 'complete'; readonly outcome: string | undefined }
  | { readonly do: 'wait' };

const words = fc.array(
  fc.constantFrom('src/auth.ts', 'failed', '42', 'token', 'é', '{"a":1}', 'x'.repeat(40)),
  {
    maxLength: 12,
  },
);
const nasty = fc.oneof(
  words.map((all) => all.join(' ')),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.tuple(words, fc.nat(400)).map(([all, times]) => `${all.join(' ')}\n`.repeat(times)),
  fc.nat(9_000).map((length) => '汉🙂'.repeat(length / 2)),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: nasty.map((goal) => ({ do: 'start' as const, goal })) },
  {
    weight: 12,
    arbitrary: fc
      .record({ action: nasty, observation: nasty })
      .map((action) => ({ do: 'add' as const, action })),
  },
  {
    weight: 2,
    arbitrary: fc.option(nasty, { nil: undefined }).map((outcome) => ({ do: 'complete' as const, outcome })),
  },
  { weight: 3, arbitrary: fc.constant({ do: 'wait' as const }) },
);
const steps = fc.array(step, { maxLength: 80 });
const options: fc.Arbitrary<HierarchyOptions> = fc.record({
  preset: fc.constantFrom('production', 'debugging', 'long-horizon', 'cost'),
  ratio: fc.option(fc.oneof(fc.constant('adaptive' as const), fc.integer({ min: 2, max: 15 })), {
    nil: undefined,
  }),
  budgetTokens: fc.integer({ min: 1_000, max: 6_000 }),
  newestShare: fc.constantFrom(0, 0.25, 0.6),
  minActions: fc.constantFrom(0, 20),
});

function textOf(one: SummaryStep): string {
  return one.type === 'said' ? one.text : `${one.tool} ${one.input} ${one.result}`;
}

/** All but the first misbehave, each in a different way. */
const answers: Readonly<Record<string, (request: SummaryRequest) => Promise<string | undefined>>> = {
  obeys: async ({ steps: given, budget }) =>
    given
      .map(textOf)
      .join(' ')
      .slice(0, budget.aim * 3),
  fails: () => Promise.reject(new Error('no connection')),
  'says nothing': async () => ' \n',
  'has nothing to say': async () => undefined,
  'says too much': async ({ steps: given }) => given.map(textOf).join('\n').repeat(3),
  'says too little': async () => 'ok',
  'tells its own trouble': async () => '{"error":{"message":"overloaded"}}',
  'throws at once': () => {
    throw new Error('a bug');
  },
  'gives no text': async () => ({}) as unknown as string,
};
const summarizer = fc.constantFrom(undefined, ...Object.keys(answers));

function summarizerOf(how: string | undefined, asked: SummaryRequest[] = []): { summarizer?: Summarizer } {
  if (how === undefined) return {};
  return {
    summarizer: {
      name: how,
      summarize(request) {
        asked.push(request);
        return answers[how]!(request);
      },
    },
  };
}

async function take(trajectory: Trajectory, one: Step): Promise<void> {
  if (one.do === 'start') trajectory.startSubgoal(one.goal);
  else if (one.do === 'add') trajectory.addAction(one.action);
  else if (one.do === 'complete') void trajectory.completeSubgoal(one.outcome);
  else await trajectory.settled();
}

const goal = 'Mend the login';

describe('the context', () => {
  it('is under the budget and has alternating roles after every step', async () => {
    await fc.assert(
      fc.asyncProperty(steps, options, summarizer, async (all, settings, how) => {
        const trajectory = await openTrajectory({ goal, ...settings, ...summarizerOf(how), counter });
        for (const one of all) {
          await take(trajectory, one);
          const { messages, text, tokens } = trajectory.context();
          const counted = messages.map(({ content }) => counter.count(content) + counter.overhead.message);
          expect(counted.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(settings.budgetTokens!);
          expect(counter.count(text)).toBeLessThanOrEqual(settings.budgetTokens!);
          expect(tokens).toBeLessThanOrEqual(settings.budgetTokens!);
          const sides = messages.map(({ role }) => role);
          expect(sides).toEqual(sides.map((_, at) => (at % 2 === 0 ? 'user' : 'assistant')));
          expect(sides.length % 2).toBe(1);
          expect(messages.filter(({ content }) => content.trim() === '')).toEqual([]);
        }
        await trajectory.settled();
      }),
      { numRuns: 80, endOnFailure: true },
    );
  });

  it('is under the budget when the store fails, and loses nothing then', async () => {
    const broken: Store = {
      ...inMemoryStore(),
      putMany: () => Promise.reject(new Error('disk full')),
    };
    await fc.assert(
      fc.asyncProperty(steps, options, async (all, settings) => {
        const trajectory = await openTrajectory({ goal, ...settings, store: broken, secret, counter });
        const given = new Map<string, Action>();
        for (const one of all) {
          if (one.do === 'add') given.set(trajectory.addAction(one.action), one.action);
          else await take(trajectory, one);
          expect(trajectory.context().tokens).toBeLessThanOrEqual(settings.budgetTokens!);
        }
        await trajectory.settled();
        for (const [id, action] of given) {
          expect(await trajectory.record(id)).toEqual({ kind: 'action', id, ...action });
        }
      }),
      { numRuns: 25, endOnFailure: true },
    );
  });
});

describe('every action and every sub-goal', () => {
  it('can be read by its id, also by another process', async () => {
    await fc.assert(
      fc.asyncProperty(steps, options, summarizer, async (all, settings, how) => {
        const shared = { goal, ...settings, ...summarizerOf(how), counter, store: inMemoryStore(), secret };
        let trajectory = await openTrajectory(shared);
        const given = new Map<string, Action>();
        for (const [at, one] of all.entries()) {
          if (one.do === 'add') given.set(trajectory.addAction(one.action), one.action);
          else await take(trajectory, one);
          if (at % 10 < 9) continue;
          await trajectory.settled();
          const state = JSON.parse(JSON.stringify(trajectory.state())) as ReturnType<Trajectory['state']>;
          trajectory = await openTrajectory({ ...shared, state });
        }
        await trajectory.settled();
        const seen = new Set<string>();
        for (const [id, action] of given) {
          expect(await trajectory.record(id)).toEqual({ kind: 'action', id, ...action });
        }
        for (let number = 1; number <= trajectory.state().counts.s; number++) {
          const found = await trajectory.record(`s${number}`);
          if (found?.kind === 'subgoal') for (const { id } of found.actions) seen.add(id);
        }
        expect(seen).toEqual(new Set(given.keys()));
        expect(await trajectory.record(`a${given.size + 1}`)).toBeUndefined();
      }),
      { numRuns: 40, endOnFailure: true },
    );
  });
});

describe('summaries', () => {
  it('are smaller than the original, and at most 15:1', async () => {
    await fc.assert(
      fc.asyncProperty(steps, options, summarizer, async (all, settings, how) => {
        const made: Compression[] = [];
        const onCompression = (one: Compression) => made.push(one);
        const trajectory = await openTrajectory({
          goal,
          ...settings,
          ...summarizerOf(how),
          counter,
          onCompression,
        });
        for (const one of all) {
          await take(trajectory, one);
          await trajectory.settled();
        }
        expect(made.filter(({ ratio, target = 1 }) => ratio <= 1 || target > 15)).toEqual([]);
        expect(trajectory.report().problem).toBeUndefined();
      }),
      { numRuns: 80, endOnFailure: true },
    );
  });

  it('are requested once for each action, sub-goal and phase', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 20, max: 400 }), options, async (length, settings) => {
        const asked: SummaryRequest[] = [];
        const trajectory = await openTrajectory({
          goal,
          ...settings,
          ...summarizerOf('obeys', asked),
          counter,
        });
        for (let at = 0; at < length; at++) {
          if (at % 6 === 0) trajectory.startSubgoal(`part ${at}`);
          trajectory.addAction({ action: `look ${at}`, observation: `nothing at ${at}\n`.repeat(at % 30) });
          if (at % 4 === 0) await trajectory.settled();
        }
        await trajectory.settled();
        const ids = asked.flatMap(({ steps: given }) =>
          given.map((one) => /^\[?(\w+)/.exec(textOf(one))?.[1]),
        );
        expect(ids).toEqual([...new Set(ids)]);
      }),
      { numRuns: 20, endOnFailure: true },
    );
  });

  it('are deterministic', async () => {
    await fc.assert(
      fc.asyncProperty(steps, options, summarizer, async (all, settings, how) => {
        const runs = [1, 2].map(async () => {
          const trajectory = await openTrajectory({
            goal,
            ...settings,
            ...summarizerOf(how),
            counter,
            secret,
          });
          const contexts: string[] = [];
          for (const one of all) {
            await take(trajectory, one);
            await trajectory.settled();
            contexts.push(trajectory.context().text);
          }
          return { contexts, state: trajectory.state() };
        });
        const [first, second] = await Promise.all(runs);
        expect(second).toEqual(first);
      }),
      { numRuns: 25, endOnFailure: true },
    );
  });
});
