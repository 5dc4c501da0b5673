/** Compares measured ratios with recorded ones. */

/** A ratio of two CPU times by name, such as "gateway / raw pipe". Higher is slower. */
export type Ratios = Readonly<Record<string, number>>;

/** A ratio that is this many times the recorded one is a failure. */
export const maxGrowth = 1.5;

/** Returns a line for each ratio that is too high, or that one of the two lacks. */
export function slower(recorded: Ratios, measured: Ratios): readonly string[] {
  const names = [...new Set([...Object.keys(recorded), ...Object.keys(measured)])];
  return names.flatMap((name) => {
    const [before, now] = [recorded[name], measured[name]];
    if (before === undefined || now === undefined)
      return [`${name}: recorded ${before ?? 'never'}, measured ${now ?? 'never'}`];
    return isSlower(before, now) ? [`${name}: recorded ${before}, measured ${now}`] : [];
  });
}

/** True if a ratio is too high, or was never recorded. */
export function isSlower(recorded: number | undefined, measured: number): boolean {
  return !(measured <= (recorded ?? 0) * maxGrowth);
}

/** Returns the lower ratios of two measurements. */
export function lowest(one: Ratios, other: Ratios): Ratios {
  return each(one, other, Math.min);
}

/** Returns the higher ratios of two measurements. */
export function highest(one: Ratios, other: Ratios): Ratios {
  return each(one, other, Math.max);
}

function each(one: Ratios, other: Ratios, choose: (one: number, other: number) => number): Ratios {
  return Object.fromEntries(
    Object.entries(one).map(([name, ratio]) => [name, choose(ratio, other[name] ?? ratio)]),
  );
}
