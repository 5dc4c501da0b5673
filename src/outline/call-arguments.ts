/**
 * Reads arguments of calls that later calls use again: plans, and settings such as limits of time. Pure; linear in its input.
 */
import { isRecord, type JsonRecord } from '../conversation/json-scan.ts';
import { commandIn, countOf, oneLine, quoted } from './outcome.ts';

/** Maximum items that one line names; the rest are counted. */
export const maxJoined = 12;

/** An item of a plan. `words` is empty if none of its values is a text of several words; `also` if there is no other such text. */
export type PlanItem = { readonly status: string; readonly words: string; readonly also: string };

/**
 * Finds a plan in the arguments of a call: a list of items with a status. Tools for plans have many names, but share this shape. Undefined
 * if there is no plan.
 */
export function planIn(sent: JsonRecord): readonly PlanItem[] | undefined {
  const list = planItems(sent) ?? [];
  const items = list.flatMap(({ status, ...rest }) => {
    const texts = Object.values(rest).filter((value) => typeof value === 'string');
    const [words = '', also = ''] = texts.filter((text) => severalWords.test(text.trim()));
    return typeof status === 'string' ? [{ status, words, also }] : [];
  });
  return items.length > 0 && items.length === list.length ? items : undefined;
}

const severalWords = /[\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u;

/** Returns the list in a call's arguments whose items all have a status; undefined if there is none. */
export function planItems(sent: JsonRecord): readonly JsonRecord[] | undefined {
  return Object.values(sent).find(
    (inner): inner is readonly JsonRecord[] =>
      Array.isArray(inner) && inner.length > 0 && inner.every((item) => isRecord(item) && 'status' in item),
  );
}

const isDone = /^(?:completed?|done|finished)$/i;

/** Writes a plan: a new one as a whole, a later one by its progress. Items that `isNew` does not accept are counted only. */
export function planWords(
  items: readonly PlanItem[],
  isNew: (words: string) => boolean = () => true,
): string {
  const done = items.filter(({ status }) => isDone.test(status)).length;
  const now = items.find(({ status }) => isNow.test(status));
  const shown = done === 0 ? items.slice(0, maxJoined) : now ? [now] : [];
  const words = shown
    .map((item) => (isNew(item.words) ? quoted(item.words, 80) : ''))
    .filter((text) => text !== '');
  if (done === 0) return words.length > 0 ? words.join(', ') : countOf(items.length, 'item');
  return `${done} of ${items.length} done${words.length === 0 ? '' : `, ${oneLine(now!.status)} ${words.join('')}`}`;
}

const isNow = /progress|active|doing/i;

/** Writes a plan as it stands, in its own words: the next call of its tool repeats them. */
export function wholePlan(items: readonly PlanItem[]): string {
  return [...Map.groupBy(items, ({ status }) => status)]
    .map(([status, of]) => {
      const texts = of.map(
        ({ words, also }) => `"${oneLine(words)}"${also === '' ? '' : ` (${oneLine(also)})`}`,
      );
      return `${oneLine(status)}: ${texts.join(', ')}`;
    })
    .join('; ');
}

// Settings

/** Arguments that are content, or say how a tool is to work: no line quotes them. */
export const silent =
  /^(?:content|(?:new|old)_?(?:string|str|text|source|content)|text|body|patch|diff|code|prompt|description|explanation|thought|reason(?:ing)?|timeout\w*|limit|offset|head_limit|output_mode|replace_all|run_in_background|multiline|block|type|language|encoding|-\w+)$/i;

/** Matches a line that ends every message of a commit. */
const trailer = /^(?:[A-Z][\w-]{0,40}-[Bb]y): [^\n]{1,100}$/m;

/**
 * Returns what says how a tool is to work, and so is used again: large numbers, such as limits of time, names in snake case, and the trailer of
 * a commit.
 */
export function settingsOf(sent: JsonRecord): readonly string[] {
  const [signed] = trailer.exec((commandIn(sent) ?? '').slice(0, maxScript)) ?? [];
  return (signed === undefined ? [] : [oneLine(signed)]).concat(scalarsOf(sent));
}

/** UTF-16 units of a command that are searched. */
const maxScript = 10_000;

function scalarsOf(sent: JsonRecord): readonly string[] {
  return Object.entries(sent).flatMap(([key, value]) => {
    if (!silent.test(key) || key === 'offset' || key === 'limit') return [];
    if (typeof value === 'number') return value >= 100 ? [`${key} ${value}`] : [];
    return typeof value === 'string' && /^[a-z]{1,20}(?:_[a-z]{1,20}){1,4}$/.test(value) ? [value] : [];
  });
}
