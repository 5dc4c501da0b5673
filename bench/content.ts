/**
 * Shrinkers of tool results, measured on recorded conversations: how many results each kind touches, which share of all tool-result
 * tokens it saves (o200k), what is lost (every lossless result is taken back and compared), and how fast it is. Run
 * `npm run bench bench/content.ts`; it reads ../shared/data, prints tables and writes bench/results/content.json. About a minute.
 *
 * Traps: (1) Shares are of tool-result tokens as recorded, once each; what a conversation saves is more or less, since results
 * are sent again every turn, mostly from the cache. (2) Two thirds of the tokens are one client's sessions in one repository, whose
 * file reader pads line numbers; another client's results are other kinds. (3) One result of intercode is 942 kB, half of its source: see the row
 * without it. (4) Nothing here says how well a model reads what was shrunk. (5) Speeds are of whole kinds, one pass, without counting tokens; the
 * first texts pay for compilation. (6) Web pages and base64 are hardly in the recordings: their rows say nothing about pages.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import type { Kind, Shrunk, ShrinkOptions } from '../src/arrival/kind.ts';
import { MAX_LENGTH, shrink } from '../src/arrival/shrink.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import { hostileTexts } from './content/hostile.ts';
import { readResults, type RecordedResult } from './content/recorded-results.ts';
import { lossOf } from './content/verify.ts';
import { round, sum } from './tokens/arithmetic.ts';

type Row = Readonly<Record<string, string | number>>;
/** A recorded result, and what was made of it where something was. */
type Outcome = RecordedResult & {
  readonly tokens: number;
  readonly shrunk: Shrunk | undefined;
  readonly saved: number;
};

/** Per cent of a source's tool-result tokens below which a kind is not worth its code. */
const WORTH = 0.3;
const resultFile = new URL('./results/content.json', import.meta.url);

await main();

async function main(): Promise<void> {
  const results = readResults();
  if (results === undefined) {
    console.log('bench/content.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const counter = await loadExactCounter('o200k_base');
  const count = (text: string): number => counter.count(text);
  const tokens = results.map(({ text }) => count(text));
  const run = (options: ShrinkOptions): readonly Outcome[] =>
    results.map((result, at) => {
      const shrunk = shrink(result.text, { ...options, count });
      return { ...result, tokens: tokens[at]!, shrunk, saved: shrunk ? tokens[at]! - count(shrunk.text) : 0 };
    });
  const lossless = run({ lossless: true });
  const fifth = run({ lossless: true, lineNumbers: 'every-fifth' });
  const lossy = run({ lossless: false });
  const tables = {
    'lossless, by source and kind': bySourceAndKind(lossless),
    'lossless, by source and tool': byTool(lossless),
    'all kinds together, % of tool-result tokens saved': together({ lossless, fifth, lossy }),
    'what losing adds, by what was done': added(lossless, lossy),
    'worth its code': worth(lossless, lossy),
    'speed on recorded texts': speed(lossless),
    [`hostile texts of ${MAX_LENGTH / 1e6} MB, ms`]: hostile(),
  };
  const checked = [...lossless, ...fifth].filter(({ shrunk }) => shrunk !== undefined);
  const losses = checked.flatMap(({ text, tool, shrunk }) => {
    const loss = lossOf(text, shrunk!);
    return loss === undefined ? [] : [`${tool}, ${shrunk!.kind}: ${loss}`];
  });
  for (const [title, rows] of Object.entries(tables)) {
    console.log(`\n${title}`);
    if (rows.length === 0) console.log('nothing');
    else console.table(rows);
  }
  console.log(`\n${checked.length} lossless results taken back, ${losses.length} differ.`, ...losses);
  mkdirSync(new URL('.', resultFile), { recursive: true });
  const found = {
    node: process.version,
    results: results.length,
    tokens: sum(tokens),
    checked: checked.length,
    losses,
  };
  writeFileSync(resultFile, `${JSON.stringify({ ...found, ...tables }, null, 2)}\n`);
}

function bySourceAndKind(outcomes: readonly Outcome[]): readonly Row[] {
  return grouped(outcomes, (outcome) => outcome.source).flatMap(([source, all]) =>
    grouped(all, ({ shrunk }) => shrunk?.kind).map(([kind, some]) => ({
      source,
      kind,
      ...shares(some, all),
    })),
  );
}

function byTool(outcomes: readonly Outcome[]): readonly Row[] {
  return grouped(outcomes, (outcome) => outcome.source)
    .flatMap(([source, all]) =>
      grouped(all, ({ tool }) => tool).map(([tool, some]) => ({
        source,
        tool,
        ...shares(
          some.filter(({ shrunk }) => shrunk),
          all,
          some.length,
        ),
      })),
    )
    .filter((row) => row['saved, % of source'] >= 0.1);
}

function shares(touched: readonly Outcome[], all: readonly Outcome[], results = all.length) {
  const before = sum(touched.map(({ tokens }) => tokens));
  const saved = sum(touched.map((outcome) => outcome.saved));
  return {
    touched: touched.length,
    'touched, % of results': round((100 * touched.length) / results, 1),
    'tokens before': before,
    saved,
    'saved, % of touched': round((100 * saved) / Math.max(1, before), 1),
    'saved, % of source': round((100 * saved) / sum(all.map(({ tokens }) => tokens)), 2),
  };
}

function together(modes: Readonly<Record<string, readonly Outcome[]>>): readonly Row[] {
  const share = (outcomes: readonly Outcome[]): number =>
    round((100 * sum(outcomes.map(({ saved }) => saved))) / sum(outcomes.map(({ tokens }) => tokens)), 2);
  const sources = [...new Set(modes.lossless!.map(({ source }) => source))];
  const pick: readonly (readonly [string, (outcome: Outcome) => boolean])[] = [
    ...sources.map((source) => [source, (outcome: Outcome) => outcome.source === source] as const),
    ['intercode without its largest', ({ source, tokens }) => source === 'intercode' && tokens < 200_000],
    ['all', () => true],
  ];
  return pick.map(([name, wanted]) => {
    const all = modes.lossless!.filter(wanted);
    return {
      source: name,
      results: all.length,
      tokens: sum(all.map(({ tokens }) => tokens)),
      lossless: share(all),
      'lossless, every fifth line number': share(modes.fifth!.filter(wanted)),
      lossy: share(modes.lossy!.filter(wanted)),
    };
  });
}

/** What a result saves when something may be lost, beyond what it saves without. */
function added(lossless: readonly Outcome[], lossy: readonly Outcome[]): readonly Row[] {
  const lost = lossy.map((outcome, at) => ({ ...outcome, saved: outcome.saved - lossless[at]!.saved }));
  return grouped(
    lost.filter(({ shrunk }) => shrunk?.isLossless === false),
    ({ shrunk }) => shrunk!.notes.join('; ').replace(/\d+/g, '#'),
  ).map(([note, some]) => ({
    note,
    results: some.length,
    saved: sum(some.map(({ saved }) => saved)),
    'saved, % of all': round(
      (100 * sum(some.map(({ saved }) => saved))) / sum(lossy.map(({ tokens }) => tokens)),
      3,
    ),
  }));
}

/** For each kind the source where it saves most. */
function worth(lossless: readonly Outcome[], lossy: readonly Outcome[]): readonly Row[] {
  const kinds: readonly Kind[] = ['numbered-lines', 'search', 'json', 'lines', 'terminal', 'blob', 'html'];
  return kinds.map((kind) => {
    const sources = grouped(lossy, ({ source }) => source).map(([source, all]) => {
      const some = all.filter(({ shrunk }) => shrunk?.kind === kind);
      return { source, share: shares(some, all)['saved, % of source'] };
    });
    const best = sources.reduce((most, one) => (one.share > most.share ? one : most));
    const everywhere = sum(lossless.filter(({ shrunk }) => shrunk?.kind === kind).map(({ saved }) => saved));
    return {
      kind,
      'best source': best.share > 0 ? best.source : 'none',
      'saved there, %': best.share,
      'saved of all, lossless, %': round((100 * everywhere) / sum(lossless.map(({ tokens }) => tokens)), 2),
      'worth it': best.share >= WORTH ? 'yes' : 'NO',
    };
  });
}

function speed(outcomes: readonly Outcome[]): readonly Row[] {
  return grouped(outcomes, ({ shrunk }) => shrunk?.kind ?? 'untouched').map(([kind, all]) => {
    const texts = all.map(({ text }) => text);
    const start = performance.now();
    const made = texts.filter((text) => shrink(text, { lossless: true }) !== undefined).length;
    const ms = performance.now() - start;
    const megabytes = sum(texts.map((text) => Buffer.byteLength(text))) / 1e6;
    return {
      kind,
      texts: texts.length,
      MB: round(megabytes, 2),
      made,
      'MB/s': round(megabytes / (ms / 1000), 1),
    };
  });
}

function hostile(): readonly Row[] {
  return hostileTexts
    .map(({ name, make }) => {
      const text = make(MAX_LENGTH).slice(0, MAX_LENGTH);
      const timed = (lossless: boolean): number => {
        const start = performance.now();
        shrink(text, { lossless, lineNumbers: 'every-fifth' });
        return round(performance.now() - start, 0);
      };
      return { name, lossless: timed(true), lossy: timed(false) };
    })
    .sort((one, other) => other.lossy - one.lossy);
}

/** Values by key, in the order the keys come up; those of an undefined key left out. */
function grouped<Value>(
  values: readonly Value[],
  keyOf: (value: Value) => string | undefined,
): readonly (readonly [string, readonly Value[]])[] {
  const groups = Map.groupBy(values, keyOf);
  return [...groups].flatMap(([key, all]) => (key === undefined ? [] : [[key, all] as const]));
}
