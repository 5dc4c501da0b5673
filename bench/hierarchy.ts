/**
 * Measures whether the context of a trajectory stays small as the run grows: generated runs of 500, 2,000 and 10,000 actions. Each turn adds
 * an action, folds what is due and reads the context, as an agent would. In the end, every action is read by its id. With recorded
 * conversations it also plays all coding sessions as one run, compares the sub-goals it finds with the agents' own plans, and checks whether
 * values that recorded calls used again are in the context. Run `node bench/hierarchy.ts`; it prints tables. It takes about three minutes.
 *
 * Traps: (1) Most runs are generated (bench/hierarchy/agent.ts). Ratios and times are real, but nothing shows what a model could do with the
 * context. (2) The summaries are extractive and local. Summaries by a model need a call for each sub-goal, with its cost and time. (3) The
 * store is in this process. (4) Times are wall-clock times on a shared machine, means over a tenth of the run; the first tenth includes the
 * warm-up. (5) The budget covers the context only; system prompt, tools and reply are extra. (6) Borders: a plan is one agent's view of its
 * sub-goals, from the sessions of one team, and the rules of the finder were tuned on the same sessions. Within one call of tolerance, a
 * border at every fifth call is right by chance in a third of the cases.
 */
import { generateRun } from './hierarchy/agent.ts';
import { borderRows } from './hierarchy/borders.ts';
import { needRow, type NeedRow } from './hierarchy/needs.ts';
import { playRun, type Row } from './hierarchy/play.ts';
import { recordedRun, recordedSteps } from './hierarchy/recorded-run.ts';

const budgetTokens = 16_000;
const rows: Row[] = [];
// This run is not in the table: it only compiles the code.
await playRun('warm-up', generateRun(200, 2), { preset: 'long-horizon', budgetTokens });
for (const actions of [500, 2_000, 10_000]) {
  rows.push(await playRun('long-horizon', generateRun(actions), { preset: 'long-horizon', budgetTokens }));
}
for (const preset of ['production', 'cost', 'debugging'] as const) {
  rows.push(await playRun(preset, generateRun(2_000), { preset, budgetTokens }));
}
rows.push(await playRun('adaptive', generateRun(2_000), { ratio: 'adaptive', budgetTokens }));
const sessions = recordedSteps();
if (sessions === undefined)
  console.log('There are no recorded conversations in ../shared/data: their rows are left out.');
else {
  for (const preset of ['long-horizon', 'production'] as const) {
    rows.push(await playRun(`recorded, ${preset}`, recordedRun(sessions), { preset, budgetTokens }));
  }
}

console.table(rows);
const over = rows.filter((row) => row['largest context'] > budgetTokens);
const lost = rows.filter(({ actions, recalled }) => recalled !== `${actions} of ${actions}`);
console.log(
  over.length + lost.length === 0
    ? `All contexts had at most ${budgetTokens} tokens, and every action could be read by its id.`
    : `FAILED, because a context was too large or an action was lost: ${[...over, ...lost].map(({ run, actions }) => `${run} of ${actions} actions`).join(', ')}.`,
);
const borders = sessions && borderRows(sessions);
if (borders) console.table(borders);
const measuredNeeds = await needRows();
if (measuredNeeds) console.table(measuredNeeds);

/** Measures sessions of at least 100 actions. */
async function needRows(): Promise<readonly NeedRow[] | undefined> {
  const runs = sessions?.map((steps) => recordedRun([steps]));
  const long = runs?.filter((run) => run.reduce((sum, { actions }) => sum + actions.length, 0) >= 100);
  if (long === undefined) return undefined;
  const needs: NeedRow[] = [];
  for (const preset of ['production', 'debugging', 'cost', 'long-horizon'] as const) {
    needs.push(await needRow(preset, long, { preset, budgetTokens }));
  }
  return needs;
}
