/**
 * Puts the lines of a summary together within a budget: lines are offered best first and taken while they fit; they stand in the order of
 * the sections. Pure.
 */
import { type Section, sectionNames, spellValue, titles } from './sections.ts';
import type { SummaryRequest } from './summarizer.ts';
import type { KnownValue } from './values.ts';

export interface Body {
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

export function openBody({ budget, count }: Pick<SummaryRequest, 'budget' | 'count'>): Body {
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
