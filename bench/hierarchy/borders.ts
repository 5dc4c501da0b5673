/**
 * Whether sub-goals are found where an agent's own plan had them: recorded coding sessions in which items of a plan were begun by a tool.
 * Those calls are hidden, the finder looks at the rest, and its borders are compared with the plan's, beside one at every fifth call.
 */
import { findSubgoals, type NeutralStep } from '../../src/index.ts';

export type BorderRow = {
  readonly borders: string;
  readonly found: number;
  /** Of the borders found those that the plan has, at the very call and within one. */
  readonly precision: string;
  /** Of the plan's borders those that were found. */
  readonly recall: string;
};

type Tally = { found: number; right: [number, number]; reached: [number, number] };

export function borderRows(sessions: readonly (readonly NeutralStep[])[]): readonly BorderRow[] {
  const tallies = new Map<string, Tally>();
  let planned = 0;
  for (const steps of sessions) {
    const hidden = steps.filter((step) => !isPlan(step));
    const calls = hidden.filter(({ kind }) => kind === 'called').length;
    const users = bordersOf(hidden, ({ by }) => by === 'user');
    // Where the user speaks everybody finds a border.
    const plan = plannedBorders(steps).filter((at) => !users.some((user) => Math.abs(user - at) <= 1));
    if (plan.length < 2) continue;
    planned += plan.length;
    const ways = {
      found: bordersOf(hidden, ({ by }) => by !== 'user'),
      'every fifth call': Array.from({ length: Math.ceil(calls / 5) }, (_, at) => at * 5),
    };
    // Only where there was a plan: elsewhere nobody knows.
    const [first, last] = [plan[0]! - 7, plan.at(-1)! + 7];
    for (const [way, all] of Object.entries(ways)) {
      const borders = all.filter((at) => at >= first && at <= last);
      const tally = tallies.get(way) ?? { found: 0, right: [0, 0], reached: [0, 0] };
      tallies.set(way, tally);
      tally.found += borders.length;
      for (const within of [0, 1] as const) {
        tally.right[within] += borders.filter((at) => isNear(at, plan, within)).length;
        tally.reached[within] += plan.filter((at) => isNear(at, borders, within)).length;
      }
    }
  }
  return [...tallies].map(([borders, { found, right, reached }]) => ({
    borders,
    found,
    precision: right.map((count) => (count / found).toFixed(2)).join(', '),
    recall: `${reached.map((count) => (count / planned).toFixed(2)).join(', ')} of ${planned}`,
  }));
}

function isPlan(step: NeutralStep): boolean {
  return step.kind === 'called' && /^(?:Todo|Task(?:Create|Update|List))/.test(step.tool);
}

/** Calls before each border the finder sees in the plan's own calls, those hidden ones not counted. */
function plannedBorders(steps: readonly NeutralStep[]): readonly number[] {
  const begun = findSubgoals(steps).filter(({ by }) => by === 'plan');
  const before = callsBefore(steps, (step) => step.kind === 'called' && !isPlan(step));
  return [...new Set(begun.map(({ start }) => before[start]!))].filter((at) => at > 0);
}

function bordersOf(
  steps: readonly NeutralStep[],
  which: (found: ReturnType<typeof findSubgoals>[number]) => boolean,
): readonly number[] {
  const before = callsBefore(steps, ({ kind }) => kind === 'called');
  return findSubgoals(steps)
    .filter(which)
    .map(({ start }) => before[start]!);
}

function callsBefore(
  steps: readonly NeutralStep[],
  counts: (step: NeutralStep) => boolean,
): readonly number[] {
  let calls = 0;
  return steps.map((step) => (counts(step) ? calls++ : calls));
}

function isNear(at: number, others: readonly number[], within: number): boolean {
  return others.some((other) => Math.abs(other - at) <= within);
}
