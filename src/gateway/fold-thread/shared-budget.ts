/**
 * Shares one budget for caches between the engines of several threads. Each tells the others how much it uses and how old its oldest entry is, in memory that all
 * threads share. An engine that needs room asks the one with the oldest entry, which drops it as soon as its thread is free.
 */
import { CacheBudget } from '../../caches.ts';

/** A budget that several engines share. It can be sent to a thread. */
export type SharedBudget = {
  /** Bytes of all engines together. */
  readonly max: number;
  readonly clock: Int32Array;
  /** The bytes of each engine. */
  readonly used: Float64Array;
  /** When the oldest entry of each engine was used last, or earlier: an engine only finds out when it makes room. */
  readonly oldestUse: Int32Array;
  /** 1 for each engine that is asked for room. */
  readonly asked: Int32Array;
};

/** The memory of one of the engines. One that leaves no longer counts, and answers no others. */
export type BudgetMember = { readonly memory: CacheBudget; readonly budget: SharedBudget; leave(): void };

/** The part of the budget that an engine frees at least when it is asked: to ask for each entry would wake its thread too often. */
const freedPart = 1 / 64;

/** Opens a budget for so many engines. */
export function openSharedBudget(max: number, engines: number): SharedBudget {
  return {
    max,
    clock: sharedNumbers(1),
    used: new Float64Array(new SharedArrayBuffer(8 * engines)),
    oldestUse: sharedNumbers(engines),
    asked: sharedNumbers(engines),
  };
}

function sharedNumbers(count: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4 * count));
}

/** Lets the engine at this place use the budget, and makes room whenever another one asks for it. */
export function joinBudget(budget: SharedBudget, engine: number): BudgetMember {
  const { max, clock, used, oldestUse, asked } = budget;
  const memory = new CacheBudget(max, {
    clock,
    tell(bytes) {
      used[engine] = bytes;
    },
    used() {
      let sum = 0;
      for (let other = 0; other < used.length; other++) if (other !== engine) sum += used[other]!;
      return sum;
    },
    askForRoom(age) {
      oldestUse[engine] = clock[0]! - age;
      const other = oldestOf(budget, engine);
      if (other === engine) return false;
      if (Atomics.exchange(asked, other, 1) === 0) Atomics.notify(asked, other);
      return true;
    },
  });
  let hasLeft = false;
  const answer = async (): Promise<void> => {
    await Atomics.waitAsync(asked, engine, 0).value;
    if (hasLeft) return;
    Atomics.store(asked, engine, 0);
    memory.makeRoom(max * freedPart);
    void answer();
  };
  void answer();
  return {
    memory,
    budget,
    leave() {
      hasLeft = true;
      forgetEngine(budget, engine);
      Atomics.store(asked, engine, 1);
      Atomics.notify(asked, engine);
    },
  };
}

/** Counts the memory of an engine whose thread has ended as free. */
export function forgetEngine({ used }: SharedBudget, engine: number): void {
  used[engine] = 0;
}

/** Returns the engine with the oldest entry: this one, unless another one has an older. */
function oldestOf({ used, oldestUse }: SharedBudget, engine: number): number {
  let oldest = engine;
  for (let other = 0; other < used.length; other++)
    // The clock starts again at its end.
    if (used[other]! > 0 && ((oldestUse[oldest]! - oldestUse[other]!) | 0) > 0) oldest = other;
  return oldest;
}
