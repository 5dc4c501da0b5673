/**
 * Implements the extractive summarizer: no model, no invented text, the same words for the same steps. It keeps the user's demands word for word,
 * decisions, failures, the plan, the first and last step, and, with the rest of its budget, the values in calls. Linear time. Pure.
 */
import { spellValue } from '../conversation/messages.ts';
import { emptyNotes, note, type Notes } from './notes.ts';
import { sectionNames, titles, type Section, readBody, valuesOf } from './summary-text.ts';
import type { Summarizer, SummaryRequest } from './summarizer.ts';
import type { KnownValue } from './values.ts';

/** The extractive summarizer. Never rejects. */
export const extractiveSummarizer: Summarizer = {
  name: 'extractive',
  summarize: (request) => Promise.resolve(extract(request)),
};

/** Writes a summary of at most `budget.max` tokens; undefined if nothing fits or there is nothing to say. Never throws. */
export function extract({ steps, earlier, known, budget, count }: SummaryRequest): string | undefined {
  const notes = emptyNotes();
  for (const body of earlier) readBody(notes, body);
  for (const step of steps) note(notes, step);
  const body = openBody({ budget, count });
  fill(body, notes, new Set(known.flatMap(valuesOf)));
  return body.text();
}

/** Offers lines in order of importance. A share is the maximum of a section; later sections get what it leaves. */
function fill(body: Body, notes: Notes, known: ReadonlySet<string>): void {
  const said = (as: 'rule' | 'wish') =>
    newest([...notes.said].flatMap(([line, is]) => (is === as ? [line] : [])));
  body.offer('steps', stepLines(notes), 'all');
  body.offer('said', said('rule'), 'all');
  if (notes.goal !== undefined && !notes.said.has(notes.goal)) body.offer('goal', [notes.goal], 0.1);
  if (notes.lastSaid !== undefined) body.offer('state', [notes.lastSaid], 0.15);
  const plan = body.offer('plan', planLines(notes), 0.12);
  body.offer('errors', newest(errorLines(notes)), 0.08);
  body.offer('prose', notes.prose, 0.3);
  body.offer('pasted', newest(notes.pasted), 0.1);
  body.offer('said', said('wish'), 0.1);
  const concluded = newest(notes.findings).filter((line) => line !== notes.lastSaid);
  body.offer('findings', concluded, 0.1);
  const planned = new Set([...notes.plan].flatMap((status) => (plan.has(planLine(status)) ? status[1] : [])));
  const isNew = ({ text }: KnownValue) => !known.has(text) && !planned.has(text);
  body.offerValues(notes.values.best(2_000).filter(isNew));
  body.offer('pasted', newest(notes.pasted), 'all');
  body.order('said', notes.said.keys());
  body.order('pasted', notes.pasted);
  body.order('errors', errorLines(notes));
  body.order('findings', notes.findings);
}

/** Returns lines newest first. */
function newest(lines: Iterable<string>): readonly string[] {
  return [...lines].toReversed();
}

function stepLines({ first, last }: Notes): readonly string[] {
  return first === undefined || last === undefined ? [] : [`first: ${first}`, `last: ${last}`];
}

/** Returns the plan's lines, shorter lists first: the list of finished items grows. */
function planLines({ plan }: Notes): readonly string[] {
  return [...plan].toSorted(([, a], [, b]) => a.length - b.length).map(planLine);
}

function planLine([status, items]: readonly [string, readonly string[]]): string {
  return `${status}: ${items.map((item) => JSON.stringify(item)).join(', ')}`;
}

function errorLines({ errors }: Notes): readonly string[] {
  return [...errors].map(([line, tool]) => `${tool}: ${JSON.stringify(line)}`);
}

interface Body {
  /** Offers lines, best first, for a share of the aim, or for `all` of the maximum. Returns all lines of the section. */
  offer(section: Section, lines: readonly string[], share: number | 'all'): ReadonlySet<string>;
  /** Offers values for the rest of the aim, best first. */
  offerValues(values: readonly KnownValue[]): void;
  /** Sorts the lines of a section that were offered in another order. */
  order(section: Section, lines: Iterable<string>): void;
  /** Returns the summary; undefined if no line was accepted. */
  text(): string | undefined;
}

/** Minimum tokens of a section, however small its share: a line or two. */
const minSection = 60;

/** Number of rejected offers in a row after which the rest of a list is skipped: few of them would still fit. */
const maxRejected = 40;

function openBody({ budget, count }: Pick<SummaryRequest, 'budget' | 'count'>): Body {
  const max = budget.max;
  const aim = Math.min(budget.aim, max);
  const taken = new Map<Section, Set<string>>();
  const groups = new Map<string, string[]>();
  let used = 0;

  /** Counts the tokens of a line. The counts add up to that of the text, except for a few tokens. */
  function costOf(section: Section, line: string): number {
    return count(`- ${line}\n`) + (taken.has(section) ? 0 : count(`${titles[section]}\n`));
  }

  return {
    offer(section, lines, share) {
      const limit = share === 'all' ? max : Math.min(aim, used + Math.max(aim * share, minSection));
      takeAll(lines, (line) => {
        if (taken.get(section)?.has(line)) return true;
        const cost = costOf(section, line);
        if (used + cost > limit) return false;
        used += cost;
        taken.set(section, (taken.get(section) ?? new Set()).add(line));
        return true;
      });
      return taken.get(section) ?? new Set();
    },
    offerValues(values) {
      takeAll(values, ({ group, text }) => {
        const known = groups.get(group);
        const spelled = spellValue(text);
        const title = groups.size === 0 ? count(`${titles.values}\n`) : 0;
        const cost = count(`${spelled}, `) + (known ? 0 : count(`- ${group}: \n`) + title);
        if (used + cost > aim) return false;
        used += cost;
        if (known) known.push(spelled);
        else groups.set(group, [spelled]);
        return true;
      });
    },
    order(section, lines) {
      const of = taken.get(section);
      if (of) taken.set(section, new Set([...lines].filter((line) => of.has(line))));
    },
    text() {
      for (;;) {
        const text = written(taken, groups);
        if (text === '') return undefined;
        const over = count(text) - max;
        if (over <= 0) return text;
        // Counting by lines misses a few tokens: drop a few values, else lines from the end.
        if (!dropLast(groups, over)) dropLine(taken);
      }
    },
  };
}

/** Takes the items that fit, until many in a row have not. */
function takeAll<T>(items: readonly T[], take: (item: T) => boolean): void {
  let rejected = 0;
  for (const item of items) {
    if (take(item)) rejected = 0;
    else if (++rejected > maxRejected) return;
  }
}

function written(taken: ReadonlyMap<Section, Set<string>>, groups: ReadonlyMap<string, string[]>): string {
  return sectionNames
    .flatMap((section) => {
      const lines =
        section === 'values'
          ? [...groups].map(([group, values]) => `${group}: ${values.join(', ')}`)
          : [...(taken.get(section) ?? [])];
      return lines.length === 0 ? [] : [titles[section], ...lines.map((line) => `- ${line}`)];
    })
    .join('\n');
}

/** Removes at least as many values as there are excess tokens; false if there are none. */
function dropLast(groups: Map<string, string[]>, over: number): boolean {
  let dropped = 0;
  for (const [group, values] of [...groups].toReversed()) {
    while (dropped < over && values.pop() !== undefined) dropped++;
    if (values.length === 0) groups.delete(group);
    if (dropped >= over) break;
  }
  return dropped > 0;
}

/** Removes the last line of the least important section. */
function dropLine(taken: Map<Section, Set<string>>): void {
  const spare: readonly Section[] = [
    'findings',
    'pasted',
    'prose',
    'errors',
    'plan',
    'state',
    'goal',
    'said',
  ];
  const section = spare.find((name) => taken.has(name)) ?? [...taken.keys()].at(-1);
  const lines = section === undefined ? undefined : taken.get(section);
  if (section === undefined || lines === undefined) return;
  const [last] = [...lines].toReversed();
  if (last !== undefined) lines.delete(last);
  if (lines.size === 0) taken.delete(section);
}
