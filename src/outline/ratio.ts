/** How hard a stretch is compressed: as asked for, or by how much it repeats itself. Pure, linear in the text. */
import { hardestRatio } from './levels.ts';

const softest = 5;

/** Share of new word triples at which a stretch counts as all repetition, and as all news. */
const repetitive = 0.3;
const varied = 0.8;

/** Tokens in for one token out. */
export function ratioFor(ratio: number | 'adaptive', steps: readonly string[]): number {
  if (ratio !== 'adaptive') return ratio;
  const news = (varietyOf(steps) - repetitive) / (varied - repetitive);
  return hardestRatio - (hardestRatio - softest) * Math.min(Math.max(news, 0), 1);
}

/**
 * Of the runs of three words the share that did not come before; numbers count as one and the same, since a log repeats itself though
 * its times do not. 1 for texts too short to tell.
 */
export function varietyOf(steps: readonly string[]): number {
  const seen = new Set<string>();
  let all = 0;
  for (const step of steps) {
    const words =
      step
        .toLowerCase()
        .replaceAll(/\d+/g, '0')
        .match(/[\p{L}_]+|0/gu) ?? [];
    for (let at = 0; at + 2 < words.length; at++) {
      seen.add(`${words[at]} ${words[at + 1]} ${words[at + 2]}`);
      all++;
    }
  }
  return all === 0 ? 1 : seen.size / all;
}
