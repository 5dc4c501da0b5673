/**
 * Generates think times: the time of a model before its first token, the same sequence in every process. The log-normal distribution and its
 * parameters are assumptions. They imitate hosted models, which take hundreds of milliseconds with a long tail, and are not measured.
 */
import { randomNumbers } from '../tokens/arithmetic.ts';

export const thinking = {
  medianMs: 400,
  /** Standard deviation of the logarithm. With 0.5, 5 % of the times are below 176 ms and 5 % above 910 ms. */
  spread: 0.5,
} as const;

/** Returns a function that gives the think time of a sample in milliseconds. */
export function createThinkTimes({ medianMs, spread }: typeof thinking): (sample: number) => number {
  const [radius, angle] = [uniform(11), uniform(29)];
  const times: number[] = [];
  return function thinkTime(sample) {
    while (times.length <= sample) {
      const normal = Math.sqrt(-2 * Math.log(radius())) * Math.cos(2 * Math.PI * angle());
      times.push(medianMs * Math.exp(spread * normal));
    }
    return times[sample]!;
  };
}

/** Returns a generator of numbers above 0 and below 1. */
function uniform(seed: number): () => number {
  const next = randomNumbers(seed);
  return () => (next(1_000_000) + 0.5) / 1_000_000;
}
