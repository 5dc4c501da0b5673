import { describe, expect, it } from 'vitest';
import { createCaches } from '../../caches.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { type SharedBudget, forgetEngine, joinBudget, openSharedBudget } from './shared-budget.ts';

/** Opens an engine with one cache. Each value takes 100 kB. */
function join(budget: SharedBudget, place: number) {
  const { memory, leave } = joinBudget(budget, place);
  const cache = createCaches(memory)<string>('seen bodies', (text) => text.length);
  const add = (...keys: readonly string[]) => {
    for (const key of keys) cache.set(key, 'x'.repeat(99_500));
  };
  return { cache, add, leave, keys: () => Array.from(cache.entries(), ([key]) => key) };
}

const names = (name: string, count: number) => Array.from({ length: count }, (_, at) => `${name}${at}`);

describe('engines with one budget', () => {
  it('may use what the others leave free', () => {
    const one = join(openSharedBudget(1.6e6, 3), 1);
    one.add(...names('a', 20));
    expect(one.keys()).toEqual(names('a', 20).slice(4));
  });

  it('drop what was not used for the longest time, whoever holds it, when another one needs room', async () => {
    const budget = openSharedBudget(1.6e6, 3);
    const [one, other] = [join(budget, 0), join(budget, 1)];
    one.add(...names('a', 10));
    other.add(...names('b', 6));
    one.cache.get('a0');
    // Until the other engine is asked, this one exceeds the budget by an eighth at most.
    other.add('b6', 'b7');
    expect([one.keys(), other.cache.total]).toEqual([names('a', 10), 800_000]);
    await eventually(() => expect(one.keys()).toEqual(['a0', ...names('a', 10).slice(4)]));
    expect(other.keys()).toEqual(names('b', 8));
  });

  it('keep to the budget but for an eighth while another one does not answer', () => {
    const budget = openSharedBudget(1.6e6, 3);
    const [one, other] = [join(budget, 0), join(budget, 1)];
    one.add(...names('a', 10));
    other.add(...names('b', 30));
    expect([one.cache.total, other.keys()]).toEqual([1_000_000, names('b', 30).slice(22)]);
  });

  it('drop their own entries once those are the oldest', async () => {
    const budget = openSharedBudget(1.6e6, 2);
    const [one, other] = [join(budget, 0), join(budget, 1)];
    one.add(...names('a', 8));
    other.add(...names('b', 8));
    for (const key of names('a', 8)) one.cache.get(key);
    other.add('b8', 'b9');
    await eventually(() => expect(other.keys()).toEqual(names('b', 10).slice(3)));
    expect(one.keys()).toEqual(names('a', 8));
  });

  it('count nothing for an engine whose thread has ended', () => {
    const budget = openSharedBudget(1.6e6, 2);
    const [one, other] = [join(budget, 0), join(budget, 1)];
    one.add(...names('a', 16));
    forgetEngine(budget, 0);
    other.add(...names('b', 16));
    expect(other.keys()).toEqual(names('b', 16));
  });

  it('leave what they hold to the others', async () => {
    const budget = openSharedBudget(1.6e6, 2);
    const [one, other] = [join(budget, 0), join(budget, 1)];
    one.add(...names('a', 16));
    one.leave();
    other.add(...names('b', 16));
    expect(other.keys()).toEqual(names('b', 16));
  });
});
