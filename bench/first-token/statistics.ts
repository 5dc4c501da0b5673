/** Two targets side by side: how much later one is, with the interval that chance leaves (a bootstrap over rounds). */
import { randomNumbers } from '../tokens/arithmetic.ts';

/** Milliseconds by round: a round is what was measured at about the same moment, so it is drawn as a whole. */
export type Rounds = readonly (readonly number[])[];

/** 95 % of the samples drawn anew lie between `low` and `high`. */
export type Estimate = { readonly value: number; readonly low: number; readonly high: number };

export type Difference = { readonly p50: Estimate; readonly p95: Estimate };

const draws = 500;

/** A quantile of `target` minus the same quantile of `base`, both from the same rounds. */
export function difference(target: Rounds, base: Rounds): Difference {
  const next = randomNumbers(1);
  const seen = differencesOf(target, base);
  const drawn = Array.from({ length: draws }, () => {
    const rounds = target.map(() => next(target.length));
    const pick = (from: Rounds): Rounds => rounds.map((round) => from[round]!);
    return differencesOf(pick(target), pick(base));
  });
  const estimate = (share: keyof Quantiles): Estimate => {
    const sorted = Float64Array.from(drawn, (one) => one[share]).sort();
    return { value: seen[share], low: at(sorted, 0.025), high: at(sorted, 0.975) };
  };
  return { p50: estimate('p50'), p95: estimate('p95') };
}

/** How far two lots of samples are apart, where sample by sample what both waited for was the same. */
export type Apart = {
  /** Of the medians, each lot drawn anew by itself: what can be told without knowing how long each of them had to wait. */
  readonly medians: Estimate;
  /** The median difference of two of the same sample. */
  readonly paired: Estimate;
  /** Of all pairs, also of different samples, the share in which the one of `target` is later. One half: no way to tell. */
  readonly later: number;
};

/** Milliseconds by sample. */
export function apart(target: readonly number[], base: readonly number[]): Apart {
  const next = randomNumbers(2);
  const anew = (from: readonly number[]) => from.map(() => from[next(from.length)]!);
  const pairs = target.map((value, sample) => value - base[sample]!);
  return {
    medians: estimateOf(
      medianOf(target) - medianOf(base),
      () => medianOf(anew(target)) - medianOf(anew(base)),
    ),
    paired: estimateOf(medianOf(pairs), () => medianOf(anew(pairs))),
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

/** True when chance alone could make the two the same. */
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
