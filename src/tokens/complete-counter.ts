/**
 * Completes token counters of the user's own: a function, or an object with any part of a counter. Missing parts come from the
 * estimate for the model. When a counter fails, the estimate is used, with one warning; a failure never costs a request.
 */
import { createAsyncCounts } from './async-counts.ts';
import { type OwnCounter, isCount, isPromise } from './own-counter.ts';
import type { TokenCounter } from './token-counter.ts';

/** Completes the user's counter with `estimate`. `warn` is called once when the counter fails; default: the console. */
export function completeCounter(
  own: OwnCounter,
  estimate: TokenCounter,
  warn: (message: string) => void = warnOnConsole,
): TokenCounter {
  const parts = typeof own === 'function' ? { count: own } : own;
  const name = parts.name ?? nameOf(own);
  let hasWarned = false;
  const failed = (what: string): void => {
    if (hasWarned) return;
    hasWarned = true;
    warn(`The token counter "${name}" ${what}; such texts are counted by ${estimate.name}.`);
  };
  const counter: TokenCounter = {
    name,
    exact: parts.exact ?? false,
    count(text) {
      const tokens = attempt(() => parts.count(text), failed);
      if (isCount(tokens)) return Math.round(tokens);
      if (isPromise(tokens)) tokens.then(undefined, () => undefined);
      if (tokens !== undefined) failed(`returned ${describe(tokens)}`);
      return estimate.count(text);
    },
    image(size) {
      const tokens = parts.image && attempt(() => parts.image!(size), failed);
      if (isCount(tokens)) return Math.round(tokens);
      if (tokens !== undefined) failed(`returned ${describe(tokens)} for an image`);
      return estimate.image(size);
    },
    overhead: { ...estimate.overhead, ...parts.overhead },
    toolsAs: estimate.toolsAs,
  };
  const first = attempt(() => parts.count('a'), failed);
  if (!isPromise(first)) return counter;
  first.then(undefined, () => undefined);
  const asyncCounts = createAsyncCounts({
    count: async (text) => {
      const tokens = await parts.count(text);
      if (!isCount(tokens)) throw new TypeError(`returned ${describe(tokens)}`);
      return Math.round(tokens);
    },
    estimate: (text) => estimate.count(text),
    failed: (error) => failed(`failed: ${error instanceof Error ? error.message : String(error)}`),
  });
  return { ...counter, count: (text) => estimate.count(text), asyncCounts };
}

function warnOnConsole(message: string): void {
  // The library has no log of its own, and the author of the counter must know.
  // oxlint-disable-next-line no-console
  console.warn(`leporello: ${message}`);
}

function attempt<T>(work: () => T, failed: (what: string) => void): T | undefined {
  try {
    return work();
  } catch (error) {
    failed(`threw: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

function describe(value: unknown): string {
  return typeof value === 'number'
    ? String(value)
    : isPromise(value)
      ? 'a promise'
      : `a value of the type ${typeof value}`;
}

/** Names a counter: remembered counts are kept apart by this name. */
function nameOf(own: object): string {
  const known = names.get(own) ?? (named++ === 0 ? 'own counter' : `own counter ${named}`);
  names.set(own, known);
  return known;
}

const names = new WeakMap<object, string>();
let named = 0;
