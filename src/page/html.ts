/** Writes HTML. Every value in a template is escaped unless it is HTML itself, so no content of a conversation can become markup. */
import { usdText as plainUsdText } from '../receipts/detail.ts';

/** Text that is HTML already. Only `html` makes it. */
export type Html = { readonly markup: string };

type TemplateValue = string | number | Html | undefined | false | readonly Html[];

/** Fills a template with escaped values. Undefined and false are left out; lists of HTML are joined. */
export function html(literals: TemplateStringsArray, ...values: readonly TemplateValue[]): Html {
  let markup = literals[0] ?? '';
  for (const [at, value] of values.entries()) markup += spelled(value) + (literals[at + 1] ?? '');
  return { markup };
}

function spelled(value: TemplateValue): string {
  if (value === undefined || value === false) return '';
  if (typeof value === 'object') return 'markup' in value ? value.markup : value.map(spelled).join('');
  return escaped(String(value));
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes a text for element content and quoted attributes. Characters that HTML forbids, or that reorder what is shown, become visible marks. */
function escaped(text: string): string {
  return text
    .replaceAll(/[&<>"']/g, (character) => entities[character]!)
    .replaceAll(hidden, (character) => (/[\n\t]/.test(character) ? character : '\u{FFFD}'));
}

/** Control characters, and marks that change the direction of text. */
const hidden = /[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu;

/** Spells dollars with the minus sign of typography. */
export function usdText(usd: number | undefined): string {
  return plainUsdText(usd, '−');
}

/** Spells a time of day, or a date with the time, in UTC; the script shows it in the zone of the reader. */
export function timeTag(at: number): Html {
  const iso = new Date(at).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 19).replace('T', ' ')}</time>`;
}

/** Shortens a name for a list. */
export function shortName(name: string | undefined, length = 28): string {
  if (name === undefined) return 'unknown';
  return name.length <= length ? name : `${name.slice(0, length - 1)}…`;
}
