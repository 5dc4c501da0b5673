/** A text that is a list, taken apart into its items. */
import { extract, type Terms } from './extract.ts';

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
  /** The texts in it that are made smaller: all of it, or its long strings. */
  readonly texts: readonly string[];
  /** The item in about this share of its size, by what `say` makes of its texts; undefined where it cannot be said shorter. */
  shorter(share: number, say: Say): string | undefined;
};

/** A text in about so many UTF-16 units. */
export type Say = (text: string, most: number) => string;

/** In the text's own words, those best that say what was asked for. */
export function sayBy(terms: Terms): Say {
  return (text, most) => extract(text, most, terms);
}
