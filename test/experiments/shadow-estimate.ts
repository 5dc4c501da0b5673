/**
 * Estimates from repeated requests whether a fold changes what the model does next. A sample has four replies to one place of a conversation:
 * two to the folded request, and two to the client's own. Two replies to the same request differ too, so each comparison is measured against
 * that. Recalls are answered before a reply is compared: a recall that brings back what was missing is no harm. The gateway sends no request
 * twice yet, so the product does not contain this module. Pure.
 */
import { type Interval, type RatioSample, ratioInterval, ratioOf } from '../../src/experiment/sequence.ts';

/** Four decisions at one level of detail, such as digests of the tool and its target. Equal texts are equal decisions. */
export type ShadowSample = {
  readonly conversation: string;
  /** The probability with which this request was drawn. */
  readonly probability: number;
  /** Decisions after the folded request that was served, and after the same bytes again. */
  readonly folded: readonly [string, string];
  /** Decisions after the client's own request, and after the same bytes again. */
  readonly whole: readonly [string, string];
};

/**
 * - `too few`: fewer samples or conversations than the floor.
 * - `harm shown`: folds change the next action. New folds are to be held.
 * - `safe`: they cost less agreement than the limit.
 * - `not shown`: neither.
 */
export type ShadowState = 'too few' | 'harm shown' | 'not shown' | 'safe';

export type ShadowEstimate = {
  readonly state: ShadowState;
  readonly samples: number;
  readonly conversations: number;
  /** How far the distributions of actions are apart: the sum of squared differences, 0 only if they are equal. */
  readonly shift: number | undefined;
  readonly shiftInterval: Interval;
  /** Agreement lost: how much less often a folded reply agrees with a whole one than two whole replies do. */
  readonly loss: number | undefined;
  readonly lossInterval: Interval;
};

const minSamples = 50;
const minConversations = 20;

/** The agreement that must be lost at least, the shift that must be exceeded, and the loss up to which folds are safe. */
const harmfulLoss = 0.02;
const harmfulShift = 0.05;
const safeLoss = 0.05;

/** Samples of one conversation count as this many at most, in units of the least likely draw. It is fixed, so intervals hold at every look. */
const maxWeight = 2;

/** Estimates the effect on the next action. `least` is the smallest probability of a draw: such samples weigh 1, likelier ones less. */
export function estimateShadow(samples: readonly ShadowSample[], least: number): ShadowEstimate {
  const conversations = [...Map.groupBy(samples, ({ conversation }) => conversation).values()];
  const shifts = conversations.map((own) => weighted(own, least, shiftOf));
  const losses = conversations.map((own) => weighted(own, least, lossOf));
  const shiftInterval = intervalOf(shifts, { low: -2, high: 2 });
  const lossInterval = intervalOf(losses, { low: -1, high: 1 });
  const [shift, loss] = [ratioOf(shifts), ratioOf(losses)];
  const isEnough = samples.length >= minSamples && conversations.length >= minConversations;
  const isHarm = (lossInterval.low > 0 && (loss ?? 0) >= harmfulLoss) || shiftInterval.low > harmfulShift;
  // A model that is surer of itself agrees more often with what it did before, and still does something else: so the shift counts, too.
  const isSafe = lossInterval.high <= safeLoss && (shift ?? 1) <= harmfulShift;
  const state = isHarm ? 'harm shown' : isSafe ? 'safe' : 'not shown';
  return {
    state: isEnough ? state : 'too few',
    samples: samples.length,
    conversations: conversations.length,
    shift,
    shiftInterval,
    loss,
    lossInterval,
  };
}

/** Estimates the sum of squared differences of two distributions without bias, from two draws of each. */
export function shiftOf({ folded, whole }: ShadowSample): number {
  return same(...folded) + same(...whole) - 2 * crossOf({ folded, whole });
}

function lossOf({ folded, whole }: ShadowSample): number {
  return same(...whole) - crossOf({ folded, whole });
}

/** Returns the share of the four pairs of a folded and a whole reply that agree. */
function crossOf({ folded, whole }: Pick<ShadowSample, 'folded' | 'whole'>): number {
  const pairs = folded.flatMap((one) => whole.map((other) => same(one, other)));
  return pairs.reduce((sum, pair) => sum + pair, 0) / pairs.length;
}

function same(one: string, other: string): number {
  return one === other ? 1 : 0;
}

/** Adds up the samples of one conversation, which depend on each other: together they are one sample of a ratio. */
function weighted(
  samples: readonly ShadowSample[],
  least: number,
  valueOf: (sample: ShadowSample) => number,
): RatioSample {
  let [numerator, denominator] = [0, 0];
  for (const sample of samples) {
    const weight = Math.min(1, least / sample.probability);
    numerator += weight * valueOf(sample);
    denominator += weight;
  }
  const scale = Math.min(1, maxWeight / denominator);
  return { numerator: numerator * scale, denominator: denominator * scale };
}

function intervalOf(samples: readonly RatioSample[], { low, high }: Interval): Interval {
  if (samples.length === 0) return { low, high };
  const interval = ratioInterval({
    samples,
    bounds: (ratio) => ({
      low: maxWeight * Math.min(0, low - ratio),
      high: maxWeight * Math.max(0, high - ratio),
    }),
  });
  return { low: Math.max(low, interval.low), high: Math.min(high, interval.high) };
}
