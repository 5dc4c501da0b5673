/** Compares the times of two targets, with bootstrap intervals over rounds. */
import { randomNumbers } from '../tokens/arithmetic.ts';

/** Milliseconds by round. The values of a round were measured at about the same time, so the bootstrap draws whole rounds. */
export type Rounds = readonly (readonly number[])[];

/** A value with its 95 % bootstrap interval. */
export type Estimate = { readonly value: number; readonly low: number; readonly high: number };

export type Difference = { readonly p50: Estimate; readonly p95: Estimate };

const draws = 500;

/** Returns quantiles of `target` minus the same quantiles of `base`, both from the same rounds. */
export function difference(target: Rounds, base: Rounds): Difference {
  const next = randomNumbers(1);
  const observed = differencesOf(target, base);
  const drawn = Array.from({ length: draws }, () => {
    const rounds = target.map(() => next(target.length));
    const pick = (from: Rounds): Rounds => rounds.map((round) => from[round]!);
    return differencesOf(pick(target), pick(base));
  });
  const estimate = (share: keyof Quantiles): Estimate => {
    const sorted = Float64Array.from(drawn, (one) => one[share]).sort();
    return { value: observed[share], low: at(sorted, 0.025), high: at(sorted, 0.975) };
  };
  return { p50: estimate('p50'), p95: estimate('p95') };
}

/** The difference between two targets that were measured on the same samples. */
export type Comparison = {
  /** The difference of the medians, with each target drawn independently, as if the pairs were unknown. */
  readonly medians: Estimate;
  /** The median of the differences within samples. */
  readonly paired: Estimate;
  /** The share of all pairs, also across samples, in which `target` is later. 0.5 means no visible difference. */
  readonly later: number;
};

/** Compares milliseconds by sample. */
export function compare(target: readonly number[], base: readonly number[]): Comparison {
  const next = randomNumbers(2);
  const resampled = (from: readonly number[]) => from.map(() => from[next(from.length)]!);
  const pairs = target.map((value, sample) => value - base[sample]!);
  return {
    medians: estimateOf(
      medianOf(target) - medianOf(base),
      () => medianOf(resampled(target)) - medianOf(resampled(base)),
    ),
    paired: estimateOf(medianOf(pairs), () => medianOf(resampled(pairs))),
    later: shareLater(target, base),
  };
}

function medianOf(values: readonly number[]): number {
  return quantiles([values]).p50;
}

function estimateOf(value: number, draw: () => number): Estimate {
  const sorted = Float64Array.from({ length: draws }, draw).sort();
  return { value, low: at(sorted, 0.025), high: at(sorted, 0.975) };
}

function shareLater(target: readonly number[], base: readonly number[]): number {
  const later = target.map((value) => base.filter((other) => other < value).length);
  return later.reduce((sum, count) => sum + count, 0) / (target.length * base.length);
}

/** True if the intervals overlap, so that the difference may be chance. */
export function overlap(a: Estimate, b: Estimate): boolean {
  return a.low <= b.high && b.low <= a.high;
}

export type Quantiles = { readonly p50: number; readonly p95: number };

export function quantiles(rounds: Rounds): Quantiles {
  const sorted = Float64Array.from(rounds.flat()).sort();
  return { p50: at(sorted, 0.5), p95: at(sorted, 0.95) };
}

function differencesOf(target: Rounds, base: Rounds): Quantiles {
  const [a, b] = [quantiles(target), quantiles(base)];
  return { p50: a.p50 - b.p50, p95: a.p95 - b.p95 };
}

function at(sorted: Float64Array, share: number): number {
  return sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN;
}
