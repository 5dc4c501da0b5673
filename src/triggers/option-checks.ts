/**
 * Checks trigger options: each check returns the value, or throws `bad-config` with one sentence that names key, value and range.
 * Pure.
 */
import { LeporelloError } from '../errors.ts';

/** Returns `value` when it is a whole number from `min` to `max`. `why` explains a bound that depends on other options. */
export function wholeNumber(
  key: string,
  value: number,
  range: { readonly min: number; readonly max?: number; readonly why?: string },
): number {
  const max = range.max ?? Number.MAX_SAFE_INTEGER;
  if (Number.isSafeInteger(value) && value >= range.min && value <= max) return value;
  const bounds = range.max === undefined ? `of at least ${range.min}` : `from ${range.min} to ${max}`;
  throw outOfRange(key, value, `a whole number ${bounds}`, range.why);
}

/** Returns `value` when it is a fraction above 0 and at most `max` (or below `below`). */
export function fraction(
  key: string,
  value: number,
  range: { readonly max: number } | { readonly below: number; readonly why: string },
): number {
  const inside = 'below' in range ? value < range.below : value <= range.max;
  if (typeof value === 'number' && value > 0 && inside) return value;
  const bounds = 'below' in range ? `and below ${range.below}` : `and at most ${range.max}`;
  throw outOfRange(key, value, `a number above 0 ${bounds}`, 'why' in range ? range.why : undefined);
}

/** Returns `value` when it is a number of at least `min`. */
export function numberFrom(key: string, value: number, min: number): number {
  if (Number.isFinite(value) && value >= min) return value;
  throw outOfRange(key, value, `a number of at least ${min}`, undefined);
}

function outOfRange(key: string, value: unknown, allowed: string, why: string | undefined): LeporelloError {
  const reason = why === undefined ? '' : ` (${why})`;
  return new LeporelloError('bad-config', `${key} is ${String(value)}, but must be ${allowed}${reason}.`);
}
