/**
 * Compares the sub-goals that the finder detects with the agent's own plan, in recorded sessions where a tool call began each item of a plan.
 * Those calls are hidden from the finder. For comparison, the table also has a border at every fifth call.
 */
import { findSubgoals, type NeutralStep } from '../../src/index.ts';

export type BorderRow = {
  readonly borders: string;
  readonly found: number;
  /** Share of the detected borders that are in the plan: at the same call, and within one call. */
  readonly precision: string;
  /** Share of the plan's borders that were detected: at the same call, and within one call. */
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
    // Borders at user messages are left out, because they are easy to detect.
    const plan = plannedBorders(steps).filter((at) => !users.some((user) => Math.abs(user - at) <= 1));
    if (plan.length < 2) continue;
    planned += plan.length;
    const ways = {
      found: bordersOf(hidden, ({ by }) => by !== 'user'),
      'every fifth call': Array.from({ length: Math.ceil(calls / 5) }, (_, at) => at * 5),
    };
    // Borders outside the planned part are left out, because the true borders there are unknown.
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

/** Returns the number of other calls before each border that the plan's calls mark. */
function plannedBorders(steps: readonly NeutralStep[]): readonly number[] {
  const planned = findSubgoals(steps).filter(({ by }) => by === 'plan');
  const before = callsBefore(steps, (step) => step.kind === 'called' && !isPlan(step));
  return [...new Set(planned.map(({ start }) => before[start]!))].filter((at) => at > 0);
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
