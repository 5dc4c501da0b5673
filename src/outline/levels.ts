/**
 * The shape of summaries upon summaries: how many actions a sub-goal has, how many of a level become one of the next, and which do so
 * next. Pure.
 */

/** No level is compressed harder than this: what a summary leaves out beyond it is missed (see docs/subgoals.md). */
export const hardestRatio = 15;

/** Sub-goals of fewer actions are not worth a summary; longer ones than `longest` are parted. */
export const subgoalLength = { shortest: 3, longest: 7 } as const;

/** The highest level that is made by counting; above it only the budget asks. */
export const overviewLevel = 3;

/** In the words of reports. */
export function levelName(level: number): string {
  return ['action', 'subgoal', 'phase'][level] ?? 'overview';
}

/** How many of a level become one of the next (sub-goals a phase, phases an overview, overviews an overview of these). */
function fanoutOf(level: number): number {
  return level === 1 ? 10 : 5;
}

/** How many of the newest of a level stay when older ones go a level up. */
function newestOf(level: number): number {
  return level === 1 ? 2 : 1;
}

/** 1 a sub-goal, 2 a phase, 3 an overview, 4 and more overviews of overviews. */
export type Leveled = { readonly level: number; readonly tokens: number };

/** Neighbours, oldest first: only these may become one. */
type Stretches<T extends Leveled> = readonly (readonly T[])[];

/** The oldest of a level that has enough of them, the lowest level first; `keep` is 1 where the newest ones stay. */
export function fullLevel<T extends Leveled>(
  stretches: Stretches<T>,
  below: number,
  keep: 0 | 1,
): readonly T[] | undefined {
  for (const run of stretches.flatMap(runsOf).toReversed()) {
    const { level } = run[0]!;
    const fanout = fanoutOf(level);
    if (level < below && run.length >= fanout + keep * newestOf(level)) return run.slice(0, fanout);
  }
  return undefined;
}

/** Fewer than make a level, because the budget needs it: where the most tokens are, and at last the oldest two. */
export function largestLevel<T extends Leveled>(stretches: Stretches<T>): readonly T[] | undefined {
  const runs = stretches
    .flatMap(runsOf)
    .map((run) => run.slice(0, Math.max(run.length - newestOf(run[0]!.level), 2)))
    .filter(({ length }) => length >= 2);
  const largest = runs.toSorted((a, b) => tokensOf(b) - tokensOf(a))[0];
  return largest?.slice(0, fanoutOf(largest[0]!.level)) ?? stretches.find(isMany)?.slice(0, 2);
}

function isMany({ length }: readonly unknown[]): boolean {
  return length >= 2;
}

/** Neighbours of one level. */
function runsOf<T extends Leveled>(entries: readonly T[]): readonly (readonly T[])[] {
  const runs: T[][] = [];
  for (const entry of entries) {
    const run = runs.at(-1);
    if (run?.[0]?.level === entry.level) run.push(entry);
    else runs.push([entry]);
  }
  return runs;
}

function tokensOf(run: readonly Leveled[]): number {
  return run.reduce((sum, { tokens }) => sum + tokens, 0);
}
