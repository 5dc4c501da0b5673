/**
 * Compares the two arms of `leporello bench-ab`, task by task. A pair is refused when its counts cannot be right; a failed request saves nothing;
 * nothing is pooled with other runs. All intervals are confidence sequences, so a run may be looked at, and stopped, at any time. Pure.
 */
import { runSteps } from '../../conversation/steps.ts';
import { groupBy } from '../../es2024.ts';
import {
  type Interval,
  type RatioSample,
  openSequence,
  ratioInterval,
  ratioOf,
} from '../../experiment/sequence.ts';

/** The arms: through Leporello, and the same way with every request unchanged. */
export const arms = ['folded', 'untouched'] as const;
export type Arm = (typeof arms)[number];

/** One run of the user's command, as its gateway saw it. Tokens are those that the provider reported. */
export type ArmRun = {
  readonly task: string;
  readonly arm: Arm;
  readonly isSolved: boolean;
  /** At list prices; undefined when a request has no known price or reported no usage. */
  readonly usd: number | undefined;
  /** Calls of the provider that were answered, those after recalls too. */
  readonly steps: number;
  /** Requests without an answer, or with another status than 200, such as 429. */
  readonly failed: number;
  /** Calls of the agent's tools that repeat an earlier call of the run with the same arguments. */
  readonly refetches: number;
  readonly failedEdits: number;
  readonly recalls: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** Prompt tokens that were neither read from nor written to a cache. */
  readonly input: number;
  readonly models: readonly string[];
};

/** Larger figures of a run count as these. They are fixed before the first run. */
export type RunCaps = { readonly usd: number; readonly steps: number; readonly count: number };

type TaskPair = { readonly folded: ArmRun; readonly untouched: ArmRun };

/** An estimate with its interval of 95 %. */
export type Figure = { readonly estimate: number | undefined; readonly interval: Interval };

export type Comparison = {
  readonly tasks: number;
  readonly models: readonly string[];
  readonly refused: readonly { readonly task: string; readonly reason: string }[];
  readonly solved: Readonly<Record<Arm, number>>;
  readonly failed: Readonly<Record<Arm, number>>;
  readonly recalls: number;
  /** Means of an arm, and USD per solved task. */
  readonly means: Readonly<
    Record<
      Arm,
      {
        readonly usd: number;
        readonly steps: number;
        readonly refetches: number;
        readonly failedEdits: number;
      }
    >
  >;
  readonly usdPerSolved: Readonly<Record<Arm, Figure>>;
  /** Folded divided by untouched. */
  readonly usd: Figure;
  readonly steps: Figure;
  /** Folded minus untouched, per task. */
  readonly solvedMore: Figure;
  readonly refetchesMore: Figure;
  readonly failedEditsMore: Figure;
  readonly verdict: 'cheaper' | 'dearer' | 'cannot tell';
};

/** Compares the runs of tasks that have one in each arm. */
export function compare(runs: readonly ArmRun[], caps: RunCaps): Comparison {
  const all = pairsIn(runs);
  const refused = all.flatMap((pair) => {
    const reason = faultIn(pair);
    return reason === undefined ? [] : [{ task: pair.folded.task, reason }];
  });
  const pairs = all.filter((pair) => faultIn(pair) === undefined).map(withoutFalseSavings);
  const usdOf = ({ usd = 0 }: ArmRun): number => Math.min(usd, caps.usd);
  const usd = ratio(pairs, usdOf, caps.usd);
  return {
    tasks: pairs.length,
    models: [...new Set(pairs.flatMap(({ folded }) => folded.models))].toSorted(),
    refused,
    solved: each((arm) => pairs.filter((pair) => pair[arm].isSolved).length),
    failed: each((arm) => pairs.reduce((sum, pair) => sum + pair[arm].failed, 0)),
    recalls: pairs.reduce((sum, { folded }) => sum + folded.recalls, 0),
    means: each((arm) => ({
      usd: mean(pairs, (pair) => pair[arm].usd ?? 0),
      steps: mean(pairs, (pair) => pair[arm].steps),
      refetches: mean(pairs, (pair) => pair[arm].refetches),
      failedEdits: mean(pairs, (pair) => pair[arm].failedEdits),
    })),
    usdPerSolved: each((arm) => {
      const samples = pairs.map((pair) => ({
        numerator: usdOf(pair[arm]),
        denominator: Number(pair[arm].isSolved),
      }));
      return figureOf(samples, (value) => ({
        low: Math.min(0, -value),
        high: Math.max(caps.usd, caps.usd - value),
      }));
    }),
    usd,
    steps: ratio(pairs, ({ steps }) => Math.min(steps, caps.steps), caps.steps),
    solvedMore: difference(pairs, ({ isSolved }) => Number(isSolved), 1),
    refetchesMore: difference(pairs, ({ refetches }) => Math.min(refetches, caps.count), caps.count),
    failedEditsMore: difference(pairs, ({ failedEdits }) => Math.min(failedEdits, caps.count), caps.count),
    verdict: usd.interval.high < 1 ? 'cheaper' : usd.interval.low > 1 ? 'dearer' : 'cannot tell',
  };
}

function pairsIn(runs: readonly ArmRun[]): readonly TaskPair[] {
  const byTask = groupBy(runs, ({ task }) => task);
  return [...byTask.values()].flatMap((both) => {
    const folded = both.find(({ arm }) => arm === 'folded');
    const untouched = both.find(({ arm }) => arm === 'untouched');
    return folded && untouched ? [{ folded, untouched }] : [];
  });
}

/** Returns why the counts of a pair cannot be compared; undefined when they can. */
function faultIn({ folded, untouched }: TaskPair): string | undefined {
  for (const run of [folded, untouched]) {
    if (run.steps === 0) return `${run.arm}: no request was answered`;
    if (run.usd === undefined)
      return `${run.arm}: a request reported no usage, or its model has no known price`;
    if (isImpossible(run))
      return `${run.arm}: ${run.cacheRead} tokens were read from the cache in ${run.steps} steps, more than ${run.cacheWrite} written and ${run.input} sent can explain: another run filled the cache`;
  }
  const [one, other] = [folded, untouched].map(({ models }) => models.join(', '));
  return one === other ? undefined : `the arms used different models: ${one} and ${other}`;
}

/** True for a run that read more from the cache than it had sent before, once in each later step: others have paid for its cache. */
export function isImpossible({ cacheRead, cacheWrite, input, steps }: ArmRun): boolean {
  return cacheRead > (cacheWrite + input) * (steps - 1);
}

/** Failed requests cost nothing, and cut a run short. A folded run with one counts as at least as costly and as long as the other. */
function withoutFalseSavings({ folded, untouched }: TaskPair): TaskPair {
  if (folded.failed === 0) return { folded, untouched };
  const usd = Math.max(folded.usd ?? 0, untouched.usd ?? 0);
  return { folded: { ...folded, usd, steps: Math.max(folded.steps, untouched.steps) }, untouched };
}

function each<T>(of: (arm: Arm) => T): Readonly<Record<Arm, T>> {
  return { folded: of('folded'), untouched: of('untouched') };
}

function mean(pairs: readonly TaskPair[], of: (pair: TaskPair) => number): number {
  return pairs.length === 0 ? 0 : pairs.reduce((sum, pair) => sum + of(pair), 0) / pairs.length;
}

const unknown: Interval = { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };

function figureOf(samples: readonly RatioSample[], bounds: (value: number) => Interval): Figure {
  const interval = samples.length === 0 ? unknown : runSteps(ratioInterval({ samples, bounds }));
  return { estimate: ratioOf(samples), interval };
}

/** Returns folded divided by untouched, of a figure between 0 and `cap`. */
function ratio(pairs: readonly TaskPair[], of: (run: ArmRun) => number, cap: number): Figure {
  const samples = pairs.map(({ folded, untouched }) => ({
    numerator: of(folded),
    denominator: of(untouched),
  }));
  return figureOf(samples, (value) => ({
    low: Math.min(0, -value * cap),
    high: Math.max(cap, cap - value * cap),
  }));
}

/** Returns folded minus untouched, of a figure between 0 and `cap`. */
function difference(pairs: readonly TaskPair[], of: (run: ArmRun) => number, cap: number): Figure {
  const sequence = openSequence({ low: -cap, high: cap });
  for (const { folded, untouched } of pairs) sequence.add(of(folded) - of(untouched));
  const estimate =
    pairs.length === 0 ? undefined : mean(pairs, ({ folded, untouched }) => of(folded) - of(untouched));
  return { estimate, interval: sequence.interval() };
}
