/** Makes items of a list shorter, until the whole fits: no more of them, and none shorter, than it takes. Pure. */
import type { ListItem, Say } from '../arrival/items/shorten.ts';

type Shortening = {
  /** Indexes of items, in the order in which they are made shorter. */
  readonly leastFirst: readonly number[];
  /** What may be left of an item; all are made shorter by one before any is by the next. */
  readonly shares: readonly number[];
  readonly say: Say;
};

/** What `make` makes of the shorter items by their indexes: of the fewest with which it fits, or of all, as short as they get. */
export function fitItems<Made extends { readonly fits: boolean }>(
  items: readonly ListItem[],
  { leastFirst, shares, say }: Shortening,
  make: (smaller: ReadonlyMap<number, string>) => Made,
): Made {
  let smaller: ReadonlyMap<number, string> = new Map();
  for (const share of shares) {
    const shorter = leastFirst.flatMap((item): readonly (readonly [number, string])[] => {
      const short = items[item]!.shorter(share, say);
      return short === undefined ? [] : [[item, short]];
    });
    const before = smaller;
    const first = (count: number) => new Map([...before, ...shorter.slice(0, count)]);
    smaller = first(shorter.length);
    if (make(smaller).fits) return fewest(shorter.length, (count) => make(first(count)));
  }
  return make(smaller);
}

/** By halves, and one at least; what is made of all fits. */
function fewest<Made extends { readonly fits: boolean }>(all: number, make: (count: number) => Made): Made {
  let least = Math.min(1, all);
  let most = all;
  while (least < most) {
    const middle = Math.floor((least + most) / 2);
    if (make(middle).fits) most = middle;
    else least = middle + 1;
  }
  return make(most);
}
