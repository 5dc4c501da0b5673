/**
 * Implements the extractive summarizer: no model, no invented text, the same words for the same steps. A summary is a view of an outline node: what the user
 * asked word for word, what is open, then a log of what was done, what was found and the files in turns, and last values of calls. Linear time. Pure.
 */
import { spellValue } from '../conversation/messages.ts';
import { groupBy } from '../es2024.ts';
import { nodeOf } from './node.ts';
import { countWithin, inTurns, namedLines, openLines, type OutlineLine, saidLast } from './rank.ts';
import { firstSentences, joinedSentences } from './sentences.ts';
import type { Summarizer, SummaryRequest } from './summarizer.ts';
import { addTo, spellLeftOut } from './step-line.ts';
import {
  callsIn,
  readFiles,
  readLeftOut,
  readSections,
  readValues,
  type Section,
  spellSections,
  spellValues,
  titles,
} from './summary-text.ts';

/** The extractive summarizer. Never rejects. */
export const extractiveSummarizer: Summarizer = {
  name: 'extractive',
  summarize: (request) => Promise.resolve(extract(request)),
};

/** Writes a summary of at most `budget.max` tokens; undefined if nothing fits or there is nothing to say. Never throws. */
export function extract(request: SummaryRequest): string | undefined {
  const { budget, count } = request;
  const lines = historyLines(request);
  const log = lines.filter(({ section }) => section === 'done');
  const aim = Math.min(budget.aim, budget.max);
  const taken: OutlineLine[] = [];
  const begun = new Set<string>();
  let used = 0;
  let binding = 0;
  for (const line of lines) {
    if (line.isHidden) continue;
    // A value that another line tells is known.
    if (line.section === 'named' && taken.some(({ text }) => text.includes(line.text))) continue;
    const cost = costOf(line, begun, count);
    if (used + cost > (line.isBinding ? budget.max : aim)) break;
    used += cost;
    if (line.isBinding) binding = used;
    begun.add(line.section);
    if (line.group !== undefined) begun.add(groupKey(line.group));
    taken.push(line);
  }
  // Lines for calls that are left out take room, too.
  for (;;) {
    const text = spell(taken, log);
    if (text === '') return undefined;
    if (count(text) <= (taken.at(-1)!.isBinding ? budget.max : Math.min(budget.max, Math.max(aim, binding))))
      return text;
    taken.pop();
  }
}

/** UTF-16 units of other lines before values of calls take half of the rest: values help a model to go on, but do not read well. */
const maxBefore = 2000;

/** UTF-16 units of another summarizer's text that come before all other lines. */
const maxProse = 2_400;

/** The longest part of the last reply that is kept as such. */
const maxLast = 700;

/** Returns everything that a summary may say, most important first: a view of a node and of the sections of earlier summaries. */
function historyLines({
  steps,
  earlier,
  known,
  isPlanKnown = false,
}: SummaryRequest): readonly OutlineLine[] {
  const elsewhere = known.map(readSections);
  const node = nodeOf(steps, { goal: '', known: elsewhere.flatMap(({ found }) => found) });
  const before = earlier.map(readSections);
  const items = (section: Section): readonly string[] => [
    ...new Set(before.flatMap((body) => body[section])),
  ];
  const oldDone = before
    .flatMap((body) => body.done)
    .map((text, at, all) => earlierCall(text, at - all.length));
  const old = (section: Section): readonly OutlineLine[] => {
    const texts = items(section);
    return texts.map((text, at) => ({ section, text, at: at - texts.length })).toReversed();
  };

  const earlierAsked = items('asked').map((text, at, { length }) => ({ text, worth: 2, at: at - length }));
  const isKnown = new Set(earlierAsked.map(({ text }) => text));
  const [first, ...others] = [...earlierAsked, ...node.asked.filter(({ text }) => !isKnown.has(text))].map(
    (line) => ({ ...line, section: 'asked' as const, isBinding: true }),
  );
  const lastSaid = firstSentences(node.lastSaid, maxLast);
  const open = openLines(node.isPlanOver || isPlanKnown ? new Map() : node.plan, lastSaid);
  const isOldPlanOpen = node.plan.size === 0 && !node.isPlanOver && !isPlanKnown;
  const stillOpen = old('open').filter(({ text }) =>
    text.startsWith(saidLast) ? open.length === 0 && lastSaid === '' : isOldPlanOpen,
  );

  const knownFiles = new Set(
    elsewhere.flatMap((body) => body.files.flatMap((item) => readFiles(item).files)),
  );
  const touched = new Set(node.artifacts);
  const oldFiles = items('files')
    .map(readFiles)
    .flatMap(({ group, files: texts }) =>
      texts.map((text): OutlineLine => ({ section: 'files', text, group, at: -1 })),
    )
    .filter(({ text }) => !touched.has(text.replace(/ ×\d+$/, '')));
  const planned = new Set(open.map(({ text }) => text.slice(text.indexOf(': ') + 2)));
  const knownValues = new Set(
    elsewhere.flatMap(({ named }) => named.flatMap((item) => readValues(item).values)),
  );
  const named = namedLines(
    node.values(items('named').map(readValues)),
    (text) => touched.has(text) || planned.has(text) || knownValues.has(text),
  );

  const ofClient = node.prose.map((line) => ({ ...line, section: 'prose' as const }));
  const telling = ofClient.filter(({ worth }) => worth > 1);
  const prose = [...old('prose').toReversed(), ...telling.slice(0, 1)];
  const whole = countWithin(prose, maxProse);
  const turns = [
    { lines: telling.slice(1), share: 6 },
    { lines: [...prose.slice(whole), ...ofClient.filter(({ worth }) => worth <= 1)], share: 1 },
    { lines: others.filter(({ worth }) => worth <= 1).toReversed(), share: 1 },
    {
      lines: [...node.found.filter(({ text }) => !lastSaid.includes(text)), ...old('found'), ...old('shown')],
      share: 4,
    },
    { lines: [...node.done, ...oldDone.toReversed()], share: 4 },
    { lines: [...node.files.filter(({ text }) => !knownFiles.has(text)), ...oldFiles], share: 2 },
  ];
  return [
    ...(first ? [first] : []),
    ...open,
    ...stillOpen,
    ...others.filter(({ worth }) => worth > 1).toReversed(),
    ...prose.slice(0, whole),
    ...inTurns(turns, { lines: named, share: 20 }, maxBefore),
  ];
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

/** Makes a line of an item of an earlier log. */
function earlierCall(text: string, at: number): OutlineLine {
  const leftOut = readLeftOut(text);
  return { section: 'done', text, at, calls: leftOut ?? callsIn(text), ...(leftOut && { isHidden: true }) };
}

/** Returns the lines of the log that are taken, in order, with a line for the calls between them that are not. */
function withLeftOut(taken: readonly OutlineLine[], log: readonly OutlineLine[]): readonly string[] {
  const isTaken = new Set(taken);
  const texts: string[] = [];
  let leftOut = new Map<string, number>();
  const flush = (): void => {
    if (leftOut.size > 0) texts.push(spellLeftOut(leftOut));
    leftOut = new Map();
  };
  for (const line of log.toSorted((a, b) => a.at - b.at)) {
    if (!isTaken.has(line)) {
      for (const [tool, count] of line.calls ?? []) addTo(leftOut, tool, count);
      continue;
    }
    flush();
    texts.push(line.text);
  }
  flush();
  return texts;
}

function spell(taken: readonly OutlineLine[], log: readonly OutlineLine[]): string {
  const items: Partial<Record<Section, readonly string[]>> = {};
  for (const [section, lines] of groupBy(taken, (line) => line.section)) {
    const groups = groupBy(lines, ({ group }) => group);
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
    const single =
      section === 'done'
        ? withLeftOut(inOrder, log)
        : section === 'found'
          ? joinedLines(inOrder, joinedSentences)
          : section === 'asked'
            ? joinedLines(inOrder, (before, line) => `${before} / ${line}`)
            : inOrder.map(({ text }) => text);
    items[section] = [...single, ...valued];
  }
  return spellSections(items);
}

/** Joins lines of one message that follow each other. */
function joinedLines(
  lines: readonly OutlineLine[],
  join: (before: string, line: string) => string,
): readonly string[] {
  return lines
    .reduce<{ text: string; at: number }[]>((joined, { text, at }) => {
      const last = joined.at(-1);
      if (last && at >= 0 && Math.floor(last.at) === Math.floor(at)) last.text = join(last.text, text);
      else joined.push({ text, at });
      return joined;
    }, [])
    .map(({ text }) => text);
}
