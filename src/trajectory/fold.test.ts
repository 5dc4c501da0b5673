import { describe, expect, it } from 'vitest';
import type { Compression } from '../receipts/receipt.ts';
import type { Summarizer } from '../outline/summarizer.ts';
import { answering, openScene, work } from '../../test/support/trajectory-scene.ts';

describe('the summarizer', () => {
  const outcomeOf = async (summarizer: Summarizer, timeoutMs = 30_000) => {
    const made: Compression[] = [];
    const trajectory = await openScene({
      summarizer,
      summarizerTimeoutMs: timeoutMs,
      onCompression: (one) => made.push(one),
    });
    await work(trajectory, 'auth', 4);
    const { by, problem } = made[0]!;
    return { by, problem, text: trajectory.context().text };
  };

  it('that fails in any way is replaced by the local one, and an error is never a summary', async () => {
    const local = (await outcomeOf({ name: 'fails', summarize: () => Promise.reject(new Error('429')) }))
      .text;
    expect(local).toContain(
      '[s1 a1-a4] auth → auth is done\n- a2 grep value src/auth-2.ts: 10 lines\n- a3 grep ',
    );
    const bad = { by: 'extractive', text: local };
    expect(await outcomeOf(answering(''))).toEqual({ ...bad, problem: 'empty' });
    expect(await outcomeOf(answering('It went well. '.repeat(500)))).toEqual({
      ...bad,
      problem: 'not smaller than the original',
    });
    for (const answer of [
      '{"error":{"type":"overloaded_error"}}',
      'Error 503: try again',
      '<html><body>Bad gateway</body></html>',
      'Too many requests',
      "I'm sorry, but I can't help with that.",
      'I cannot summarise this.',
    ]) {
      expect(await outcomeOf(answering(answer))).toEqual({
        ...bad,
        problem: 'an error or a refusal, no summary',
      });
    }
    const never = { name: 'never', summarize: () => new Promise<string>(() => undefined) };
    expect(await outcomeOf(never, 5)).toEqual({ ...bad, problem: 'too late' });
  });

  it('is waited for also with more time than a timer can wait', async () => {
    const slow: Summarizer = {
      name: 'slow',
      async summarize(...asked) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        return answering('All went well.').summarize(...asked);
      },
    };
    expect(await outcomeOf(slow, 3e9)).toEqual(await outcomeOf(answering('All went well.')));
  });

  it('may report an error that the agent met', async () => {
    const told = `a1 to a4: npm test failed with "Error: token expired" in src/auth-1.ts; ${'it was looked at again. '.repeat(4)}`;
    expect(await outcomeOf(answering(told))).toMatchObject({ by: 'summarizer', problem: undefined });
  });

  it('that writes too little is completed by the local one', async () => {
    const { by, problem, text } = await outcomeOf(answering('All went well.'));
    expect({ by, problem }).toEqual({ by: 'both', problem: 'over 15:1' });
    expect(text).toContain(
      '[s1 a1-a4] auth → auth is done\nAll went well.\n- a2 grep value src/auth-2.ts: 10 lines\n- a3 grep ',
    );
  });

  it('need not be longer than the original: where even the shortest words are, the ids have to do', async () => {
    const made: Compression[] = [];
    const trajectory = await openScene({
      budgetTokens: 1_000,
      // Brackets cost so much here that the names of two short sub-goals take more than the sub-goals.
      counter: (text) => text.length + 40 * (text.split('[').length - 1),
      onCompression: (one) => made.push(one),
    });
    for (const action of ['look', 'read', 'think '.repeat(2_000)]) {
      trajectory.addAction({ action, observation: 'words '.repeat(1_000) });
      await trajectory.settled();
    }
    const phases = made.filter(({ level }) => level === 'phase');
    expect(phases).toMatchObject([{ id: 'p1', by: 'extractive' }]);
    expect(made.filter(({ ratio }) => ratio <= 1)).toEqual([]);
    expect(trajectory.context().text).toContain('[p1 s1-s2 a1-a2]');
  });

  it('is not waited for: until it answers, the context does not change', async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<string>();
    const slow: Summarizer = {
      name: 'slow',
      summarize: () => {
        asked.resolve();
        return answer.promise;
      },
    };
    const trajectory = await openScene({ summarizer: slow });
    trajectory.startSubgoal('auth');
    for (let at = 1; at <= 3; at++)
      trajectory.addAction({ action: `look ${at}`, observation: 'words '.repeat(80) });
    const done = trajectory.completeSubgoal();
    expect(trajectory.context().messages).toHaveLength(7);
    trajectory.addAction({ action: 'look 4', observation: 'more' });
    await asked.promise;
    answer.resolve('Nothing was found in three places that were looked at.');
    await done;
    const [first, ...rest] = trajectory.context().messages;
    expect(first?.content).toContain('\nNothing was found in three places that were looked at.');
    expect(rest).toEqual([
      { role: 'assistant', content: 'look 4' },
      { role: 'user', content: '[a4]\nmore' },
    ]);
  });
});
