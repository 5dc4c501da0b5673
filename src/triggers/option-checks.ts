/**
 * Checks of trigger options: one sentence for each value that is not allowed, naming key, value and range.
 * Pure; throws `bad-config` and nothing else.
 */
import { LeporelloError } from '../errors.ts';

/** Returns `value` when it is a whole number from `least` to `most`; `why` explains a bound that depends on other options. */
export function wholeNumber(
  key: string,
  value: number,
  range: { readonly least: number; readonly most?: number; readonly why?: string },
): number {
  const most = range.most ?? Number.MAX_SAFE_INTEGER;
  if (Number.isSafeInteger(value) && value >= range.least && value <= most) return value;
  const bounds = range.most === undefined ? `of at least ${range.least}` : `from ${range.least} to ${most}`;
  throw refusal(key, value, `a whole number ${bounds}`, range.why);
}

/** Returns `value` when it is a fraction above 0 and at most `most` (or below `below`). */
export function fraction(
  key: string,
  value: number,
  range: { readonly most: number } | { readonly below: number; readonly why: string },
): number {
  const inside = 'below' in range ? value < range.below : value <= range.most;
  if (typeof value === 'number' && value > 0 && inside) return value;
  const bounds = 'below' in range ? `and below ${range.below}` : `and at most ${range.most}`;
  throw refusal(key, value, `a number above 0 ${bounds}`, 'why' in range ? range.why : undefined);
}

/** Returns `value` when it is a number of at least `least`. */
export function numberFrom(key: string, value: number, least: number): number {
  if (Number.isFinite(value) && value >= least) return value;
  throw refusal(key, value, `a number of at least ${least}`, undefined);
}

function refusal(key: string, value: unknown, allowed: string, why: string | undefined): LeporelloError {
  const reason = why === undefined ? '' : ` (${why})`;
  return new LeporelloError('bad-config', `${key} is ${String(value)}, but must be ${allowed}${reason}.`);
}
