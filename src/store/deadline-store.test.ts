import { describe, expect, it } from 'vitest';
import { LeporelloError } from '../errors.ts';
import { storeSuite } from '../../test/support/store-suite.ts';
import type { Store } from './store.ts';
import { storeWithDeadline, timedStore } from './wrapped-store.ts';
import { inMemoryStore } from './in-memory.ts';

storeSuite('a store whose calls are timed', {
  open: (clock) => timedStore(inMemoryStore({ clock }), () => undefined),
});
storeSuite('a store with a deadline', { open: (clock) => storeWithDeadline(inMemoryStore({ clock })) });

const calls = {
  get: (store) => store.get('a'),
  getMany: (store) => store.getMany(['a']),
  getFirst: (store) => store.getFirst(['a']),
  putMany: (store) => store.putMany([entry]),
  putUnless: (store) => store.putUnless(['a'], [entry]),
  touch: (store) => store.touch(['a'], 2_000),
  delete: (store) => store.delete(['a']),
  close: (store) => store.close(),
} satisfies Record<string, (store: Store) => Promise<unknown>>;

const entry = { key: 'a', value: new Uint8Array([1]), expiresAt: undefined };

describe('a store that never answers', () => {
  it.each(Object.entries(calls))(
    'makes %s fail at the deadline with an error that says so',
    async (name, call) => {
      const { store, passMs } = onTestTime(hanging(), 70);
      const outcome = settled(call(store));
      passMs(69);
      expect(await outcome.now()).toBe('open');
      passMs(1);
      expect(await outcome.now()).toBe(
        `store-failed: The in-memory store did not answer ${name} within 70 ms. Check the machine and network it runs on, or raise storeDeadlineMs.`,
      );
    },
  );

  it('is called only once every 5 seconds after three slow failures', async () => {
    const behind = hanging();
    const { store, passMs } = onTestTime(behind, 70);
    for (let at = 0; at < 3; at++) {
      const outcome = settled(store.get('a'));
      passMs(70);
      expect(await outcome.now()).toContain('did not answer get');
    }
    const resting =
      'store-failed: The in-memory store was not called (get): its last 3 or more calls failed after long waits. It is tried again within 5000 ms.';
    expect(await settled(store.get('a')).now()).toBe(resting);
    expect(behind.asked).toEqual(['get', 'get', 'get']);

    passMs(5_000);
    const trial = settled(store.get('a'));
    expect(await settled(store.getMany(['a'])).now()).toBe(resting.replace('(get)', '(getMany)'));
    passMs(70);
    expect(await trial.now()).toContain('did not answer get');
    expect(await settled(store.get('a')).now()).toBe(resting);
    expect(behind.asked).toEqual(['get', 'get', 'get', 'get']);
  });

  it('is called as before once a trial call was answered', async () => {
    const behind = hanging();
    const { store, passMs } = onTestTime(behind, 70);
    for (let at = 0; at < 3; at++) {
      const outcome = settled(store.get('a'));
      passMs(70);
      await outcome.now();
    }
    behind.recover();
    expect(await settled(store.get('a')).now()).toContain('was not called');
    passMs(5_000);
    expect(await store.get('a')).toBeUndefined();
    expect(await store.getMany(['a', 'b'])).toEqual([undefined, undefined]);
  });

  it('for writes is still read, and for reads still written', async () => {
    const behind = { ...inMemoryStore(), putMany: () => new Promise<never>(() => {}) };
    const { store, passMs } = onTestTime(behind, 70);
    for (let at = 0; at < 5; at++) {
      const outcome = settled(store.putMany([entry]));
      passMs(70);
      expect(await outcome.now()).toContain(at < 3 ? 'did not answer putMany' : 'was not called (putMany)');
      expect(await store.get('a')).toBeUndefined();
    }
  });
});

describe('a store that answers late', () => {
  it('keeps what it wrote although the caller got an error', async () => {
    const behind = inMemoryStore();
    const written = Promise.withResolvers<void>();
    const slow: Store = {
      ...behind,
      async putMany(entries) {
        await written.promise;
        await behind.putMany(entries);
      },
    };
    const { store, passMs } = onTestTime(slow, 70);
    const outcome = settled(store.putMany([entry]));
    passMs(70);
    expect(await outcome.now()).toContain('did not answer putMany within 70 ms');
    expect(await store.get('a')).toBeUndefined();
    written.resolve();
    await expect.poll(() => store.get('a')).toEqual(entry.value);
  });

  it('causes no unhandled rejection when it answers with an error', async () => {
    const answer = Promise.withResolvers<never>();
    const { store, passMs } = onTestTime({ ...inMemoryStore(), get: () => answer.promise }, 70);
    const outcome = settled(store.get('a'));
    passMs(70);
    expect(await outcome.now()).toContain('within 70 ms');
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    answer.reject(new Error('too late'));
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});

describe('a store that fails', () => {
  it('at once is called every time, since that costs nothing', async () => {
    let asked = 0;
    const get = () => {
      asked += 1;
      return Promise.reject(new LeporelloError('store-failed', 'It is away.'));
    };
    const { store } = onTestTime({ ...inMemoryStore(), get }, 70);
    for (let at = 0; at < 10; at++) await expect(store.get('a')).rejects.toThrow('It is away.');
    expect(asked).toBe(10);
  });

  it('after a long wait of its own, for example for a lock, rests like one that hangs', async () => {
    let asked = 0;
    const { store, passMs } = onTestTime(
      {
        ...inMemoryStore(),
        delete: () => {
          asked += 1;
          passMs(40);
          return Promise.reject(new LeporelloError('store-failed', 'It is locked.'));
        },
      },
      70,
    );
    for (let at = 0; at < 10; at++) await store.delete(['a']).catch(() => undefined);
    expect(asked).toBe(3);
  });
});

it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('a deadline of %d ms is rejected', (deadlineMs) => {
  expect(() => storeWithDeadline(inMemoryStore(), { deadlineMs })).toThrow(
    `storeDeadlineMs is ${deadlineMs}; it must be above 0 and at most 3600000 milliseconds.`,
  );
});

/** A store that accepts calls and answers none until it recovers. */
function hanging(): Store & { readonly asked: readonly string[]; recover(): void } {
  const asked: string[] = [];
  const whole = inMemoryStore();
  let hangs = true;
  const hang =
    <A extends readonly unknown[], T>(name: string, work: (...args: A) => Promise<T>) =>
    (...args: A): Promise<T> => {
      asked.push(name);
      return hangs ? new Promise<T>(() => {}) : work(...args);
    };
  return {
    name: whole.name,
    get: hang('get', whole.get),
    getMany: hang('getMany', whole.getMany),
    getFirst: hang('getFirst', whole.getFirst),
    putMany: hang('putMany', whole.putMany),
    putUnless: hang('putUnless', whole.putUnless),
    touch: hang('touch', whole.touch),
    delete: hang('delete', whole.delete),
    close: hang('close', whole.close),
    asked,
    recover: () => void (hangs = false),
  };
}

/** A store with a deadline, and a clock that the test advances. */
function onTestTime(behind: Store, deadlineMs: number) {
  let now = 0;
  let timers: { readonly at: number; readonly act: () => void }[] = [];
  const store = storeWithDeadline(behind, {
    deadlineMs,
    clock: () => now,
    startTimer(ms, act) {
      const timer = { at: now + ms, act };
      timers.push(timer);
      return { stop: () => void (timers = timers.filter((other) => other !== timer)) };
    },
  });
  return {
    store,
    passMs(ms: number) {
      now += ms;
      for (const { act } of timers.filter(({ at }) => at <= now)) act();
    },
  };
}

/** The state of a promise: `open`, `done`, or the error it rejected with. */
function settled(promise: Promise<unknown>) {
  let state = 'open';
  promise.then(
    () => (state = 'done'),
    (error: unknown) =>
      (state = LeporelloError.isInstance(error) ? `${error.code}: ${error.message}` : 'odd'),
  );
  return {
    async now(): Promise<string> {
      await new Promise((resolve) => setImmediate(resolve));
      return state;
    },
  };
}

it('a timed store reports each call, whether it was answered or not', async () => {
  const reported: string[] = [];
  const store = timedStore(inMemoryStore(), (call, seconds, isAnswered) => {
    reported.push(`${call} ${isAnswered ? 'answered' : 'failed'} ${seconds >= 0 ? 'in time' : ''}`);
  });
  await store.getMany(['a']);
  await store.close();
  await store.get('a').catch(() => undefined);
  expect(reported).toEqual(['getMany answered in time', 'get failed in time']);
});
