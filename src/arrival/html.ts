/**
 * Shrinks a fetched web page to its main text: headings, paragraphs, lists, tables, code and links, without scripts, styles, navigation and
 * forms. Lossy. A page that looks written by hand is source code, and is not changed.
 */
import { reportsFailure, type Reader } from './kind.ts';
import { mainTextOfPage } from './markers.ts';

/** Minimum length of the main text, in UTF-16 units: with less, scripts create the page. */
const minMainText = 100;
/** Smaller pages are not changed, in UTF-16 units. */
const minPage = 4_000;

export const html: Reader = (text) => {
  const beginning = text.slice(0, 2_000);
  if (!beginning.includes('<') || !beginsPage.test(beginning) || !wasFetched(text)) return undefined;
  return {
    kind: 'html',
    drafts({ lossless }) {
      if (lossless || text.length < minPage || reportsFailure(text)) return [];
      const main = mainText(text);
      return main.length < minMainText
        ? []
        : [{ text: `${mainTextOfPage}\n${main}`, isLossless: false, note: 'main text of a web page' }];
    },
  };
};

const beginsPage = /<!doctype html|<html[\s>]/i;

/** True if the start of a page has two of the signs that servers and build tools leave, and authors rarely write. */
function wasFetched(text: string): boolean {
  const beginning = text.slice(0, 50_000);
  return marks.filter((mark) => mark.test(beginning)).length >= 2;
}

const marks = [
  /^HTTP\/[\d.]+ \d{3}/,
  /<link[^>]{0,200} rel=["']?canonical/i,
  /<meta[^>]{0,200} property=["']?og:/i,
  /<script[^>]{0,200} (?:nonce=|type=["']?application\/ld\+json|src=["']?(?:https?:)?\/\/)/i,
  /<[a-z][^>]{0,200} data-[\w-]{1,40}=/i,
  /(?<![^\n])[^\n]{5000}/,
];

/** Elements whose content is not HTML. */
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

const tagPattern = /<(?:!--|[!?]|(\/?)([a-zA-Z][a-zA-Z0-9:-]*))/g;

/** Extracts the main text in one pass. An unclosed tag, comment or script takes the rest of the page, so nothing is searched twice. */
function mainText(text: string): string {
  const page = createPageText(text);
  let at = 0;
  for (;;) {
    tagPattern.lastIndex = at;
    const match = tagPattern.exec(text);
    const start = match?.index ?? text.length;
    if (start > at) page.text(text.slice(at, start));
    if (!match) return page.result();
    const [opening, slash, word] = match;
    at = endOf(text, opening === '<!--' ? '-->' : '>', start);
    if (word === undefined) continue;
    const element = word.toLowerCase();
    if (slash === '/') page.close(element);
    else if (raw.has(element)) at = endOfElement(text, element, at);
    else page.open(element, text.slice(start, at));
  }
}

/** Returns the end of the next `what`; that of the text if there is none. */
function endOf(text: string, what: string, from: number): number {
  const at = text.indexOf(what, from);
  return at < 0 ? text.length : at + what.length;
}

function endOfElement(text: string, element: string, from: number): number {
  const end = new RegExp(`</${element}`, 'gi');
  end.lastIndex = from;
  return end.test(text) ? endOf(text, '>', end.lastIndex) : text.length;
}

/** Writes the text of a page as its tags arrive, in the few signs of Markdown that models read. */
type PageText = {
  open(element: string, tag: string): void;
  close(element: string): void;
  text(piece: string): void;
  result(): string;
};

const blocks = new Set(
  'p div section article main ul ol table thead tbody tr blockquote dl dt dd figure figcaption details summary address hr br title'.split(
    ' ',
  ),
);
/** Elements around the main text of a page. */
const around = new Set(['nav', 'aside', 'footer', 'form', 'button', 'select', 'dialog', 'menu']);

function createPageText(page: string): PageText {
  const out: string[] = [];
  const whole = ['main', 'article'].find((element) => new RegExp(`<${element}[\\s>]`, 'i').test(page));
  let inside = 0;
  /** The element that is being skipped, and its depth in elements of the same name. */
  let skipped: { element: string; depth: number } | undefined;
  let preformatted = 0;
  let list = 0;
  let link: { href: string; at: number } | undefined;

  const isSilent = (): boolean => skipped !== undefined || (whole !== undefined && inside === 0);
  const write = (piece: string): void => {
    if (!isSilent()) out.push(piece);
  };
  /** Begins a new line if the last one has text. */
  const line = (): void => {
    if (out.at(-1)?.endsWith('\n') === false) write('\n');
  };
  const closeLink = (): void => {
    if (!link) return;
    const label = out.splice(link.at).join('').trim();
    out.push(label === '' ? '' : `[${label}](${link.href})`);
    link = undefined;
  };

  return {
    open(element, tag) {
      if (skipped?.element === element) skipped.depth++;
      if (skipped) return;
      if (element === whole) inside++;
      if (around.has(element)) {
        skipped = { element, depth: 1 };
        return;
      }
      const heading = /^h([1-6])$/.exec(element);
      if (heading) write(`\n\n${'#'.repeat(Number(heading[1]))} `);
      else if (element === 'li') {
        line();
        write(`${'  '.repeat(Math.max(0, Math.min(list, 6) - 1))}- `);
      } else if (element === 'td' || element === 'th') write(' | ');
      else if (element === 'code' && preformatted === 0) write('`');
      else if (element === 'pre') write('\n\n```\n');
      else if (element === 'img') write(attribute(tag, 'alt'));
      else if (blocks.has(element)) line();
      if (element === 'pre') preformatted++;
      if (element === 'ul' || element === 'ol') list++;
      if (element !== 'a' || isSilent()) return;
      closeLink();
      const href = attribute(tag, 'href');
      if (/^(?!javascript:|data:|#).{1,300}$/i.test(href)) link = { href, at: out.length };
    },
    close(element) {
      if (skipped) {
        if (skipped.element === element && --skipped.depth === 0) skipped = undefined;
        return;
      }
      if (element === 'a') closeLink();
      if (element === 'code' && preformatted === 0) write('`');
      if (element === 'pre' && preformatted > 0 && --preformatted === 0) write('\n```\n\n');
      if ((element === 'ul' || element === 'ol') && list > 0) list--;
      if (element === 'p' || /^h[1-6]$/.test(element)) write('\n\n');
      else if (blocks.has(element)) line();
      if (element === whole && inside > 0) inside--;
    },
    text(piece) {
      let plain = piece;
      if (preformatted === 0) {
        plain = piece.replace(/\s+/g, ' ');
        if (out.at(-1)?.endsWith('\n') === true) plain = plain.trimStart();
      }
      if (plain !== '') write(plain.replace(entity, decode));
    },
    result() {
      closeLink();
      return out
        .join('')
        .split('\n')
        .map(withoutBlanksAtEnd)
        .join('\n')
        .replace(/\n{3,}/g, '\n\n')
        .trim();
    },
  };
}

/** Removes trailing blanks. Done by hand: a regular expression would take quadratic time on long runs of blanks. */
function withoutBlanksAtEnd(line: string): string {
  let end = line.length;
  while (end > 0 && (line[end - 1] === ' ' || line[end - 1] === '\t')) end--;
  return line.slice(0, end);
}

function attribute(tag: string, name: string): string {
  const match = new RegExp(`\\s${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s>]*))`, 'i').exec(
    tag.slice(0, 2_000),
  );
  return (match?.[1] ?? match?.[2] ?? match?.[3] ?? '').replace(entity, decode).trim();
}

const entity = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]{2,8}));/g;

/** The common ones among the 2,231 entity names of HTML; others are not decoded. */
const named: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  ndash: '\u2013',
  mdash: '\u2014',
  lsquo: '\u2018',
  rsquo: '\u2019',
  ldquo: '\u201c',
  rdquo: '\u201d',
  laquo: '\u00ab',
  raquo: '\u00bb',
  hellip: '\u2026',
  bull: '\u2022',
  middot: '\u00b7',
  copy: '\u00a9',
  reg: '\u00ae',
  trade: '\u2122',
  times: '\u00d7',
  deg: '\u00b0',
  euro: '\u20ac',
  pound: '\u00a3',
  rarr: '\u2192',
  larr: '\u2190',
  sect: '\u00a7',
  para: '\u00b6',
};

function decode(whole: string, decimal?: string, hex?: string, name?: string): string {
  if (name !== undefined) return named[name] ?? whole;
  const point = decimal === undefined ? Number.parseInt(hex!, 16) : Number(decimal);
  const isSign = point > 31 && point <= 0x10_ffff && (point < 0xd800 || point > 0xdfff);
  return isSign ? String.fromCodePoint(point) : whole;
}
