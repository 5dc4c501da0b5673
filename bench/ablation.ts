/**
 * What each part of the engine is worth: recorded conversations replayed with the engine as it comes, and without one shrink, strategy or
 * trigger after the other. Run `npm run bench bench/ablation.ts [-- --source NAME] [--limit N] [--warm] [--window N] [--row TEXT]...`; it reads
 * ../shared/data, prints a table for each source and the rows that change nothing on any, and writes bench/results/ablation.json. A quarter of an
 * hour on two cores for the first 40 conversations of each source (`--limit` takes more or fewer) and eight coding sessions joined. `--row` plays
 * rows whose names hold the text; `--warm` leaves out the recorded pauses, in which caches expired; what makes room shows in a small `--window`.
 *
 * Another row is data: bench/ablation/rows.ts.
 *
 * Traps: those of bench/replay.ts, and (1) parts stand in for each other: without one another takes what it would have taken, so a row says what a
 * part adds to the others, not what it does; "only" rows say that. (2) Whoever saves nothing here may be there for traffic that was not
 * recorded: web pages and base64 hardly occur, nothing is larger than the window but the joined sessions, and tools are offered for all calls
 * there were, so that none was made to an unknown one (drop-failed-calls). (3) A part without which values are lost, or requests do not fit, is not judged by cost. (4) The sessions are those the settings
 * were tuned on.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { priceTables } from '../src/cli/replay/conversation-body.ts';
import { type Figures, figuresOf, type SourceFigures } from '../src/replay/figures.ts';
import { rows } from './ablation/rows.ts';
import { longHorizon, readConversations } from './replay/data.ts';
import { replayInProcesses } from './replay/processes.ts';
import { round } from './tokens/arithmetic.ts';

/** Of the bill of the full context: less is noise of where folds happen to fall. */
const WORTH = 0.001;
const resultFile = new URL('./results/ablation.json', import.meta.url);

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
    enginesOnly: true,
    window: Number(values.window),
    prefix: 15_000,
    pauses: !values.warm,
    cacheTtl: '5m',
  } as const;
  const played = await replayInProcesses(chosen, { ...settings, engines });
  const sets = figuresOf(played, { anthropic: priceTables.anthropic });
  for (const set of sets) {
    console.log(`\n${set.source}: ${set.conversations} conversations, ${set.requests} requests`);
    console.table(tableOf(set));
  }
  const idle = engines.slice(1).flatMap(({ name }) => (isIdle(sets, name) ? [name] : []));
  console.log(`\nLess than ${WORTH} of the bill either way on every set:`, idle.join(', ') || 'none');
  mkdirSync(new URL('.', resultFile), { recursive: true });
  const found = { node: process.version, ...settings, limit: values.limit, rows: engines, idle };
  writeFileSync(resultFile, `${JSON.stringify({ ...found, sets }, null, 2)}\n`);
}

function tableOf({ policies: [, first, ...others] }: SourceFigures) {
  return [first!, ...others].map((figures) => ({
    row: figures.policy,
    cost: round(costOf(figures), 4),
    'against the first': round(costOf(figures) - costOf(first!), 4),
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

function isIdle(sets: readonly SourceFigures[], name: string): boolean {
  return sets.every(({ policies }) => {
    const without = policies.find(({ policy }) => policy === name);
    return without !== undefined && Math.abs(costOf(without) - costOf(policies[1]!)) < WORTH;
  });
}

function costOf(figures: Figures): number {
  return figures.cost['anthropic']!;
}
