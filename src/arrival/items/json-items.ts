/**
 * Items of JSON: the array that is most of a document, or documents line by line. An item is shortened by its long strings; keys, numbers and
 * short strings, by which a reader tells items apart, stay. The output is JSON again.
 */
import type { ListItem, ItemList, TextShortener } from './shorten.ts';
import { compact, isObject, type JsonNode, readJson } from '../json-tree.ts';

/** Returns the items of a JSON text; undefined if it is not JSON or has fewer than three items. */
export function jsonItems(text: string): ItemList | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  const documents = documentsOf(text);
  if (!documents) return undefined;
  const nodes = documents.length === 1 ? longestArray(documents[0]!) : documents;
  if (!nodes || nodes.length < minItems) return undefined;
  const items = nodes.map(itemOf);
  return {
    items,
    write(smaller, note) {
      const first = nodes.findIndex((node, at) => smaller.has(at) && isMarkable(node));
      const written = nodes.map((node, at) => {
        const shorter = smaller.get(at);
        if (shorter === undefined) return items[at]!.text;
        return isMarkable(node) ? marked(shorter, at === first ? note : undefined) : shorter;
      });
      const all = first < 0 && note !== undefined ? [...written, JSON.stringify(note)] : written;
      if (documents.length > 1) return all.join('\n');
      return compact(replaced(documents[0]!, nodes, { items: all }));
    },
  };
}

/** True for an object that has no member of the names that mark a shortened item. */
function isMarkable(node: JsonNode): boolean {
  return typeof node !== 'string' && isObject(node) && !node.keys.some((key) => markers.includes(key));
}

const markers = ['"compressed"', '"compression"'];

/** Marks the text of a shortened object. */
function marked(object: string, note: string | undefined): string {
  const members = object.slice(0, -1);
  const explained = note === undefined ? '' : `,"compression":${JSON.stringify(note)}`;
  return `${members}${members === '{' ? '' : ','}"compressed":true${explained}}`;
}

const minItems = 3;

/** Reads one document, or several on lines of their own; undefined if the text contains anything else. */
function documentsOf(text: string): readonly JsonNode[] | undefined {
  const documents: JsonNode[] = [];
  for (let at = 0; at < text.length; ) {
    const { node, end } = readJson(text, at);
    if (node === undefined) return undefined;
    documents.push(node);
    const rest = /\s*/y;
    rest.lastIndex = end;
    rest.exec(text);
    at = rest.lastIndex;
  }
  return documents;
}

/** Returns the longest array, at most three levels down. */
function longestArray(root: JsonNode): readonly JsonNode[] | undefined {
  let longest: readonly JsonNode[] | undefined;
  let maxSize = 0;
  const look = (node: JsonNode, depth: number): void => {
    if (typeof node === 'string' || depth > 3) return;
    if (isObject(node)) {
      for (const value of node.values) look(value, depth + 1);
      return;
    }
    const size = compact(node).length;
    if (node.items.length >= minItems && size > maxSize) {
      longest = node.items;
      maxSize = size;
    }
    if (depth === 0 && node.items.length < minItems) for (const item of node.items) look(item, depth + 1);
  };
  look(root, 0);
  return longest;
}

/** Replaces the array with these `items` by another value. */
function replaced(root: JsonNode, items: readonly JsonNode[], by: JsonNode): JsonNode {
  if (typeof root === 'string') return root;
  if (isObject(root))
    return { keys: root.keys, values: root.values.map((value) => replaced(value, items, by)) };
  return root.items === items ? by : { items: root.items.map((item) => replaced(item, items, by)) };
}

function itemOf(node: JsonNode): ListItem {
  const text = compact(node);
  return {
    text,
    score: scoreOf(node),
    texts: longStrings(node).map((literal) => JSON.parse(literal) as string),
    shorter(share, shortenText) {
      const long = longStrings(node).reduce((sum, literal) => sum + literal.length, 0);
      const wanted = Math.floor(text.length * share);
      const forStrings = wanted - (text.length - long);
      // If the unchanged part alone is too large, a little of each string still shows what it was.
      const rate = long === 0 ? 1 : Math.max(forStrings / long, share / 2);
      const shorter = rate >= 1 ? text : compact(withStrings(node, rate, shortenText));
      return shorter.length < text.length ? shorter : undefined;
    },
  };
}

/** Minimum length of a string literal to be shortened, in UTF-16 units. */
const minLongString = 200;

function longStrings(node: JsonNode): readonly string[] {
  if (typeof node === 'string') return isLong(node) ? [node] : [];
  return (isObject(node) ? node.values : node.items).flatMap(longStrings);
}

function isLong(scalar: string): boolean {
  return scalar.length > minLongString && scalar.startsWith('"');
}

function withStrings(node: JsonNode, rate: number, shortenText: TextShortener): JsonNode {
  if (typeof node === 'string') {
    if (!isLong(node)) return node;
    const text = JSON.parse(node) as string;
    return JSON.stringify(shortenText(text, Math.floor(text.length * rate)));
  }
  const inner = (value: JsonNode) => withStrings(value, rate, shortenText);
  return isObject(node)
    ? { keys: node.keys, values: node.values.map(inner) }
    : { items: node.items.map(inner) };
}

const better = /^"(?:relevance|similarity|(?:\w+_)?score|relevance_?score)"$/i;
const worse = /^"(?:rank|position|distance)"$/i;

function scoreOf(node: JsonNode): number | undefined {
  if (typeof node === 'string' || !isObject(node)) return undefined;
  for (const [at, key] of node.keys.entries()) {
    const value = node.values[at]!;
    if (typeof value !== 'string' || value.startsWith('"')) continue;
    const number = Number(value);
    if (!Number.isFinite(number)) continue;
    if (better.test(key)) return number;
    if (worse.test(key)) return -number;
  }
  return undefined;
}
