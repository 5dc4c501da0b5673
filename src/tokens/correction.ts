/**
 * From a count to the tokens a provider would report for it: a straight line through what it reported before. Pure arithmetic;
 * what was reported is remembered in `calibration.ts`.
 */

export type Correction = {
  /** The tokens the provider would report for a prompt that is counted as so many. A larger count never gives less. */
  readonly correct: (counted: number) => number;
  /** The other way round: the largest count that is corrected to no more than so many tokens. */
  readonly countFor: (tokens: number) => number;
  /** The tokens the provider would report more for one counted token more. */
  readonly slope: number;
};

/** A prompt as it was counted and as its provider reported it. */
export type Report = { readonly counted: number; readonly reported: number };

/** How far from the count a correction may go, as factors of it. */
export type Bounds = { readonly least: number; readonly most: number };

export type Evidence = {
  readonly bounds: Bounds;
  /** Reported for one counted token where a conversation begins. Within the bounds. */
  readonly level: number;
  /** Reported for one counted token more. Within the bounds. */
  readonly slope: number;
  /** The newest three of this conversation, oldest first. */
  readonly reports: readonly Report[];
};

/** How far one report may move a correction from what the others say, as a share of it. */
const STEP = 0.1;

export function correctionFrom(evidence: Evidence): Correction {
  const tokensFor = lineOf(evidence);
  const correct = (counted: number): number => Math.round(tokensFor(counted));
  const { bounds, level, slope, reports } = evidence;
  return {
    correct,
    countFor: (tokens) => largest(tokens / bounds.least, correct, tokens),
    slope: reports.length === 0 ? level : slope,
  };
}

/**
 * Each report gives a line through it. The newest is right but for what happened since, unless it is wild: so it holds within a
 * `STEP` of the middle of three, to which the level of the model belongs while there are only two. One report alone is believed
 * within the bounds; what goes beyond (something the request does not show: a stored prompt, a file by its id) needs a second.
 */
function lineOf({ bounds, level, slope, reports }: Evidence): (counted: number) => number {
  const newest = reports.at(-1);
  if (newest === undefined) return (counted) => level * counted;
  const through = (report: Report, counted: number) => report.reported + slope * (counted - report.counted);
  if (reports.length === 1) {
    return (counted) => clamp(through(newest, counted), bounds.least * counted, bounds.most * counted);
  }
  return (counted) => {
    const lines = reports.map((report) => through(report, counted));
    const least = bounds.least * counted;
    const middle = Math.max(least, median(lines.length < 3 ? [level * counted, ...lines] : lines));
    return Math.max(least, clamp(through(newest, counted), middle * (1 - STEP), middle * (1 + STEP)));
  };
}

export function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}

/** Of an even number the mean of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  const upper = sorted[Math.floor(half)] ?? Number.NaN;
  const lower = sorted[Math.ceil(half) - 1] ?? Number.NaN;
  return (lower + upper) / 2;
}

/** The largest whole number up to `end` whose value is at most `most`; 0 where none is. `valueOf` never falls. */
function largest(end: number, valueOf: (number: number) => number, most: number): number {
  let low = 0;
  let high = Math.max(0, Math.ceil(end)) + 1;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (valueOf(middle) <= most) low = middle;
    else high = middle;
  }
  return low;
}
