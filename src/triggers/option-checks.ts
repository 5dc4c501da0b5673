/** Checks a trigger's option against another option of the same trigger. Pure. */
import { LeporelloError } from '../errors.ts';

/** Throws `bad-config` unless `value` is below `limit`. `name` says which options the limit comes from. */
export function checkBelow(key: string, value: number, limit: number, name: string): void {
  if (value < limit) return;
  throw new LeporelloError('bad-config', `${key} is ${value}, but must be below ${limit} (${name}).`);
}
