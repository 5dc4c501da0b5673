/**
 * Whether a trajectory stays small however long it gets: made-up runs of 500, 2,000 and 10,000 actions, each turn as an agent would take
 * it (an action in, all that is due folded, the context out), then every action asked for by its id. Run `node bench/hierarchy.ts`;
 * it prints a table and writes bench/results/hierarchy.json. Where there are
 * recorded conversations, all coding sessions one after the other, too, whether sub-goals are found where agents' own plans had them,
 * and whether values that recorded calls used again stand in the context. About three minutes.
 *
 * Traps: (1) Most runs are made up (bench/hierarchy/agent.ts): ratios and times are real, what a model could do with the context is not
 * measured. (2) Summaries are the local extractive ones; a model's cost its calls and its time, one a sub-goal. (3) The store is in this
 * process. (4) Times are by the clock on a shared machine, means over a tenth of the run; the first tenth warms the process up. (5) The
 * budget is of the context alone: system prompt, tools and reply come on top. (6) Borders: the plan is one agent's idea of its sub-goals, of
 * one team's sessions, and the finder's rules were chosen on these sessions; within one call, every fifth call is right by luck in a third.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { madeRun } from './hierarchy/agent.ts';
import { borderRows } from './hierarchy/borders.ts';
import { needRow, type NeedRow } from './hierarchy/needs.ts';
import { playRun, type Row } from './hierarchy/play.ts';
import { recordedRun, recordedSteps } from './hierarchy/recorded-run.ts';

const budget = 16_000;
const rows: Row[] = [];
// Not in the table: compiles what is measured.
await playRun('warm-up', madeRun(200, 2), { preset: 'long-horizon', budget });
for (const actions of [500, 2_000, 10_000]) {
  rows.push(await playRun('long-horizon', madeRun(actions), { preset: 'long-horizon', budget }));
}
for (const preset of ['production', 'cost', 'debugging'] as const) {
  rows.push(await playRun(preset, madeRun(2_000), { preset, budget }));
}
rows.push(await playRun('adaptive', madeRun(2_000), { ratio: 'adaptive', budget }));
const sessions = recordedSteps();
if (sessions === undefined)
  console.log('There are no recorded conversations in ../shared/data: theirs are left out.');
else {
  for (const preset of ['long-horizon', 'production'] as const) {
    rows.push(await playRun(`recorded, ${preset}`, recordedRun(sessions), { preset, budget }));
  }
}

console.table(rows);
const over = rows.filter((row) => row['largest context'] > budget);
const lost = rows.filter(({ actions, recalled }) => recalled !== `${actions} of ${actions}`);
console.log(
  over.length + lost.length === 0
    ? `All contexts had at most ${budget} tokens, and every action came back by its id.`
    : `FAILED: ${[...over, ...lost].map(({ run, actions }) => `${run} of ${actions} actions`).join(', ')}.`,
);
const borders = sessions && borderRows(sessions);
if (borders) console.table(borders);
const needs = await needRows();
if (needs) console.table(needs);
const results = new URL('results/', import.meta.url);
mkdirSync(results, { recursive: true });
writeFileSync(
  new URL('hierarchy.json', results),
  `${JSON.stringify({ node: process.version, budget, rows, borders, needs }, null, 2)}\n`,
);

/** Sessions of a hundred actions and more. */
async function needRows(): Promise<readonly NeedRow[] | undefined> {
  const runs = sessions?.map((steps) => recordedRun([steps]));
  const long = runs?.filter((run) => run.reduce((sum, { actions }) => sum + actions.length, 0) >= 100);
  if (long === undefined) return undefined;
  const found: NeedRow[] = [];
  for (const preset of ['production', 'debugging', 'cost', 'long-horizon'] as const) {
    found.push(await needRow(preset, long, { preset, budget }));
  }
  return found;
}
