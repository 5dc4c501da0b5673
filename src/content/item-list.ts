/** A text that is a list, taken apart into its items. */
import type { Terms } from './extract.ts';

export type ItemList = {
  readonly items: readonly Item[];
  /** The text with smaller items in the places of some; what is around the items keeps its bytes, white space of JSON aside. */
  write(smaller: ReadonlyMap<number, string>): string;
};

export type Item = {
  /** As it stands. */
  readonly text: string;
  /** How relevant its source says it is, greater is more; undefined where it says nothing. */
  readonly score: number | undefined;
  /** The item in about this share of its size; undefined where it cannot be said shorter. */
  shorter(share: number, terms: Terms): string | undefined;
};
