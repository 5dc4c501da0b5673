/**
 * Learns from what providers report how far counts are off, and corrects the next ones. In this process only: a restart forgets it,
 * and two reports later it is known again. Pure but for that memory, which is bounded.
 *
 * What is reported is taken as `unseen + slope x counted`. The slope is reckoned from how prompts grow, of the conversation and before
 * that of the model; `unseen` belongs to a conversation and lies in its last reports. A conversation without any is corrected by the
 * level of its model: the median of what others began with, in which the uncorrected count has one vote.
 */
import { LRUCache } from 'lru-cache';
import { LeporelloError } from '../errors.ts';

export interface Calibration {
  /**
   * How to correct counts of a conversation as far as is known now: it does not change when more is learned. An undefined
   * conversation is one nobody could find again: it is corrected by its model alone.
   */
  correctionFor(model: string, conversation: string | undefined): Correction;
  /** Takes in what the provider reported for a prompt. What cannot be a report of it is left out. */
  learn(model: string, conversation: string | undefined, report: CountReport): void;
}

export type CalibrationOptions = {
  /**
   * Factors of a count. Less than `least` is no report of that prompt (some servers report what their cache did not hold); more than
   * `most` is believed when two reports of a conversation say so. Default 0.5 and 2.
   */
  readonly bounds?: Bounds;
  /** How many conversations are remembered, of some 500 bytes each. Default 5,000. */
  readonly conversations?: number;
  /** How many models. Default 500. */
  readonly models?: number;
};

/** Leaves every count as it is. */
export const uncalibrated: Calibration = {
  correctionFor: () => ({ correct: (counted) => counted, countFor: (tokens) => tokens, slope: 1 }),
  learn: () => {},
};

/** Throws `bad-config` for bounds that do not hold 1. */
export function createCalibration(options: CalibrationOptions = {}): Calibration {
  const { bounds = { least: 0.5, most: 2 }, conversations: most = 5_000 } = options;
  if (!(bounds.least > 0 && bounds.least <= 1 && bounds.most >= 1)) {
    throw new LeporelloError(
      'bad-config',
      `Calibration is bounded by ${bounds.least} and ${bounds.most}; the first must be above 0 and at most 1, the second at least 1.`,
    );
  }
  const models = new LRUCache<string, CalibratedModel>({ max: options.models ?? 500 });
  const conversations = new LRUCache<string, CalibratedConversation>({ max: most });

  return {
    correctionFor(model, conversation) {
      const ofModel = models.get(model) ?? newModel;
      const known = conversation === undefined ? undefined : conversations.get(`${model}\n${conversation}`);
      const { reports, growth } = known ?? newConversation;
      const level = levelOf(ofModel);
      const slope = clamp(slopeOf(growth, slopeOf(ofModel.growth, level)), bounds.least, bounds.most);
      return correctionFrom({ bounds, level, slope, reports });
    },
    learn(model, conversation, report) {
      if (conversation === undefined || !isReport(report, bounds)) return;
      const key = `${model}\n${conversation}`;
      const ofModel = models.get(model) ?? newModel;
      const { reports, growth } = conversations.get(key) ?? newConversation;
      const last = reports.at(-1);
      const grown = last && growthBetween(last, report, bounds);
      models.set(model, {
        levels: last ? ofModel.levels : withLevel(ofModel.levels, report, bounds),
        growth: grown ? added(ofModel.growth, grown) : ofModel.growth,
      });
      conversations.set(key, {
        reports: [...reports, report].slice(-3),
        growth: grown ? added(growth, grown) : growth,
      });
    },
  };
}

type CalibratedModel = {
  /** Logarithms of reported for counted, of the first reports of conversations. */
  readonly levels: readonly number[];
  readonly growth: Growth;
};

type CalibratedConversation = { readonly reports: readonly CountReport[]; readonly growth: Growth };

/** Tokens prompts have grown by, all told. */
type Growth = CountReport;

const noGrowth: Growth = { counted: 0, reported: 0 };
const newModel: CalibratedModel = { levels: [], growth: noGrowth };
const newConversation: CalibratedConversation = { reports: [], growth: noGrowth };

/** Conversations whose beginning tells the level of a model: the newest. */
const LEVELS = 31;

/** In shorter prompts what nobody sees weighs as much as the text: side calls for titles, or to ask for the quota. */
const LEAST_TELLING = 1_000;

/** Growth (tokens) after which a slope of its own weighs as much as what was assumed before. */
const ASSUMED_GROWTH = 10_000;

/** Growth beyond which half of it is forgotten, so that the slope goes with the content. */
const REMEMBERED_GROWTH = 200_000;

/** What one turn may bring that a request does not show: thinking, reminders, wrapping. Tokens. */
const UNSEEN_GROWTH = 2_000;

function isReport({ counted, reported }: CountReport, bounds: Bounds): boolean {
  return (
    counted > 0 && Number.isFinite(counted) && Number.isFinite(reported) && reported >= bounds.least * counted
  );
}

function levelOf({ levels }: CalibratedModel): number {
  return Math.exp(median([0, ...levels]));
}

/** Beyond the bounds it is no ratio, but something the request does not show. */
function withLevel(
  levels: readonly number[],
  { counted, reported }: CountReport,
  { most }: Bounds,
): readonly number[] {
  if (counted < LEAST_TELLING || reported > most * counted) return levels;
  return [...levels, Math.log(reported / counted)].slice(-LEVELS);
}

/** How the prompt grew, or shrank by a fold; undefined where that is no matter of counting. */
function growthBetween(from: CountReport, to: CountReport, { least, most }: Bounds): Growth | undefined {
  const sign = to.counted < from.counted ? -1 : 1;
  const counted = sign * (to.counted - from.counted);
  const reported = sign * (to.reported - from.reported);
  const believable =
    reported >= least * counted - UNSEEN_GROWTH && reported <= most * counted + UNSEEN_GROWTH;
  return believable ? { counted, reported } : undefined;
}

function added(one: Growth, other: Growth): Growth {
  const counted = one.counted + other.counted;
  const share = counted > REMEMBERED_GROWTH ? 0.5 : 1;
  return { counted: counted * share, reported: (one.reported + other.reported) * share };
}

function slopeOf({ counted, reported }: Growth, assumed: number): number {
  return (ASSUMED_GROWTH * assumed + reported) / (ASSUMED_GROWTH + counted);
}

export type Correction = {
  /** The tokens the provider would report for a prompt that is counted as so many. A larger count never gives less. */
  readonly correct: (counted: number) => number;
  /** The other way round: the largest count that is corrected to no more than so many tokens. */
  readonly countFor: (tokens: number) => number;
  /** The tokens the provider would report more for one counted token more. */
  readonly slope: number;
};

/** A prompt as it was counted and as its provider reported it. */
export type CountReport = { readonly counted: number; readonly reported: number };

/** How far from the count a correction may go, as factors of it. */
type Bounds = { readonly least: number; readonly most: number };

export type Evidence = {
  readonly bounds: Bounds;
  /** Reported for one counted token where a conversation begins. Within the bounds. */
  readonly level: number;
  /** Reported for one counted token more. Within the bounds. */
  readonly slope: number;
  /** The newest three of this conversation, oldest first. */
  readonly reports: readonly CountReport[];
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
  const through = (report: CountReport, counted: number) =>
    report.reported + slope * (counted - report.counted);
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

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}

/** Of an even number the mean of the middle two. */
function median(values: readonly number[]): number {
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
