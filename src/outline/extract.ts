/**
 * Implements the extractive summarizer: no model, no invented text, the same words for the same steps. It keeps what the user asked word for word, a
 * log of what was done, what was found, the files, and what is open. Linear time. Pure.
 */
import { spellValue } from '../conversation/messages.ts';
import type { OutlineLine } from './rank.ts';
import type { Summarizer, SummaryRequest } from './summarizer.ts';
import { summaryLines } from './summary-lines.ts';
import { type Section, spellSections, spellValues, titles } from './summary-text.ts';

/** The extractive summarizer. Never rejects. */
export const extractiveSummarizer: Summarizer = {
  name: 'extractive',
  summarize: (request) => Promise.resolve(extract(request)),
};

/** Writes a summary of at most `budget.max` tokens; undefined if nothing fits or there is nothing to say. Never throws. */
export function extract({ steps, earlier, known, budget, count }: SummaryRequest): string | undefined {
  const lines = summaryLines({ steps, earlier, known });
  const aim = Math.min(budget.aim, budget.max);
  const taken: OutlineLine[] = [];
  const begun = new Set<string>();
  let used = 0;
  for (const line of lines) {
    const cost = costOf(line, begun, count);
    if (used + cost > (line.isBinding ? budget.max : aim)) break;
    used += cost;
    begun.add(line.section);
    if (line.group !== undefined) begun.add(groupKey(line.group));
    taken.push(line);
  }
  for (;;) {
    const text = spell(taken);
    if (text === '') return undefined;
    if (count(text) <= budget.max) return text;
    taken.pop();
  }
}

function groupKey(group: string): string {
  return `= ${group}`;
}

function costOf(
  { section, text, group }: OutlineLine,
  begun: ReadonlySet<string>,
  count: SummaryRequest['count'],
): number {
  const title = begun.has(section) ? 0 : count(`${titles[section]}\n`);
  if (group === undefined) return title + count(`- ${text}\n`);
  return (
    title +
    count(`${section === 'named' ? spellValue(text) : text}, `) +
    (begun.has(groupKey(group)) ? 0 : count(`- ${group}: \n`))
  );
}

function spell(taken: readonly OutlineLine[]): string {
  const items: Partial<Record<Section, readonly string[]>> = {};
  for (const [section, lines] of Map.groupBy(taken, (line) => line.section)) {
    const groups = Map.groupBy(lines, ({ group }) => group);
    const valued = [...groups].flatMap(([group, of]) =>
      group === undefined
        ? []
        : section === 'named'
          ? [
              spellValues(
                group,
                of.map(({ text }) => text),
              ),
            ]
          : [`${group}: ${of.map(({ text }) => text).join(', ')}`],
    );
    const inOrder = (groups.get(undefined) ?? []).toSorted((a, b) => a.at - b.at);
    const single = section === 'found' ? joinedReplies(inOrder) : inOrder.map(({ text }) => text);
    items[section] = [...single, ...valued];
  }
  return spellSections(items);
}

/** Joins sentences of one reply that follow each other. */
function joinedReplies(lines: readonly OutlineLine[]): readonly string[] {
  return lines
    .reduce<{ text: string; at: number }[]>((joined, { text, at }) => {
      const last = joined.at(-1);
      if (last && at >= 0 && Math.floor(last.at) === Math.floor(at)) last.text += ` ${text}`;
      else joined.push({ text, at });
      return joined;
    }, [])
    .map(({ text }) => text);
}
