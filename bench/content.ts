/**
 * Measures the shrinks of tool results on recorded conversations: how many results each kind changes, the share of all tool-result tokens
 * (o200k) that it saves, whether anything is lost (every lossless result is undone and compared), and its speed. Run
 * `npm run bench bench/content.ts`; it reads ../shared/data and prints tables. It takes about a minute.
 *
 * Traps: (1) Shares refer to recorded tool-result tokens, each counted once. A conversation saves a different share, because results are sent
 * again in every turn, mostly from the cache. (2) Two thirds of the tokens are one client's sessions in one repository, and that client's file
 * reader pads line numbers; other clients produce other kinds. (3) One result of intercode has 942 kB, half of its source: see the row without
 * it. (4) Nothing here shows how well a model reads a shrunk text. (5) A speed is measured over all texts of a kind, in one pass, without
 * counting tokens; the first texts include compilation. (6) The recordings contain almost no web pages and base64: their rows say little.
 */
import type { Kind, Shrunk, ShrinkOptions } from '../src/arrival/kind.ts';
import { maxShrinkLength, shrink } from '../src/arrival/shrink.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import { hostileTexts } from './content/hostile.ts';
import { readResults, type RecordedResult } from './content/recorded-results.ts';
import { lossOf } from './content/verify.ts';
import { round, sum } from './tokens/arithmetic.ts';

type Row = Readonly<Record<string, string | number>>;
/** A recorded result with its shrunk form, if it has one. */
type Outcome = RecordedResult & {
  readonly tokens: number;
  readonly shrunk: Shrunk | undefined;
  /** Tokens. */
  readonly saved: number;
};

/** A kind is worth its code if it saves at least this percentage of some source's tool-result tokens. */
const MIN_PERCENT = 0.3;

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
    'all kinds, % of tool-result tokens saved': allKinds({ lossless, fifth, lossy }),
    'tokens that lossy shrinks save in addition, by note': addedByLoss(lossless, lossy),
    'kinds worth their code': worthOfKinds(lossless, lossy),
    'speed on recorded texts': speed(lossless),
    [`hostile texts of ${maxShrinkLength / 1e6} MB, ms`]: hostile(),
  };
  const checked = [...lossless, ...fifth].filter(({ shrunk }) => shrunk !== undefined);
  const losses = checked.flatMap(({ text, tool, shrunk }) => {
    const loss = lossOf(text, shrunk!);
    return loss === undefined ? [] : [`${tool}, ${shrunk!.kind}: ${loss}`];
  });
  for (const [title, rows] of Object.entries(tables)) {
    console.log(`\n${title}`);
    if (rows.length === 0) console.log('(none)');
    else console.table(rows);
  }
  console.log(
    `\n${results.length} results of ${sum(tokens)} tokens. ${checked.length} lossless results undone and compared; ${losses.length} differ.`,
    ...losses,
  );
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

function shares(changed: readonly Outcome[], all: readonly Outcome[], results = all.length) {
  const before = sum(changed.map(({ tokens }) => tokens));
  const saved = sum(changed.map((outcome) => outcome.saved));
  return {
    changed: changed.length,
    'changed, % of results': round((100 * changed.length) / results, 1),
    'tokens before': before,
    saved,
    'saved, % of changed': round((100 * saved) / Math.max(1, before), 1),
    'saved, % of source': round((100 * saved) / sum(all.map(({ tokens }) => tokens)), 2),
  };
}

function allKinds(modes: Readonly<Record<string, readonly Outcome[]>>): readonly Row[] {
  const share = (outcomes: readonly Outcome[]): number =>
    round((100 * sum(outcomes.map(({ saved }) => saved))) / sum(outcomes.map(({ tokens }) => tokens)), 2);
  const sources = [...new Set(modes.lossless!.map(({ source }) => source))];
  const pick: readonly (readonly [string, (outcome: Outcome) => boolean])[] = [
    ...sources.map((source) => [source, (outcome: Outcome) => outcome.source === source] as const),
    [
      'intercode without its largest result',
      ({ source, tokens }) => source === 'intercode' && tokens < 200_000,
    ],
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

/** Returns the tokens that lossy shrinks save beyond the lossless ones, by note. */
function addedByLoss(lossless: readonly Outcome[], lossy: readonly Outcome[]): readonly Row[] {
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

/** Returns for each kind the source in which it saves the largest share. */
function worthOfKinds(lossless: readonly Outcome[], lossy: readonly Outcome[]): readonly Row[] {
  const kinds: readonly Kind[] = ['numbered-lines', 'search', 'json', 'lines', 'terminal', 'blob', 'html'];
  return kinds.map((kind) => {
    const sources = grouped(lossy, ({ source }) => source).map(([source, all]) => {
      const some = all.filter(({ shrunk }) => shrunk?.kind === kind);
      return { source, share: shares(some, all)['saved, % of source'] };
    });
    const best = sources.reduce((most, one) => (one.share > most.share ? one : most));
    const savedLossless = sum(
      lossless.filter(({ shrunk }) => shrunk?.kind === kind).map(({ saved }) => saved),
    );
    return {
      kind,
      'best source': best.share > 0 ? best.source : 'none',
      'saved there, %': best.share,
      'saved of all, lossless, %': round(
        (100 * savedLossless) / sum(lossless.map(({ tokens }) => tokens)),
        2,
      ),
      'worth it': best.share >= MIN_PERCENT ? 'yes' : 'NO',
    };
  });
}

function speed(outcomes: readonly Outcome[]): readonly Row[] {
  return grouped(outcomes, ({ shrunk }) => shrunk?.kind ?? 'unchanged').map(([kind, all]) => {
    const texts = all.map(({ text }) => text);
    const start = performance.now();
    const shrunkTexts = texts.filter((text) => shrink(text, { lossless: true }) !== undefined).length;
    const ms = performance.now() - start;
    const megabytes = sum(texts.map((text) => Buffer.byteLength(text))) / 1e6;
    return {
      kind,
      texts: texts.length,
      MB: round(megabytes, 2),
      shrunk: shrunkTexts,
      'MB/s': round(megabytes / (ms / 1000), 1),
    };
  });
}

function hostile(): readonly Row[] {
  return hostileTexts
    .map(({ name, make }) => {
      const text = make(maxShrinkLength).slice(0, maxShrinkLength);
      const timed = (lossless: boolean): number => {
        const start = performance.now();
        shrink(text, { lossless, lineNumbers: 'every-fifth' });
        return round(performance.now() - start, 0);
      };
      return { name, lossless: timed(true), lossy: timed(false) };
    })
    .sort((one, other) => other.lossy - one.lossy);
}

/** Groups values by key, in the order in which keys first appear. Values with an undefined key are left out. */
function grouped<Value>(
  values: readonly Value[],
  keyOf: (value: Value) => string | undefined,
): readonly (readonly [string, readonly Value[]])[] {
  const groups = Map.groupBy(values, keyOf);
  return [...groups].flatMap(([key, all]) => (key === undefined ? [] : [[key, all] as const]));
}
