/**
 * The main text of a web page that was fetched: headings, paragraphs, lists, tables, code and links, without scripts, styles, navigation
 * and forms. Lossy. A page that looks written by hand is somebody's source, and is left alone.
 */
import type { Reader } from './content.ts';
import { reportsFailure } from './guards.ts';
import { createPageText } from './html-text.ts';
import { MAIN_TEXT } from './markers.ts';

/** UTF-16 units. Of less main text than this, the page is made by its scripts. */
const LEAST = 100;
/** Smaller pages stay whole. */
const FLOOR = 4_000;

export const html: Reader = (text) => {
  if (!beginsPage.test(text.slice(0, 2_000)) || !wasFetched(text)) return undefined;
  return {
    kind: 'html',
    drafts({ lossless }) {
      if (lossless || text.length < FLOOR || reportsFailure(text)) return [];
      const main = mainText(text);
      return main.length < LEAST
        ? []
        : [{ text: `${MAIN_TEXT}\n${main}`, isLossless: false, note: 'main text of a web page' }];
    },
  };
};

const beginsPage = /<!doctype html|<html[\s>]/i;

/** Marks that servers and builds leave at a page's beginning, and authors rarely: two of them. */
function wasFetched(text: string): boolean {
  const beginning = text.slice(0, 50_000);
  return marks.filter((mark) => mark.test(beginning)).length >= 2;
}

const marks = [
  /^HTTP\/[\d.]+ \d{3}/,
  /<link[^>]{0,200} rel=["']?canonical/i,
  /<meta[^>]{0,200} property=["']?og:/i,
  /<script[^>]{0,200} (?:nonce=|type=["']?application\/ld\+json|src=["']?(?:https?:)?\/\/)/i,
  /<[a-z]+[^>]{0,200} data-[\w-]{1,40}=/i,
  /[^\n]{5000}/,
];

/** What is inside is not HTML. */
const raw = new Set([
  'script',
  'style',
  'noscript',
  'svg',
  'template',
  'iframe',
  'textarea',
  'math',
  'object',
]);

const tag = /<(?:!--|[!?]|(\/?)([a-zA-Z][a-zA-Z0-9:-]*))/g;

/** One pass. A tag, comment or script that never ends takes the rest of the page with it, so nothing is looked for twice. */
function mainText(text: string): string {
  const page = createPageText(text);
  let at = 0;
  for (;;) {
    tag.lastIndex = at;
    const match = tag.exec(text);
    const start = match?.index ?? text.length;
    if (start > at) page.text(text.slice(at, start));
    if (!match) return page.result();
    const [opening, slash, word] = match;
    at = behind(text, opening === '<!--' ? '-->' : '>', start);
    if (word === undefined) continue;
    const element = word.toLowerCase();
    if (slash === '/') page.close(element);
    else if (raw.has(element)) at = behindElement(text, element, at);
    else page.open(element, text.slice(start, at));
  }
}

function behind(text: string, what: string, from: number): number {
  const at = text.indexOf(what, from);
  return at < 0 ? text.length : at + what.length;
}

function behindElement(text: string, element: string, from: number): number {
  const end = new RegExp(`</${element}[^>]*>`, 'gi');
  end.lastIndex = from;
  return end.test(text) ? end.lastIndex : text.length;
}
