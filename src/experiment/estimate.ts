/**
 * Estimates from the conversations of a holdout what folding costs or saves: the ratio of mean cost, the extra requests, and a verdict that
 * may go against us. Arms are weighted by their probability, and costs are adjusted by what was known before the arms parted. All bounds are
 * fixed before the first conversation, so every interval is valid at every look. Pure.
 */
import type { Steps } from '../conversation/steps.ts';
import {
  type Interval,
  isPossible,
  openSequence,
  type RatioData,
  ratioInterval,
  ratioOf,
  roundedUp,
} from './sequence.ts';

/** A conversation of a holdout, after it has ended. Sums count from the request at which the arms parted. */
export type EndedTrial = {
  readonly isControl: boolean;
  readonly usd: number;
  readonly requests: number;
  /** Tokens that folds had taken out of the conversation when it ended; 0 for the control group unless it was rescued. */
  readonly foldedTokens: number;
  /** Numbers known before the arms parted, such as tokens and requests so far. Every conversation has equally many. */
  readonly covariates: readonly number[];
};

/** Figures that are fixed when an experiment starts. Larger values of a conversation count as these. */
export type Caps = { readonly usd: number; readonly requests: number; readonly foldedTokens: number };

export type Verdict = 'pays' | 'costs' | 'cannot tell';

/** An estimate with its interval of 95 %; undefined or infinite where the conversations do not tell. */
export type Estimated = { readonly estimate: number | undefined; readonly interval: Interval };

export type HoldoutEstimate = {
  readonly control: number;
  readonly folded: number;
  /** Mean cost with folding, divided by the mean cost without. Below 1, folding pays. */
  readonly costRatio: Estimated;
  readonly verdict: Verdict;
  /** About how many conversations a difference like the present one needs; undefined after a verdict, or when there is no difference. */
  readonly needed: number | undefined;
  /** λ: extra requests per 1,000 folded tokens. */
  readonly lambda: Estimated;
  /** λ*: the extra requests per 1,000 folded tokens at which nothing is saved; undefined when it is unknown. */
  readonly breakEven: number | undefined;
  /** The share of conversations whose cost reached the cap. */
  readonly capped: number;
};

/** Estimates the effect of folding, in steps. `rate` is the probability of the control group; trials are in the order in which they ended. */
export function* estimateHoldout(
  trials: readonly EndedTrial[],
  rate: number,
  caps: Caps,
): Steps<HoldoutEstimate> {
  const cost = costData(trials, rate, caps);
  yield;
  const lambda = lambdaData(trials, rate, caps);
  yield;
  const estimate = ratioOf(cost.samples);
  const interval = trials.length === 0 ? unbounded : yield* ratioInterval(cost);
  const verdict = verdictOf(cost, estimate);
  const control = trials.filter((trial) => trial.isControl).length;
  return {
    control,
    folded: trials.length - control,
    costRatio: { estimate, interval },
    verdict,
    needed: verdict === 'cannot tell' ? neededFor(trials.length, estimate, interval) : undefined,
    lambda: { estimate: ratioOf(lambda.samples), interval: yield* ratioInterval(lambda) },
    breakEven: breakEvenOf(trials, rate),
    capped: trials.length === 0 ? 0 : trials.filter(({ usd }) => usd >= caps.usd).length / trials.length,
  };
}

const unbounded: Interval = { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };

function verdictOf(cost: RatioData, estimate: number | undefined): Verdict {
  if (estimate === undefined || cost.samples.length === 0 || isPossible(cost, 1)) return 'cannot tell';
  return estimate < 1 ? 'pays' : 'costs';
}

/** Returns samples whose ratio of means is the ratio of mean costs. */
export function costData(trials: readonly EndedTrial[], rate: number, { usd: cap }: Caps): RatioData {
  const expected = predictions(trials, ({ usd }) => Math.min(usd, cap), cap);
  const samples = trials.map(({ isControl, usd }, index) => {
    // Both means are adjusted by the same prediction, which uses earlier conversations only. It may be wrong: that widens the interval.
    const known = expected[index]!;
    const surprise = Math.min(usd, cap) - known;
    return {
      numerator: known + (isControl ? 0 : surprise / (1 - rate)),
      denominator: known + (isControl ? surprise / rate : 0),
    };
  });
  const ends = [0, cap];
  return {
    samples,
    // The difference is linear in the cost and in its prediction, so its extremes are at their ends.
    bounds: (ratio) =>
      hull(
        ends.flatMap((known) =>
          ends.flatMap((usd) => [
            known * (1 - ratio) + (usd - known) / (1 - rate),
            known * (1 - ratio) - (ratio * (usd - known)) / rate,
          ]),
        ),
      ),
  };
}

function hull(values: readonly number[]): Interval {
  return { low: Math.min(...values), high: Math.max(...values) };
}

/** Returns samples whose ratio of means is λ. */
export function lambdaData(trials: readonly EndedTrial[], rate: number, caps: Caps): RatioData {
  const requestsOf = ({ requests }: EndedTrial) => Math.min(requests, caps.requests);
  const expected = predictions(trials, requestsOf, caps.requests);
  const samples = trials.map((trial, index) => ({
    numerator: (requestsOf(trial) - expected[index]!) / (trial.isControl ? -rate : 1 - rate),
    denominator: trial.isControl ? 0 : Math.min(trial.foldedTokens, caps.foldedTokens) / 1_000 / (1 - rate),
  }));
  const widest = caps.requests / (1 - rate);
  const most = caps.foldedTokens / 1_000 / (1 - rate);
  return {
    samples,
    bounds: (lambda) =>
      hull(
        [caps.requests / rate, -caps.requests / rate, -widest, widest].concat(
          [-widest, widest].map((end) => end - lambda * most),
        ),
      ),
  };
}

/**
 * Returns λ*: USD saved per 1,000 folded tokens if the agent takes no extra step, divided by the USD of a request. The saving of a step is
 * the difference of the mean costs of a request in both arms.
 */
function breakEvenOf(trials: readonly EndedTrial[], rate: number): number | undefined {
  const sums = { control: { usd: 0, requests: 0 }, folded: { usd: 0, requests: 0 } };
  let foldedTokens = 0;
  for (const { isControl, usd, requests, foldedTokens: tokens } of trials) {
    const sum = sums[isControl ? 'control' : 'folded'];
    sum.usd += usd;
    sum.requests += requests;
    if (!isControl) foldedTokens += tokens;
  }
  const { control, folded } = sums;
  if (rate <= 0 || control.requests === 0 || folded.requests === 0 || foldedTokens === 0) return undefined;
  const each = folded.usd / folded.requests;
  const saved = (control.usd / control.requests - each) * folded.requests;
  return each > 0 ? saved / (foldedTokens / 1_000) / each : undefined;
}

/** Differences smaller than this share of the mean cost are not worth waiting for. */
const smallestOfInterest = 0.02;

/** Estimates the number of conversations after which an effect of the present size would show: intervals shrink with the root of it. */
function neededFor(count: number, estimate: number | undefined, { low, high }: Interval): number | undefined {
  if (estimate === undefined || !Number.isFinite(low) || !Number.isFinite(high)) return undefined;
  const effect = Math.max(Math.abs(estimate - 1), smallestOfInterest);
  const reach = (estimate < 1 ? high - estimate : estimate - low) / effect;
  return roundedUp(Math.max(count + 1, count * reach * reach));
}

/** The weight of the prior that keeps early predictions small. */
const ridge = 1;

/** Predicts a figure of each trial from its covariates, with a linear model of the earlier trials. Predictions are between 0 and `cap`. */
function predictions(
  trials: readonly EndedTrial[],
  figureOf: (trial: EndedTrial) => number,
  cap: number,
): readonly number[] {
  const width = (trials[0]?.covariates.length ?? 0) + 1;
  // The inverse of the matrix of squares, updated with each trial (Sherman and Morrison), and the weights.
  const inverse = Array.from({ length: width }, (_, row) =>
    Array.from({ length: width }, (__, column) => (row === column ? 1 / ridge : 0)),
  );
  const weights = Array.from({ length: width }, () => 0);
  return trials.map((trial) => {
    const inputs = [1, ...trial.covariates];
    const raw = inputs.reduce((sum, input, at) => sum + input * weights[at]!, 0);
    const gain = inverse.map((row) => row.reduce((sum, value, at) => sum + value * inputs[at]!, 0));
    const scale = 1 + inputs.reduce((sum, input, at) => sum + input * gain[at]!, 0);
    const error = figureOf(trial) - raw;
    for (let row = 0; row < width; row++) {
      weights[row]! += (gain[row]! / scale) * error;
      for (let column = 0; column < width; column++)
        inverse[row]![column]! -= (gain[row]! * gain[column]!) / scale;
    }
    return Math.min(cap, Math.max(0, raw));
  });
}

/** Estimates the mean difference of a count between the arms, with folding minus without. Counts are between 0 and `cap`. */
export function outcomeDifference(
  trials: readonly { readonly isControl: boolean; readonly count: number }[],
  rate: number,
  cap: number,
): Estimated {
  const sequence = openSequence({ low: -cap / rate, high: cap / (1 - rate) });
  let sum = 0;
  for (const { isControl, count } of trials) {
    const weighted = isControl ? -count / rate : count / (1 - rate);
    sequence.add(weighted);
    sum += weighted;
  }
  return { estimate: trials.length === 0 ? undefined : sum / trials.length, interval: sequence.interval() };
}
