/**
 * Estimates from repeated requests whether a fold changes what the model does next. A sample has four replies to one place of a conversation:
 * two to the folded request, and two to the client's own. Two replies to the same request differ too, so each comparison is measured against
 * that. Recalls are answered before a reply is compared: a recall that brings back what was missing is no harm. Pure.
 */
import { groupBy } from '../es2024.ts';
import { type Interval, openSequence, roundedUp } from './sequence.ts';

/** Which of four decisions agree at one level of detail: the two after the folded request, the two after the client's own, and both with each other. */
export type Agreement = {
  readonly folded: boolean;
  readonly whole: boolean;
  /** How many of the four pairs of a folded and a whole decision agree. */
  readonly cross: number;
};

/** Compares four decisions at one level. Equal texts are equal decisions. */
export function agreementOf(folded: readonly [string, string], whole: readonly [string, string]): Agreement {
  const pairs = folded.flatMap((one) => whole.map((other) => one === other));
  return {
    folded: folded[0] === folded[1],
    whole: whole[0] === whole[1],
    cross: pairs.filter(Boolean).length,
  };
}

export type ShadowSample = {
  readonly conversation: string;
  /** True for a request that made a new fold. These are drawn more often than others, so the two are estimated apart. */
  readonly isFirst: boolean;
  readonly agreement: Agreement;
};

/**
 * - `too few`: fewer samples or conversations than the floor.
 * - `harm shown`: folds change the next action. New folds are to be held.
 * - `safe`: they cost less agreement than the limit.
 * - `not shown`: neither.
 */
export type ShadowState = 'too few' | 'harm shown' | 'not shown' | 'safe';

/** Means over conversations, each with its mean of samples. */
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
  /** About how many samples a verdict needs; undefined after one, and where no number would be enough. */
  readonly needed: number | undefined;
};

/** The floor of every verdict. */
export const minSamples = 50;
export const minConversations = 20;

/** The agreement that must be lost at least, the shift that must be exceeded, and the loss up to which folds are safe. */
const harmfulLoss = 0.02;
const harmfulShift = 0.05;
const safeLoss = 0.05;

/** Estimates the effect on the next action. The intervals hold at every look. */
export function estimateShadow(samples: readonly ShadowSample[]): ShadowEstimate {
  const conversations = [...groupBy(samples, ({ conversation }) => conversation).values()];
  const [shift, shiftInterval] = meanOf(conversations, shiftOf, { low: -2, high: 2 });
  const [loss, lossInterval] = meanOf(conversations, lossOf, { low: -1, high: 1 });
  const isEnough = samples.length >= minSamples && conversations.length >= minConversations;
  const isLoss = lossInterval.low > 0 && (loss ?? 0) >= harmfulLoss;
  const isShift = shiftInterval.low > harmfulShift;
  // A model that is surer of itself agrees more often with what it did before, and still does something else: so the shift counts, too.
  const isSafe = lossInterval.high <= safeLoss && (shift ?? 1) <= harmfulShift;
  const decided = isLoss || isShift ? 'harm shown' : isSafe ? 'safe' : 'not shown';
  const state = isEnough ? decided : 'too few';
  const ways = [
    (loss ?? 0) >= harmfulLoss && [loss! - lossInterval.low, loss!],
    (shift ?? 0) > harmfulShift && [shift! - shiftInterval.low, shift! - harmfulShift],
    (shift ?? 1) <= harmfulShift && (loss ?? 1) < safeLoss && [lossInterval.high - loss!, safeLoss - loss!],
  ];
  return {
    state,
    needed: state === 'not shown' ? neededFor(samples.length, ways) : undefined,
    samples: samples.length,
    conversations: conversations.length,
    shift,
    shiftInterval,
    loss,
    lossInterval,
  };
}

/** Returns the samples after which the first of several intervals will have shrunk from its reach to what a verdict leaves it. */
function neededFor(count: number, ways: readonly (readonly number[] | false)[]): number | undefined {
  const counts = ways.flatMap((way) => (way ? [count * (way[0]! / way[1]!) ** 2] : []));
  return counts.length === 0 ? undefined : roundedUp(Math.max(count + 1, Math.min(...counts)));
}

/** Decides on requests with new folds and on later ones together. */
export function stateOf(samples: readonly ShadowSample[]): ShadowState {
  const states = [true, false].map(
    (isFirst) => estimateShadow(samples.filter((sample) => sample.isFirst === isFirst)).state,
  );
  if (states.includes('harm shown')) return 'harm shown';
  if (states.includes('not shown')) return 'not shown';
  return states.includes('safe') ? 'safe' : 'too few';
}

/** Estimates the sum of squared differences of two distributions without bias, from two draws of each. */
export function shiftOf({ agreement: { folded, whole, cross } }: ShadowSample): number {
  return Number(folded) + Number(whole) - cross / 2;
}

function lossOf({ agreement: { whole, cross } }: ShadowSample): number {
  return Number(whole) - cross / 4;
}

/** Returns the mean over conversations with its interval. Samples of one conversation depend on each other: together they are one value. */
function meanOf(
  conversations: readonly (readonly ShadowSample[])[],
  valueOf: (sample: ShadowSample) => number,
  bounds: Interval,
): readonly [number | undefined, Interval] {
  const sequence = openSequence(bounds);
  let sum = 0;
  for (const samples of conversations) {
    const value = samples.reduce((total, sample) => total + valueOf(sample), 0) / samples.length;
    sequence.add(value);
    sum += value;
  }
  return [conversations.length === 0 ? undefined : sum / conversations.length, sequence.interval()];
}
