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
    return !(now <= before * maxGrowth) ? [`${name}: recorded ${before}, measured ${now}`] : [];
  });
}

/** Returns the lower ratio of two measurements. */
export function best(one: Ratios, other: Ratios): Ratios {
  const names = Object.keys({ ...one, ...other });
  return Object.fromEntries(
    names.map((name) => [name, Math.min(one[name] ?? Infinity, other[name] ?? Infinity)]),
  );
}
