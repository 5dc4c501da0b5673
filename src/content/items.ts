/**
 * Finds the items of a text that is a list of them: articles, search hits, records. JSON (an array, one within an object, or lines of
 * JSON), or text whose items begin alike. Each item can be made smaller by itself; the rest of the text stays. Pure, linear.
 */
import type { Terms } from './extract.ts';
import { jsonItems } from './json-items.ts';
import { textItems } from './text-items.ts';

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

/** Undefined for a text that is no list of at least three items. */
export function itemsOf(text: string): ItemList | undefined {
  return jsonItems(text) ?? textItems(text);
}
