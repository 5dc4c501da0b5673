import { describe, expect, it } from 'vitest';
import { inMemoryStore } from '../store/in-memory.ts';
import type { Store } from '../store/store.ts';
import type { Compression } from '../receipts/receipt.ts';
import type { SummaryRequest, SummaryStep, Summarizer } from '../outline/summarizer.ts';
import { openTrajectory, type Trajectory } from './trajectory.ts';
import { answering, openScene, work } from '../../test/support/trajectory-scene.ts';

/** Writes which steps it received, and fills its budget with their text. */
const listing: Summarizer = {
  name: 'listing',
  summarize: async ({ steps, budget }) =>
    `Summary of ${steps.map(idOf).join(' ')}. ${'It went well. '.repeat(Math.floor(budget.aim / 5))}`,
};

function idOf(step: SummaryStep): string | undefined {
  return step.type === 'called' ? step.tool.split(' ')[0] : /^\[(\w+)/.exec(step.text)?.[1];
}

describe('a short task', () => {
  it('is not folded: actions are turns of two roles, with sub-goals named between them', async () => {
    const trajectory = await openTrajectory({ goal: 'Mend the login' });
    expect(trajectory.startSubgoal('Find the failing test')).toBe('s1');
    expect(trajectory.addAction({ action: 'npm test', observation: '1 failed: auth.test.ts' })).toBe('a1');
    expect(trajectory.addAction({ action: 'cat auth.test.ts', observation: '' })).toBe('a2');
    await trajectory.completeSubgoal('auth.test.ts: the token has expired');
    trajectory.startSubgoal('Mend the clock');
    expect(trajectory.context()).toEqual({
      messages: [
        { role: 'user', content: '# Task\nMend the login\n\n# Sub-goal s1: Find the failing test' },
        { role: 'assistant', content: 'npm test' },
        { role: 'user', content: '[a1]\n1 failed: auth.test.ts' },
        { role: 'assistant', content: 'cat auth.test.ts' },
        {
          role: 'user',
          content:
            '[a2]\n(no output)\n\n[s1 is done] auth.test.ts: the token has expired\n\n# Sub-goal s2: Mend the clock',
        },
      ],
      text: [
        '# Task\nMend the login\n\n# Sub-goal s1: Find the failing test',
        'npm test',
        '[a1]\n1 failed: auth.test.ts',
        'cat auth.test.ts',
        '[a2]\n(no output)\n\n[s1 is done] auth.test.ts: the token has expired\n\n# Sub-goal s2: Mend the clock',
      ].join('\n\n'),
      tokens: trajectory.report().tokensNow,
    });
    expect(trajectory.report()).toMatchObject({ actions: 2, compressions: {}, problem: undefined });
  });

  it('contains only the goal before the first action', async () => {
    const trajectory = await openTrajectory({ goal: 'Mend the login' });
    expect(trajectory.context().messages).toEqual([{ role: 'user', content: '# Task\nMend the login' }]);
  });
});

describe('a value that is no text', () => {
  it('is refused at once, and changes nothing', async () => {
    const trajectory = await openTrajectory({ goal: 'Mend the login' });
    const before = trajectory.state();
    const calls: readonly (readonly [call: () => unknown, message: string])[] = [
      [
        () => trajectory.addAction({ action: 'npm test' } as never),
        'action is {"action":"npm test"}, but must be { action, observation }, both texts.',
      ],
      [() => trajectory.startSubgoal(undefined as never), 'goal is missing, but must be a text.'],
      [() => trajectory.completeSubgoal(5 as never), 'outcome is 5, but must be a text.'],
    ];
    for (const [call, message] of calls)
      expect(call).toThrow(expect.objectContaining({ code: 'bad-config', message }));
    expect(trajectory.state()).toEqual(before);
  });
});

describe('a completion check', () => {
  it('finishes the open sub-goal, with or without an outcome, and may fail', async () => {
    const asked: string[] = [];
    const trajectory = await openScene({
      isComplete: ({ id, actions }) => {
        asked.push(`${id} ${actions.length}`);
        if (actions.length === 2) throw new Error('cannot tell');
        return actions.length === 3 && (id === 's1' ? 'three places were looked at' : true);
      },
    });
    for (let at = 0; at < 7; at++) trajectory.addAction({ action: `look ${at}`, observation: 'nothing' });
    const { entries, open } = trajectory.state();
    expect(asked).toEqual(['s1 1', 's1 2', 's1 3', 's2 1', 's2 2', 's2 3', 's3 1']);
    expect(entries.map(({ id, outcome }) => `${id} ${outcome}`)).toEqual([
      's1 three places were looked at',
      's2 undefined',
    ]);
    expect(open?.id).toBe('s3');
  });
});

describe('a finished sub-goal', () => {
  it('is summarized once, and its summary never changes', async () => {
    const asked: SummaryRequest[] = [];
    const trajectory = await openScene({
      summarizer: {
        ...listing,
        summarize: (request) => {
          asked.push(request);
          return listing.summarize(request);
        },
      },
    });
    await work(trajectory, 'auth', 4);
    const after = trajectory.context().text;
    await work(trajectory, 'clock', 4);
    expect(after).toBe(
      [
        '# Task\nMend the login',
        'Earlier work stands in short below, oldest first. read_memory with an id (such as o1, p2, s3 or a17) brings back the full record.',
        `[s1 a1-a4] auth → auth is done\nSummary of a1 a2 a3 a4. ${'It went well. '.repeat(10).trim()}`,
      ].join('\n\n'),
    );
    expect(trajectory.context().text.startsWith(after)).toBe(true);
    expect(asked.map(({ guidance }) => guidance)).toEqual([
      'The steps are the actions an agent took for the sub-goal "auth", each with what came of it. The task: "Mend the login". Write what the agent must still know of them: what was found, decided, changed, and what failed and why; paths, names, numbers, commands and errors word for word; requirements word for word. Keep the ids (such as a12, s3) of steps whose details may be needed again. No introduction, no advice.',
      expect.stringContaining('"clock"'),
    ]);
  });

  it('stays complete while it is among the newest, and many are folded at once', async () => {
    const trajectory = await openScene({ summarizer: listing, budgetTokens: 4_000, newestShare: 0.5 });
    const kinds: string[] = [];
    for (let at = 1; at <= 7; at++) {
      await work(trajectory, `part${at}`, 3);
      kinds.push(
        trajectory
          .state()
          .entries.map(({ kind }) => (kind === 'summary' ? '.' : 'v'))
          .join(''),
      );
    }
    expect(kinds).toEqual(['v', 'vv', 'vvv', '..vv', '..vvv', '....vv', '....vvv']);
  });

  it('of one or two actions is merged without a summarizer', async () => {
    const made: Compression[] = [];
    const trajectory = await openScene({
      summarizer: answering('x'),
      onCompression: (one) => made.push(one),
    });
    await work(trajectory, 'auth', 2);
    expect(made.map(({ by, target, warning, problem }) => ({ by, target, warning, problem }))).toEqual([
      { by: 'merge', target: undefined, warning: undefined, problem: undefined },
    ]);
  });

  it('of more than seven actions is split evenly', async () => {
    const trajectory = await openScene({ summarizer: listing });
    await work(trajectory, 'auth', 9);
    const { entries } = trajectory.state();
    expect(entries.map((entry) => entry.kind === 'summary' && entry.covers.a)).toEqual([
      [1, 5],
      [6, 9],
    ]);
  });

  it('splits off its oldest actions while it is open, and keeps the newest', async () => {
    const trajectory = await openScene({ summarizer: listing });
    trajectory.startSubgoal('auth');
    for (let at = 1; at <= 10; at++) trajectory.addAction({ action: `look ${at}`, observation: 'nothing' });
    await trajectory.settled();
    const { entries, open: current } = trajectory.state();
    expect(entries.map(({ id }) => id)).toEqual(['s1']);
    expect(current?.id).toBe('s2');
    expect(current?.actions.map(({ id }) => id)).toEqual(['a8', 'a9', 'a10']);
  });
});

describe('levels', () => {
  it('make ten sub-goals a phase and five phases an overview, and keep the newest', async () => {
    const trajectory = await openScene({ preset: 'long-horizon', summarizer: listing });
    for (let at = 1; at <= 12; at++) await work(trajectory, `part${at}`, 3);
    expect(trajectory.state().entries.map(({ id }) => id)).toEqual(['p1', 's11', 's12']);
    for (let at = 13; at <= 62; at++) await work(trajectory, `part${at}`, 3);
    expect(trajectory.state().entries.map(({ id }) => id)).toEqual(['o1', 'p6', 's61', 's62']);
    expect(trajectory.context().text).toContain('[o1 s1-s50 a1-a150]');
  });

  it('are made only for the budget if they are as needed', async () => {
    const trajectory = await openScene({ preset: 'production', summarizer: listing, budgetTokens: 1_500 });
    for (let at = 1; at <= 12; at++) await work(trajectory, `part${at}`, 3);
    expect(
      trajectory
        .state()
        .entries.map(({ id }) => id.charAt(0))
        .join(''),
    ).toBe('ssssssssssss');
    for (let at = 13; at <= 60; at++) await work(trajectory, `part${at}`, 3);
    expect(trajectory.state().entries[0]?.id).toMatch(/^[po]/);
    expect(trajectory.context().tokens).toBeLessThanOrEqual(1_500);
  });

  it('return what they replaced, level by level', async () => {
    const trajectory = await openScene({ preset: 'long-horizon', summarizer: listing });
    for (let at = 1; at <= 62; at++) await work(trajectory, `part${at}`, 3);
    const overview = await trajectory.record('o1');
    expect(overview?.kind === 'level' && overview.entries.map(({ id }) => id)).toEqual([
      'p1',
      'p2',
      'p3',
      'p4',
      'p5',
    ]);
    const phase = await trajectory.record('p2');
    expect(phase?.kind === 'level' && phase.entries.map(({ goal }) => goal).slice(0, 3)).toEqual([
      'part11',
      'part12',
      'part13',
    ]);
    expect(await trajectory.record('s12')).toMatchObject({ goal: 'part12', outcome: 'part12 is done' });
    expect(await trajectory.record('a34')).toMatchObject({
      kind: 'action',
      action: 'grep value src/part12-1.ts',
    });
    expect(await trajectory.record('task')).toEqual({ kind: 'task', id: 'task', goal: 'Mend the login' });
    for (const unknown of ['a187', 's0', 'p7', 'x1', 'mem_0123456789abcdef', '']) {
      expect(await trajectory.record(unknown)).toBeUndefined();
    }
  });
});

describe('an action', () => {
  it('that is too long for the context is cut from the start on, and complete in the store', async () => {
    const trajectory = await openScene({ budgetTokens: 1_000, model: 'gpt-4o' });
    const observation = Array.from({ length: 500 }, (_, line) => `line ${line}`).join('\n');
    trajectory.addAction({ action: 'cat log.txt', observation });
    const shown = trajectory.context().messages.at(-1)!.content;
    expect(shown).toMatch(
      /^\[a1\]\nline 0\n.*\n\[… cut: read_memory \{"id":"a1"\} has it whole …\]\n.*line 499$/s,
    );
    trajectory.addAction({ action: 'ls', observation: 'log.txt' });
    expect(trajectory.context().text).toContain(shown);
    expect(await trajectory.record('a1')).toMatchObject({ observation });
  });

  it('that recalled something is not summarized a second time', async () => {
    const asked: SummaryRequest[] = [];
    const summarizer: Summarizer = {
      name: 'noting',
      summarize: (request) => {
        asked.push(request);
        return listing.summarize(request);
      },
    };
    const trajectory = await openScene({ summarizer });
    trajectory.startSubgoal('Look again');
    for (const action of ['ls', 'pwd'])
      trajectory.addAction({ action, observation: 'some words '.repeat(30) });
    const observation = 'old words '.repeat(30);
    trajectory.addAction({ action: 'read_memory {"id":"s1"}', observation, recalls: 's1' });
    await trajectory.completeSubgoal();
    expect(asked[0]?.steps[2]).toEqual({
      type: 'called',
      tool: 'a3 read_memory',
      input: '{"id":"s1"}',
      result: '(s1 was read again)',
      failed: false,
    });
    expect(await trajectory.record('a3')).toMatchObject({ observation });
  });
});

describe('recall', () => {
  it('answers calls of the tool, in parts if the answer is long', async () => {
    const trajectory = await openScene({ summarizer: listing });
    await work(trajectory, 'auth', 3);
    expect(trajectory.recallTool.name).toBe('read_memory');
    expect(await trajectory.recall('{"id":"s1","lines":"1-5"}')).toBe(
      [
        'Sub-goal s1: auth',
        'Outcome: auth is done',
        '',
        'a1 grep value src/auth-1.ts',
        'src/auth-1.ts:0: value 0 is set',
        '[Lines 1-5 of 38.]',
      ].join('\n'),
    );
    expect(await trajectory.recall('{"id":"a2","query":"value 7"}', 200)).toContain(
      'src/auth-2.ts:7: value 7 is set',
    );
    expect(await trajectory.recall('{"id":"a99"}')).toMatch(/^No memory with id "a99"/);
  });
});

describe('a restart', () => {
  it('continues from the state, and originals can still be read', async () => {
    const store = inMemoryStore();
    const before = await openScene({ store, summarizer: listing });
    await work(before, 'auth', 4);
    before.startSubgoal('clock');
    before.addAction({ action: 'date', observation: 'Sat' });
    const saved = JSON.stringify(before.state());
    const after = await openScene({
      store,
      summarizer: listing,
      state: JSON.parse(saved) as ReturnType<Trajectory['state']>,
    });
    expect(after.context()).toEqual(before.context());
    expect(after.addAction({ action: 'date', observation: 'Sun' })).toBe('a6');
    expect(await after.record('a2')).toMatchObject({ action: 'grep value src/auth-2.ts' });
  });

  it('with a state of another release is rejected', async () => {
    const state = { version: 2 } as unknown as ReturnType<Trajectory['state']>;
    await expect(openScene({ state })).rejects.toMatchObject({
      code: 'bad-config',
      message:
        "The trajectory's state has version 2: this release reads version 1. Pass the result of state().",
    });
  });
});

describe('invalid options', () => {
  it.each<[string, Parameters<typeof openScene>[0], string]>([
    [
      'a store without a secret',
      { store: inMemoryStore(), secret: undefined as never },
      'secret is missing: without it, nothing in the in-memory store could be read',
    ],
    [
      'a tenant with a blank',
      { tenant: 'user 5' },
      'The tenant is "user 5", but must be 1 to 64 of a-z, 0-9 and -',
    ],
    [
      'a counter that returns a list',
      { counter: ((text: string) => [text]) as never },
      'The trajectory\'s counter returns a list for the text "a"',
    ],
    [
      'an asynchronous counter',
      { counter: async (text) => Promise.resolve(text.length) },
      "The trajectory's counter is asynchronous",
    ],
  ])('is refused: %s', async (_, options, message) => {
    await expect(openScene(options)).rejects.toMatchObject({
      code: 'bad-config',
      message: expect.stringContaining(message),
    });
  });
});

describe('a store that fails', () => {
  it('keeps the actions in the context, and folding continues when it works again', async () => {
    const inner = inMemoryStore();
    let isDown = true;
    const store: Store = {
      ...inner,
      putMany: (entries) => (isDown ? Promise.reject(new Error('disk full')) : inner.putMany(entries)),
    };
    const trajectory = await openScene({ store, summarizer: listing });
    await work(trajectory, 'auth', 4);
    expect(trajectory.report().problem).toBe('failed');
    expect(trajectory.state().entries.map(({ kind }) => kind)).toEqual(['subgoal']);
    isDown = false;
    await trajectory.settled();
    expect(trajectory.report().problem).toBeUndefined();
    expect(trajectory.state().entries.map(({ kind }) => kind)).toEqual(['summary']);
  });
});

describe('tenants', () => {
  it("cannot read each other's originals in a shared store", async () => {
    const store = inMemoryStore();
    const mine = await openScene({ store, tenant: 'me' });
    await work(mine, 'auth', 4);
    const theirs = await openScene({ store, tenant: 'you', state: mine.state() });
    expect(await theirs.record('a1')).toBeUndefined();
    expect(await mine.record('a1')).toBeDefined();
  });
});
