/**
 * Finds a plan in the arguments of a call: a list of items that say how they stand. Tools for plans have many names; this shape is what
 * they share. Pure.
 */
import { argumentsIn, type Fields, isRecord } from '../conversation/arguments.ts';
import { clipped, nameOf, plain } from './sentences.ts';

const mostItems = 40;

/** Items by how they stand, in the words of the call; undefined where there is no plan. */
export function planIn(argumentsJson: string): ReadonlyMap<string, readonly string[]> | undefined {
  if (!argumentsJson.includes('"status"')) return undefined;
  const list = planItems(argumentsIn(argumentsJson) ?? {});
  if (list === undefined) return undefined;
  const plan = new Map<string, string[]>();
  for (const item of list.slice(-mostItems)) {
    const { status, ...rest } = item;
    const text = Object.values(rest).find((value) => typeof value === 'string' && /\s/.test(value.trim()));
    if (typeof status !== 'string' || typeof text !== 'string') return undefined;
    const key = nameOf(plain(status));
    plan.set(key, [...(plan.get(key) ?? []), clipped(plain(text), 160)]);
  }
  return plan.size === 0 ? undefined : plan;
}

/** The list in a call's arguments whose items all say how they stand; undefined where there is none. */
export function planItems(sent: Fields): readonly Fields[] | undefined {
  return Object.values(sent).find(
    (inner): inner is readonly Fields[] =>
      Array.isArray(inner) && inner.length > 0 && inner.every((item) => isRecord(item) && 'status' in item),
  );
}
