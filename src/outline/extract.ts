/**
 * Implements the extractive summarizer: no model, no invented text, the same words for the same steps. It keeps what the user asked word for word, a
 * log of what was done, what was found, the files, and what is open. Linear time. Pure.
 */
import { spellValue } from '../conversation/messages.ts';
import {
  doneLines,
  factLines,
  fileLines,
  inTurns,
  isLogged,
  namedLines,
  openLines,
  type OutlineLine,
  pairsKnown,
} from './rank.ts';
import { firstSentences } from './sentences.ts';
import type { Summarizer, SummaryRequest } from './summarizer.ts';
import {
  readFiles,
  readSections,
  readValues,
  type Section,
  spellSections,
  spellValues,
  titles,
} from './summary-text.ts';
import { isClosed, survey } from './survey.ts';

/** The extractive summarizer. Never rejects. */
export const extractiveSummarizer: Summarizer = {
  name: 'extractive',
  summarize: (request) => Promise.resolve(extract(request)),
};

/** Writes a summary of at most `budget.max` tokens; undefined if nothing fits or there is nothing to say. Never throws. */
export function extract({ steps, earlier, known, budget, count }: SummaryRequest): string | undefined {
  const lines = linesOf({ steps, earlier, known });
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

/** UTF-16 units of other lines before values of calls take half of the rest: values help a model to go on, but do not read well. */
const maxBefore = 2000;

/** The longest part of the last reply that is kept as such. */
const maxLast = 700;

/** Returns everything that a summary may say, most important first. */
function linesOf({
  steps,
  earlier,
  known,
}: Pick<SummaryRequest, 'steps' | 'earlier' | 'known'>): readonly OutlineLine[] {
  const now = survey(steps);
  const before = earlier.map(readSections);
  const items = (section: Section): readonly string[] => [
    ...new Set(before.flatMap((body) => body[section])),
  ];
  const old = (section: Section): readonly OutlineLine[] => {
    const texts = items(section);
    return texts.map((text, at) => ({ section, text, at: at - texts.length })).toReversed();
  };

  const asked = new Map([...items('asked').map((text) => [text, 2] as const), ...now.asked]);
  const askedLines = [...asked].map(([text, worth], at): OutlineLine & { worth: number } => ({
    section: 'asked',
    text,
    at,
    isBinding: true,
    worth: items('asked').includes(text) ? 2 : worth,
  }));
  const [first, ...others] = askedLines;
  const lastSaid = firstSentences(now.lastSaid, maxLast);
  const open = openLines({ plan: now.plan, lastSaid }, (status) => !isClosed(status));
  const stillOpen =
    now.plan.size === 0
      ? old('open').filter(({ text }) => lastSaid === '' || !text.startsWith('said last: '))
      : open.length === 0
        ? old('open')
        : [];

  const elsewhere = known.map(readSections);
  const wordsOf = new Map(now.calls.map(({ at, words }) => [at, words]));
  const facts = factLines(
    now.facts.filter((fact) => !lastSaid.includes(fact.text) && !isLogged(fact, wordsOf)),
    pairsKnown(elsewhere.flatMap(({ found: texts }) => texts)),
  );
  const done = doneLines(now.calls);
  const knownFiles = new Set(
    elsewhere.flatMap((body) => body.files.flatMap((item) => readFiles(item).files)),
  );
  const files = fileLines(now.calls).filter(({ text }) => !knownFiles.has(text));
  const planned = new Set([...now.plan].flatMap(([status, texts]) => (isClosed(status) ? [] : texts)));
  const touched = new Set(now.calls.flatMap(({ words }) => (words.path === '' ? [] : [words.path])));
  const oldFiles = items('files')
    .map(readFiles)
    .flatMap(({ group, files: texts }) =>
      texts.map((text): OutlineLine => ({ section: 'files', text, group, at: -1 })),
    )
    .filter(({ text }) => !touched.has(text.replace(/ ×\d+$/, '')));
  const knownValues = new Set(
    elsewhere.flatMap(({ named }) => named.flatMap((item) => readValues(item).values)),
  );
  for (const [rank, { group, values }] of items('named').map(readValues).entries())
    for (const text of values) now.values.remember(group, text, rank);
  const named = namedLines(
    now.values.best(2_000),
    (text) => touched.has(text) || planned.has(text) || knownValues.has(text),
  );

  return [
    ...(first ? [first] : []),
    ...open,
    ...stillOpen,
    ...others.filter(({ worth }) => worth > 1).toReversed(),
    ...inTurns(
      [
        { lines: old('prose').toReversed(), share: 8 },
        { lines: others.filter(({ worth }) => worth <= 1).toReversed(), share: 1 },
        { lines: [...facts, ...old('found'), ...old('shown')], share: 4 },
        { lines: [...done, ...old('done')], share: 3 },
        { lines: [...files, ...oldFiles], share: 2 },
      ],
      { lines: named, share: 60 },
      maxBefore,
    ),
  ];
}
