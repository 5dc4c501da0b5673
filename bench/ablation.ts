/**
 * Measures what each part of the engine saves: replays recorded conversations with the default engine, then turns off one shrink, strategy or
 * trigger at a time. Run `npm run bench bench/ablation.ts [-- --source NAME] [--limit N] [--warm] [--window N] [--row TEXT]...`; it reads
 * ../shared/data, prints a table for each source and the rows that change nothing in any source. It
 * takes 15 minutes on two cores for the first 40 conversations of each source (`--limit` sets another number) and eight joined coding sessions.
 * `--row` runs the rows whose names contain the text. `--warm` ignores the recorded pauses, in which caches expired. Use a small `--window` to
 * see the effect of the parts that make requests fit.
 *
 * To add a row, edit bench/ablation/rows.ts.
 *
 * Traps: those of bench/replay.ts, and (1) parts overlap: without one part, another does some of its work, so a row shows what a part adds to
 * the others. The "only" rows show what it does alone. (2) A part that saves nothing here may help with traffic that was not recorded: web
 * pages and base64 are rare, only the joined sessions exceed the window, and every called tool is offered, so no call fails because its tool
 * is unknown (drop-failed-calls). (3) Do not judge a part by cost if values are lost or requests do not fit without it. (4) The default
 * settings were tuned on the same sessions.
 */
import { parseArgs } from 'node:util';
import { priceTables } from '../src/cli/replay/conversation-body.ts';
import { type Figures, figuresOf, type SourceFigures } from '../src/replay/figures.ts';
import { rows } from './ablation/rows.ts';
import { longHorizon, readConversations } from './replay/data.ts';
import { replayInProcesses } from './replay/processes.ts';
import { round } from './tokens/arithmetic.ts';

/** A fraction of the full context's cost. Smaller differences are noise: they depend on where folds happen to fall. */
const NOISE = 0.001;

const { values } = parseArgs({
  options: {
    source: { type: 'string', default: '' },
    limit: { type: 'string', default: '40' },
    row: { type: 'string', multiple: true, default: [''] },
    warm: { type: 'boolean', default: false },
    window: { type: 'string', default: '200000' },
  },
});

await main();

async function main(): Promise<void> {
  const records = readConversations();
  if (records === undefined) {
    console.log('bench/ablation.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const bySource = Map.groupBy([...longHorizon(records), ...records], ({ source }) => source);
  const chosen = [...bySource].flatMap(([source, group]) =>
    source.startsWith(values.source) ? group.slice(0, Number(values.limit)) : [],
  );
  const [first, ...others] = rows;
  const engines = [first!, ...others.filter(({ name }) => values.row.some((text) => name.includes(text)))];
  const settings = {
    set: 'engines',
    window: Number(values.window),
    prefix: 15_000,
    pauses: !values.warm,
    cacheTtl: '5m',
  } as const;
  const played = await replayInProcesses(chosen, { ...settings, engines });
  const sources = figuresOf(played, { anthropic: priceTables.anthropic });
  for (const figures of sources) {
    console.log(`\n${figures.source}: ${figures.conversations} conversations, ${figures.requests} requests`);
    console.table(tableOf(figures));
  }
  const idle = engines.slice(1).flatMap(({ name }) => (isIdle(sources, name) ? [name] : []));
  console.log(
    `\nRows that change the cost of every source by less than ${NOISE} of the full context's cost:`,
    idle.join(', ') || 'none',
  );
}

function tableOf({ policies: [, first, ...others] }: SourceFigures) {
  return [first!, ...others].map((figures) => ({
    row: figures.policy,
    cost: round(costOf(figures), 4),
    'cost minus default': round(costOf(figures) - costOf(first!), 4),
    worst: round(figures.worst['anthropic']!.cost, 2),
    'recalls/100': round(figures.recallsPer100, 1),
    'lost %': round(100 * figures.lost, 2),
    'stable %': round(100 * figures.stable, 1),
    folds: figures.folds,
    'mean tokens': figures.meanTokens,
    'over window': figures.overWindow,
    unfit: figures.unfit + figures.failed,
  }));
}

/** True if the row changes the cost of no source by more than noise. */
function isIdle(sources: readonly SourceFigures[], name: string): boolean {
  return sources.every(({ policies }) => {
    const without = policies.find(({ policy }) => policy === name);
    return without !== undefined && Math.abs(costOf(without) - costOf(policies[1]!)) < NOISE;
  });
}

function costOf(figures: Figures): number {
  return figures.cost['anthropic']!;
}
