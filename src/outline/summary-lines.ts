/**
 * Collects everything that a history summary may say, most important first: what the user asked and what is open, then what was done, what was found, what
 * tools said and which files were touched in turns, then values of calls. Lines of earlier summaries are among them. Linear. Pure.
 */
import {
  countWithin,
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
import type { SummaryRequest } from './summarizer.ts';
import { readFiles, readSections, readValues, type Section } from './summary-text.ts';
import { isClosed, survey } from './survey.ts';

/** UTF-16 units of other lines before values of calls take half of the rest: values help a model to go on, but do not read well. */
const maxBefore = 2000;

/** UTF-16 units of another summarizer's text that come before all other lines. */
const maxProse = 2_400;

/** The longest part of the last reply that is kept as such. */
const maxLast = 700;

/** Returns everything that a summary may say, most important first. */
export function summaryLines({
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

  const prose = old('prose').toReversed();
  const whole = countWithin(prose, maxProse);

  return [
    ...(first ? [first] : []),
    ...open,
    ...stillOpen,
    ...others.filter(({ worth }) => worth > 1).toReversed(),
    ...prose.slice(0, whole),
    ...inTurns(
      [
        { lines: prose.slice(whole), share: 2 },
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
