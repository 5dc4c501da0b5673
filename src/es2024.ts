/**
 * Two functions of ES2024 that Node 20 lacks; elsewhere they are the platform's own. Programs may use the library in Node 20, so `src` is checked
 * against the types of ES2023 when it is built, and takes these functions from here.
 */

/** A promise, and the functions that settle it. */
export type WithResolvers<Value> = {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value | PromiseLike<Value>) => void;
  readonly reject: (reason?: unknown) => void;
};

type GroupBy = <Item, Key>(
  items: Iterable<Item>,
  keyOf: (item: Item, index: number) => Key,
) => Map<Key, Item[]>;

const { groupBy: ownGroupBy } = Map as { readonly groupBy?: GroupBy };
const { withResolvers: own } = Promise as { readonly withResolvers?: <Value>() => WithResolvers<Value> };

/** Groups items by key, in the order of the first item of each group. */
export const groupBy: GroupBy = ownGroupBy?.bind(Map) ?? groupInMap;

/** Returns a promise with the functions that settle it. */
export const withResolvers: <Value>() => WithResolvers<Value> = own?.bind(Promise) ?? openPromise;

function groupInMap<Item, Key>(
  items: Iterable<Item>,
  keyOf: (item: Item, index: number) => Key,
): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  let index = 0;
  for (const item of items) {
    const key = keyOf(item, index++);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

function openPromise<Value>(): WithResolvers<Value> {
  let resolve!: WithResolvers<Value>['resolve'];
  let reject!: WithResolvers<Value>['reject'];
  const promise = new Promise<Value>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
