/**
 * How long a model thinks before its first token. That it is spread as a log-normal is an assumption, and so are its parameters: they stand for
 * the hundreds of milliseconds, with a long tail, that hosted models take, and are measured nowhere here. The same sequence in every process.
 */
import { randomNumbers } from '../tokens/arithmetic.ts';

export const thinking = {
  medianMs: 400,
  /** Standard deviation of the logarithm: 0.5 has one in twenty take less than 176 ms, and one in twenty more than 910. */
  spread: 0.5,
} as const;

/** Milliseconds by sample. */
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

/** Above 0, below 1. */
function uniform(seed: number): () => number {
  const next = randomNumbers(seed);
  return () => (next(1_000_000) + 0.5) / 1_000_000;
}
