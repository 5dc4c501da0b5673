/**
 * Computes confidence intervals that stay valid however often they are looked at: the empirical-Bernstein confidence sequence with
 * predictable plug-in weights for the mean of bounded values (I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables
 * by betting", JRSS B 86(1), 2024, theorem 2). With probability 95 %, the interval contains the mean at every sample at once, so stopping as
 * soon as it excludes zero raises no more false alarms than promised. Pure.
 */
import type { Steps } from '../conversation/steps.ts';

/** An interval; an infinite end says that nothing bounds it yet. */
export type Interval = { readonly low: number; readonly high: number };

/** The error probability of every interval here, over all looks together. */
const alpha = 0.05;

/** A confidence sequence that takes one value after the other. */
export interface ConfidenceSequence {
  /** Takes a value. Values outside the bounds are an error of the caller, since nothing is promised for them. */
  add(value: number): void;
  /** Returns the interval for the mean of all values so far and to come. */
  interval(): Interval;
}

/** The largest bet on one value. One would risk everything; the paper uses 1/2 or 3/4. */
const maxBet = 0.5;

/** Opens a confidence sequence for values between `low` and `high`. */
export function openSequence({ low, high }: Interval): ConfidenceSequence {
  const range = high - low;
  const logTerm = Math.log(2 / alpha);
  let count = 0;
  // The sum, and the sum of squared distances from the running mean, are those of the values scaled to 0 … 1.
  let sum = 0;
  let squares = 0;
  let bets = 0;
  let weighted = 0;
  let penalty = 0;
  return {
    add(value) {
      const scaled = (value - low) / range;
      if (!(scaled >= -1e-9 && scaled <= 1 + 1e-9))
        throw new RangeError(`The value ${value} is outside ${low} … ${high}.`);
      // The bet uses earlier values only: that makes the weights predictable, and the interval valid at every look.
      const meanBefore = (0.5 + sum) / (count + 1);
      const varianceBefore = (0.25 + squares) / (count + 1);
      count += 1;
      const bet = Math.min(Math.sqrt((2 * logTerm) / (varianceBefore * count * Math.log(1 + count))), maxBet);
      bets += bet;
      weighted += bet * scaled;
      const distance = scaled - meanBefore;
      penalty += distance * distance * (-Math.log(1 - bet) - bet);
      sum += scaled;
      const mean = (0.5 + sum) / (count + 1);
      squares += (scaled - mean) * (scaled - mean);
    },
    interval() {
      if (count === 0) return { low, high };
      const center = weighted / bets;
      const radius = (logTerm + penalty) / bets;
      return {
        low: low + range * Math.max(0, center - radius),
        high: low + range * Math.min(1, center + radius),
      };
    },
  };
}

/** Rounds a number of samples up to two digits. */
export function roundedUp(count: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(count)) - 1);
  return Math.ceil(count / unit) * unit;
}

/** One sample of a ratio of means, such as one conversation: its share of the numerator and of the denominator. */
export type RatioSample = { readonly numerator: number; readonly denominator: number };

/** Samples of a ratio, with the bounds of `numerator - ratio * denominator`, which must hold for every sample whatever its value. */
export type RatioData = {
  readonly samples: readonly RatioSample[];
  readonly bounds: (ratio: number) => Interval;
};

/** Ratios beyond this are reported as unbounded. */
const farthest = 1e6;

/**
 * Returns the interval for the ratio of two means: all ratios for which the mean of `numerator - ratio * denominator` can be zero. It is
 * valid at every look, because each of these tests is. One step for each test, which reads all samples.
 */
export function* ratioInterval(data: RatioData): Steps<Interval> {
  const { samples } = data;
  const estimate = ratioOf(samples);
  if (estimate === undefined || !isPossible(data, estimate)) {
    return { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };
  }
  return { low: yield* edge(data, estimate, -1), high: yield* edge(data, estimate, 1) };
}

/** Returns the ratio of the two sums; undefined when the denominators do not add up to a positive number. */
export function ratioOf(samples: readonly RatioSample[]): number | undefined {
  const denominator = samples.reduce((sum, sample) => sum + sample.denominator, 0);
  if (!(denominator > 0)) return undefined;
  return samples.reduce((sum, sample) => sum + sample.numerator, 0) / denominator;
}

/** True when this ratio is not excluded. */
export function isPossible({ samples, bounds }: RatioData, ratio: number): boolean {
  const sequence = openSequence(bounds(ratio));
  for (const { numerator, denominator } of samples) sequence.add(numerator - ratio * denominator);
  const { low, high } = sequence.interval();
  return low <= 0 && high >= 0;
}

/** Finds the last possible ratio in one direction: doubles the step until a ratio is excluded, then halves the gap. */
function* edge(data: RatioData, from: number, direction: 1 | -1): Steps<number> {
  let inside = from;
  let step = Math.max(Math.abs(from) / 8, 0.01);
  let outside = from + direction * step;
  while (isPossible(data, outside)) {
    yield;
    inside = outside;
    step *= 2;
    outside += direction * step;
    if (Math.abs(outside) > farthest) return direction * Number.POSITIVE_INFINITY;
  }
  for (let round = 0; round < 24; round++) {
    yield;
    const middle = (inside + outside) / 2;
    if (isPossible(data, middle)) inside = middle;
    else outside = middle;
  }
  // The end that is excluded: the interval is never reported too narrow.
  return outside;
}
