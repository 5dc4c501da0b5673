/**
 * Finds a plan in the arguments of a call: a list of items that say how they stand. Tools for plans have many names; this shape is what
 * they share. Pure.
 */
import { clipped, nameOf, plain } from './sentences.ts';

const mostItems = 40;

/** Items by how they stand, in the words of the call; undefined where there is no plan. */
export function planIn(argumentsJson: string): ReadonlyMap<string, readonly string[]> | undefined {
  if (!argumentsJson.includes('"status"')) return undefined;
  const list = listIn(parsed(argumentsJson));
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

type Item = Readonly<Record<string, unknown>>;

function listIn(value: unknown): readonly Item[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.values(value).find(
    (inner): inner is readonly Item[] => Array.isArray(inner) && inner.length > 0 && inner.every(isItem),
  );
}

function isItem(value: unknown): value is Item {
  return typeof value === 'object' && value !== null && 'status' in value;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
