/**
 * The extractive summarizer: no model, nothing made up, the same words for the same steps. It keeps what the user demanded word for word,
 * what was decided, what failed, how the plan stands, the first and last step, and, for all the rest of its budget, what the calls named.
 * Time is linear in what it reads. Pure.
 */
import { emptyNotes, note, type Notes } from './notes.ts';
import { sectionNames, spellValue, titles, type Section, readBody, valuesOf } from './summary-text.ts';
import type { Summarizer, SummaryRequest } from './summarizer.ts';
import type { KnownValue } from './values.ts';

/** `extract` as a summarizer. Never rejects. */
export const extractiveSummarizer: Summarizer = {
  name: 'extractive',
  summarize: (request) => Promise.resolve(extract(request)),
};

/** At most `budget.most` tokens; undefined where nothing fits, or nothing was said. Never throws. */
export function extract({ steps, earlier, known, budget, count }: SummaryRequest): string | undefined {
  const notes = emptyNotes();
  for (const body of earlier) readBody(notes, body);
  for (const step of steps) note(notes, step);
  const body = openBody({ budget, count });
  fill(body, notes, new Set(known.flatMap(valuesOf)));
  return body.text();
}

/** In the order of what must not be missing. A share is what a section may have at most; what it leaves goes to those behind it. */
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

/** Newest first, to be offered so. */
function newest(lines: Iterable<string>): readonly string[] {
  return [...lines].toReversed();
}

function stepLines({ first, last }: Notes): readonly string[] {
  return first === undefined || last === undefined ? [] : [`first: ${first}`, `last: ${last}`];
}

/** What is still to be done before what is done: that list grows. */
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
  /** Offers lines, best first: for a share of what is aimed at, or `all` that may be. Returns all lines that the section has. */
  offer(section: Section, lines: readonly string[], share: number | 'all'): ReadonlySet<string>;
  /** Offers values for what is left of the aim, best first. */
  offerValues(values: readonly KnownValue[]): void;
  /** The lines in the order given, for a section whose lines were offered in another. */
  order(section: Section, lines: Iterable<string>): void;
  /** Undefined where nothing was taken. */
  text(): string | undefined;
}

/** Tokens that a section may have however small its share: a line or two. */
const fewest = 60;

/** Offers refused in a row before the rest of a list is not looked at: shorter ones may still fit, but not many. */
const patience = 40;

function openBody({ budget, count }: Pick<SummaryRequest, 'budget' | 'count'>): Body {
  const most = budget.most;
  const aim = Math.min(budget.aim, most);
  const taken = new Map<Section, Set<string>>();
  const groups = new Map<string, string[]>();
  let used = 0;

  /** Counts of lines add up to that of the text, but for a token here and there. */
  function costOf(section: Section, line: string): number {
    return count(`- ${line}\n`) + (taken.has(section) ? 0 : count(`${titles[section]}\n`));
  }

  return {
    offer(section, lines, share) {
      const limit = share === 'all' ? most : Math.min(aim, used + Math.max(aim * share, fewest));
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
        const over = count(text) - most;
        if (over <= 0) return text;
        // What counting by lines missed is a few tokens: a few values, or else lines from the end.
        if (!dropLast(groups, over)) dropLine(taken);
      }
    },
  };
}

/** Takes what fits, until nothing has for a while. */
function takeAll<T>(items: readonly T[], take: (item: T) => boolean): void {
  let refused = 0;
  for (const item of items) {
    if (take(item)) refused = 0;
    else if (++refused > patience) return;
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

/** Takes out at least so many values as there are tokens over; false where there are none. */
function dropLast(groups: Map<string, string[]>, over: number): boolean {
  let dropped = 0;
  for (const [group, values] of [...groups].toReversed()) {
    while (dropped < over && values.pop() !== undefined) dropped++;
    if (values.length === 0) groups.delete(group);
    if (dropped >= over) break;
  }
  return dropped > 0;
}

/** Takes out the last line of the section that can be spared best. */
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
