/**
 * Finds the items of a text that is a list of them: articles, search hits, records. JSON (an array, one within an object, or lines of
 * JSON), or text whose items begin alike. Each item can be made smaller by itself; the rest of the text stays. Pure, linear.
 */
import type { ItemList } from './item-list.ts';
import { jsonItems } from './json-items.ts';
import { textItems } from './text-items.ts';

/** Undefined for a text that is no list of at least three items. */
export function itemsOf(text: string): ItemList | undefined {
  return jsonItems(text) ?? textItems(text);
}
