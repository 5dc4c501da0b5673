/**
 * Puts the lines of an outline in order of importance: what was done, what was found, what tools showed and which files were touched take turns, each
 * with its share. The order does not depend on the room, so a text with more room has all that one with less room has. Linear, but for
 * sorting. Pure.
 */
import { groupBy } from '../es2024.ts';
import type { Fact } from './facts.ts';
import { changesOutside } from './lib/effects.ts';
import { inFolder, projectFolders } from './lib/work-folders.ts';
import { gitChange, shortNames } from './outcome.ts';
import { termsOf } from './sentences.ts';
import { type readSections, type Section, spellQuote } from './summary-text.ts';
import { stepLines, type StepsLine, type StepWords } from './step-line.ts';

/** A call, with the index of its step. */
export type SurveyedCall = { readonly at: number; readonly words: StepWords };

/** A line of an outline. */
export type OutlineLine = {
  readonly section: Section;
  readonly text: string;
  /** Its place among the lines of its section; may be less than zero. */
  readonly at: number;
  /** The place of its last sentence or call, if it has several. */
  readonly end?: number;
  /** The beginning of an item that holds this text and others: the tool and argument of a value, the folder of a file. */
  readonly group?: string;
  /** The line that announces the list of which it is an item. */
  readonly lead?: string;
  /** Tells the calls that the line joins in several lines, divided at places between them. */
  readonly split?: (places: readonly number[]) => readonly OutlineLine[];
  /** True for what the user asked, which may take more room than the rest. */
  readonly isBinding?: boolean;
  /** True for what came of a turn: names of calls that are told in short give way to it. */
  readonly isNeeded?: boolean;
  /** True for a call that the user refused or answered. */
  readonly isUsers?: boolean;
  /** True for calls that changed something outside: a commit, a push, an issue. */
  readonly isOutside?: boolean;
  /** True for calls that an earlier text told in short already. */
  readonly isInShort?: boolean;
  /** True for a sentence of a file or of the places of a search: it can be read again. */
  readonly isOfFile?: boolean;
  /** True for a sentence of a reply that ends a turn, and for the last one of a result that does. */
  readonly isFinal?: boolean;
  /** True for what is told of a reply that ended a turn besides what says most of it. */
  readonly isBeside?: boolean;
  /** True for a line of the user's whose message goes on, and for an item of a list that does. */
  readonly hasMore?: boolean;
  /** The numbers of its original, and of the one that has its last call. */
  readonly original?: number | undefined;
  readonly lastOriginal?: number | undefined;
  /** The id of its step, where steps have ids. */
  readonly id?: string;
};

/** Lines that take turns, best first, and their share. */
export type Share = { readonly lines: readonly OutlineLine[]; readonly share: number };

/** Merges lists: the next line is always of the list that has used least of its share. */
export function inTurns(lists: readonly Share[]): readonly OutlineLine[] {
  const used = lists.map(() => 0);
  const next = lists.map(() => 0);
  const merged: OutlineLine[] = [];
  for (;;) {
    let best = -1;
    for (const [at, { lines }] of lists.entries())
      if (next[at]! < lines.length && (best < 0 || used[at]! < used[best]!)) best = at;
    if (best < 0) return merged;
    const line = lists[best]!.lines[next[best]!]!;
    next[best]!++;
    used[best]! += (line.text.length + 8) / lists[best]!.share;
    merged.push(line);
  }
}

/** A line of the log of an earlier summary; `of` says which. */
type EarlierLine = OutlineLine & { readonly of: number };

/** Returns the log of earlier summaries as lines, in order, with `stepsAhead` steps before each summary. */
export function earlierLog(
  before: readonly ReturnType<typeof readSections>[],
  stepsAhead: readonly number[],
): readonly EarlierLine[] {
  const seen = new Set<string>();
  let current: number | undefined;
  const items = before
    .flatMap(({ log }, of) => log.map((item) => ({ ...item, of })))
    .map(({ original, ...item }) => {
      // Originals of two summaries have the same numbers.
      if (before.length === 1) current = original ?? current;
      return { ...item, ...(current !== undefined && { original: current }) };
    })
    // A call may be made twice; words that are repeated say nothing new.
    .filter(({ section, text }) => section === 'done' || (!seen.has(text) && seen.add(text)));
  return items.map((item, index) => ({
    ...item,
    at: index + (stepsAhead[item.of] ?? 0),
    // A reply ahead of the user's words ended a turn.
    ...(item.section === 'found' && items[index + 1]?.section === 'asked' && { isFinal: true }),
    ...(item.section === 'done' && isInShort.test(item.text) && { isInShort: true }),
  }));
}

const isInShort = /^\((?:\d+ calls?(?: in short| left out)?|still in the context): .*\)$/;

/** Sorts lines of a log; what a result says stands behind its call. */
export function inLogOrder(lines: readonly OutlineLine[]): readonly OutlineLine[] {
  const behind = ({ section }: OutlineLine): number => (section === 'done' ? 0 : 1);
  return lines.toSorted(
    (a, b) => Math.floor(a.at) - Math.floor(b.at) || behind(a) - behind(b) || a.at - b.at,
  );
}

/** Divides lines that join calls, if wished, where something is told that stands between these; a call whose result is told stands alone. */
export function dividedLines(
  told: readonly OutlineLine[],
  done: readonly OutlineLine[],
  isDivided: boolean,
): { readonly told: readonly OutlineLine[]; readonly others: readonly OutlineLine[] } {
  const places = (isDivided ? told : [])
    .flatMap(({ section, at }) => {
      const step = Math.floor(at);
      return section === 'found' ? [step] : section === 'shown' ? [step - 0.5, step + 0.5] : [];
    })
    .toSorted((a, b) => a - b);
  const divided = (line: OutlineLine): readonly OutlineLine[] =>
    line.split && places.some((place) => place > line.at && place < line.end!) ? line.split(places) : [line];
  const chosen = new Set(told);
  return {
    told: told.flatMap(divided),
    others: done.filter((line) => !chosen.has(line)).flatMap(divided),
  };
}

/** Returns how many lines have at most `units` UTF-16 units together. */
export function countWithin(lines: readonly OutlineLine[], units: number): number {
  let left = units;
  return lines.filter(({ text }) => (left -= text.length) >= 0).length;
}

/** Returns sentences of replies and of results, best first. One whose terms a better one has comes last; replies count before results. */
export function factLines(facts: readonly Fact[], known: ReadonlySet<string>): readonly OutlineLine[] {
  const covered = new Set<string>(known);
  const seen = new Set<string>();
  const fresh: Fact[] = [];
  const repeated: Fact[] = [];
  const byScore = facts.toSorted((a, b) => b.score - a.score || b.at - a.at);
  for (const fact of [...byScore.filter(isReply), ...byScore.filter((one) => !isReply(one))]) {
    if (seen.has(fact.text)) continue;
    seen.add(fact.text);
    const pairs = pairsOf(fact.terms);
    const added = pairs.filter((pair) => !covered.has(pair)).length;
    (added * 7 >= pairs.length ? fresh : repeated).push(fact);
    for (const pair of pairs) covered.add(pair);
  }
  return [...fresh.toSorted((a, b) => b.score - a.score), ...repeated].map((fact) =>
    isReply(fact)
      ? {
          section: 'found',
          text: fact.text,
          at: fact.at,
          ...(fact.lead && { lead: fact.lead }),
          ...(fact.hasMore && { hasMore: true }),
          ...(fact.from === 'final' && { isFinal: true }),
        }
      : {
          section: 'shown',
          text: spellQuote(fact.tool === '' ? 'text' : fact.tool, fact.text),
          at: fact.at,
          ...(fact.isClosing && { isFinal: true }),
        },
  );
}

/** Tells an item with the line that announces its list, unless that is told. */
export function withLead({ lead, text }: OutlineLine, told: string): string {
  return lead === undefined || told.includes(lead) || told.includes(text.slice(0, 16))
    ? text
    : `${lead} ${/^(?:[2-9]|\d\d)[.)] /.test(text) ? '… ' : ''}${text}`;
}

/** Puts an item or a sentence in the place of its beginning in what is told of the same reply; undefined if that lacks it. */
export function withWhole(told: string, { text }: OutlineLine): string | undefined {
  const begin = /^(?:\d{1,3}[.)] .{6}|.{16})/u.exec(text)?.[0];
  const at = begin === undefined ? -1 : told.indexOf(begin);
  if (at < 0) return undefined;
  let end = begin!.length;
  while (end < text.length && told[at + end] === text[end]) end++;
  if (end === text.length) return told;
  if (text[end - 1] === ' ') end--;
  const rest = told.slice(at + end);
  if (!/^(?:[;:]|$| …| \()/.test(rest)) return undefined;
  const behind = rest.replace(/^:? …(?=;)/, '');
  return told.slice(0, at) + (behind.startsWith(';') ? text.replace(/\.$/, '') : text) + behind;
}

/** Sentences of one reply or result that come before those of the next. */
const maxOfEach = 3;

/** Divides lines into the best ones of each reply or result, and the others. */
export function firstOfEach(
  lines: readonly OutlineLine[],
): readonly [readonly OutlineLine[], readonly OutlineLine[]] {
  const groups = [...groupBy(lines, ({ at }) => Math.floor(at)).values()];
  const best = new Set(groups.flatMap((group) => group.slice(0, maxOfEach)));
  return [lines.filter((line) => best.has(line)), lines.filter((line) => !best.has(line))];
}

/** True for a sentence of a result that the log of calls quotes, or of a failure, whose line in the log is enough. */
export function isLogged(
  { from, at, text }: Fact,
  calls: ReadonlyMap<number, SurveyedCall['words']>,
): boolean {
  const words = from === 'result' ? calls.get(Math.floor(at)) : undefined;
  if (words === undefined || words.hasFailed) return words !== undefined;
  const quote = /^"(.*?)(?: …)?"$/.exec(words.outcome)?.[1];
  return quote?.startsWith(text.replaceAll('"', "'")) === true;
}

function isReply({ from }: Fact): boolean {
  return from === 'final' || from === 'reply';
}

/**
 * Returns the log of calls: failures, refusals and edits first, then commands, then what was read. No line joins calls on both sides of a place in
 * `breaks`, which are in order.
 */
export function doneLines(
  calls: readonly SurveyedCall[],
  {
    idOf,
    breaks = [],
  }: { readonly idOf?: ((at: number) => string) | undefined; readonly breaks?: readonly number[] },
): readonly OutlineLine[] {
  const nameOfPath = shortNames(calls.flatMap(({ words: { path, folder } }) => [path, folder]));
  const isOfProject = projectFolders(calls.map((call) => call.words));
  const words = calls.map((call) =>
    isOfProject(call.words.folder) ? call.words : inFolder(call.words, nameOfPath),
  );
  const worth = (steps: readonly number[]): number =>
    Math.max(
      ...steps.map((at) => {
        const { kind, hasFailed, user } = words[at]!;
        if (user) return 4;
        if (hasFailed) return 3;
        if (kind === 'edit' || changesOutside(words[at]!)) return 3;
        if (kind === 'command' && gitChange.test(words[at]!.about)) return 3;
        return kind === 'command' || kind === 'other' ? 2 : 1;
      }),
    );
  const lineOf = ({ text, steps }: StepsLine): OutlineLine => {
    const ids = idOf ? `${idsOf(steps.map((at) => idOf(calls[at]!.at)))} ` : '';
    const isUsers = steps.some((at) => words[at]!.user !== undefined);
    const [first, last] = [steps[0]!, steps.at(-1)!];
    return {
      section: 'done',
      text: ids + text,
      at: calls[first]!.at,
      end: calls[last]!.at,
      ...(first < last && { split: (places) => linesIn(first, last + 1, places).map(lineOf) }),
      ...(isUsers && { isUsers }),
      ...(steps.some((step) => changesOutside(words[step]!)) && { isOutside: true }),
    };
  };
  const linesIn = (start: number, stop: number, places: readonly number[]): readonly StepsLine[] =>
    dividedAt(calls.slice(start, stop), places).flatMap(({ from, upTo }) =>
      stepLines(words.slice(start + from, start + upTo), nameOfPath).map(({ text, steps }) => ({
        text,
        steps: steps.map((step) => step + start + from),
      })),
    );
  return linesIn(0, calls.length, breaks)
    .map((line) => ({ line: lineOf(line), worth: worth(line.steps) }))
    .toSorted((a, b) => b.worth - a.worth || b.line.at - a.line.at)
    .map(({ line }) => line);
}

/** Divides calls at places between their steps. */
function dividedAt(
  calls: readonly SurveyedCall[],
  breaks: readonly number[],
): readonly { readonly from: number; readonly upTo: number }[] {
  const parts: { from: number; upTo: number }[] = [];
  let next = 0;
  for (const [index, { at }] of calls.entries()) {
    const isDivided = next < breaks.length && breaks[next]! < at;
    while (next < breaks.length && breaks[next]! < at) next++;
    if (isDivided || index === 0) parts.push({ from: index, upTo: index });
    parts.at(-1)!.upTo = index + 1;
  }
  return parts;
}

function idsOf(ids: readonly string[]): string {
  const [first = ''] = ids;
  return ids.length === 1 ? first : `${first}-${ids.at(-1)}`;
}

/** Returns the last segment of a path. */
export function lastSegment(path: string): string {
  return path.split('/').findLast((segment) => segment !== '') ?? path;
}

/** Writes how often something was done. */
export function timesOf(count: number): string {
  return count > 1 ? ` ×${count}` : '';
}

/** Returns what is open: items of the plan that need something. */
export function openLines(plan: ReadonlyMap<string, readonly string[]>): readonly OutlineLine[] {
  const items = [...plan].flatMap(([status, texts]) =>
    isClosed.test(status) ? [] : texts.map((text) => `${status}: ${text}`),
  );
  return items.map((text, at) => ({ section: 'open', text, at }));
}

/** Matches the status of an item that needs nothing more. */
const isClosed = /^(?:completed?|done|finished|closed|resolved|cancell?ed|skipped|success\w*)$/i;

/** Returns the pairs of adjacent terms in texts that the reader has elsewhere. */
export function pairsKnown(texts: readonly string[]): ReadonlySet<string> {
  return new Set(texts.flatMap((text) => pairsOf(termsOf(text))));
}

function pairsOf(terms: ReadonlySet<string>): readonly string[] {
  const list = [...terms];
  return list.length < 2 ? list : list.slice(1).map((term, at) => `${list[at]} ${term}`);
}
