import { describe, expect, it } from 'vitest';
import { waitAtMost } from './send-with-retries.ts';

/** Waits for the work with a timer that the test controls. */
function waiting(work: Promise<unknown>) {
  const timers: string[] = [];
  let ring = () => {};
  let state = 'waits';
  const waited = waitAtMost(work, 70, (ms, act) => {
    timers.push(`started for ${ms} ms`);
    ring = act;
    return { stop: () => void timers.push('stopped') };
  });
  void waited.then(() => (state = 'goes on'));
  return {
    timers,
    ring: () => ring(),
    async state() {
      await new Promise((resolve) => setImmediate(resolve));
      return state;
    },
  };
}

describe('waiting for the store', () => {
  it('ends with the work, and stops its timer', async () => {
    const work = Promise.withResolvers<void>();
    const wait = waiting(work.promise);
    expect(await wait.state()).toBe('waits');
    work.resolve();
    expect(await wait.state()).toBe('goes on');
    expect(wait.timers).toEqual(['started for 70 ms', 'stopped']);
  });

  it('needs no timer for work that has ended', async () => {
    for (const work of [() => Promise.resolve(), () => Promise.reject(new Error('down'))]) {
      const wait = waiting(work());
      expect(await wait.state()).toBe('goes on');
      expect(wait.timers).toEqual([]);
    }
  });

  it('ends when the time is up, while the work goes on', async () => {
    const wait = waiting(new Promise(() => {}));
    expect(await wait.state()).toBe('waits');
    wait.ring();
    expect(await wait.state()).toBe('goes on');
  });

  it('never rejects, whether the work fails in time or later', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    expect(await waiting(Promise.reject(new Error('down'))).state()).toBe('goes on');
    const work = Promise.withResolvers<void>();
    const wait = waiting(work.promise);
    expect(await wait.state()).toBe('waits');
    wait.ring();
    expect(await wait.state()).toBe('goes on');
    work.reject(new Error('down at last'));
    await wait.state();
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});
