/**
 * Corrects token counts by what providers reported for earlier requests. It learns in this process only: a restart forgets it,
 * and two reports later it is learned again. Pure except for that memory, which is bounded.
 *
 * It models the reported tokens as `unseen + slope x counted`. The slope is computed from how prompts grow, in the conversation
 * and before that in all conversations with the model. `unseen` belongs to a conversation and follows from its last reports. A
 * conversation without reports is corrected by the level of its model: the median of what others began with, in which the
 * uncorrected count has one vote.
 */
import { type Caches, openFixed } from '../caches.ts';
import { LeporelloError } from '../errors.ts';

export interface Calibration {
  /**
   * Returns the correction for a conversation as known now: it does not change when more is learned. An undefined conversation
   * cannot be found again, so it is corrected by its model alone.
   */
  correctionFor(model: string, conversation: string | undefined): Correction;
  /** Takes the provider's report for a prompt. Ignores reports that cannot be of that prompt. */
  learn(model: string, conversation: string | undefined, report: CountReport): void;
  /** Returns all that is known of a model and a conversation, for the calibration of another thread. */
  known(model: string, conversation: string | undefined): KnownCalibration;
  /** Takes over all that another calibration knows of a model and a conversation. */
  adopt(model: string, conversation: string | undefined, known: KnownCalibration): void;
}

export type CalibrationOptions = {
  /**
   * Factors of a count. A report below `min` is no report of that prompt (some servers report only what their cache did not
   * hold); one above `max` is accepted when two reports of a conversation agree. Default 0.5 and 2.
   */
  readonly bounds?: CorrectionBounds;
  /** How many conversations are remembered, of some 500 bytes each. Default 5,000. */
  readonly conversations?: number;
  /** How many models are remembered. Default 500. */
  readonly models?: number;
};

/** Parts of the memory for everything that an engine learns. `calibration`: false corrects no counts. */
export type LearnedParts = {
  readonly caches?: Caches | undefined;
  readonly clock?: (() => number) | undefined;
  readonly calibration?: CalibrationOptions | false | undefined;
};

/** Leaves every count unchanged. */
const uncalibrated: Calibration = {
  correctionFor: () => ({ correct: (counted) => counted, countFor: (tokens) => tokens, slope: 1 }),
  learn: () => {},
  known: () => ({}),
  adopt: () => {},
};

/** Throws `bad-config` unless 0 < min <= 1 <= max. `false` corrects nothing. */
export function createCalibration(options: CalibrationOptions | false = {}): Calibration {
  if (options === false) return uncalibrated;
  const { bounds = { min: 0.5, max: 2 } } = options;
  if (!(bounds.min > 0 && bounds.min <= 1 && bounds.max >= 1)) {
    throw new LeporelloError(
      'bad-config',
      `calibration.bounds must satisfy 0 < min <= 1 <= max, but min is ${bounds.min} and max is ${bounds.max}.`,
    );
  }
  const models = openFixed<string, CalibratedModel>('calibrated models', { max: options.models });
  const conversations = openFixed<string, CalibratedConversation>('calibrated conversations', {
    max: options.conversations,
  });

  const known = (model: string, conversation: string | undefined): KnownCalibration => ({
    ofModel: models.get(model),
    ofConversation: conversation === undefined ? undefined : conversations.get(keyOf(model, conversation)),
  });
  return {
    correctionFor(model, conversation) {
      const { ofModel = newModel, ofConversation = newConversation } = known(model, conversation);
      const { reports, growth } = ofConversation;
      const level = levelOf(ofModel);
      const slope = clamp(slopeOf(growth, slopeOf(ofModel.growth, level)), bounds.min, bounds.max);
      return correctionFrom({ bounds, level, slope, reports });
    },
    learn(model, conversation, report) {
      if (conversation === undefined || !isReport(report, bounds)) return;
      const key = keyOf(model, conversation);
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
    known,
    adopt(model, conversation, { ofModel, ofConversation }) {
      if (ofModel) models.set(model, ofModel);
      if (ofConversation) conversations.set(keyOf(model, conversation!), ofConversation);
    },
  };
}

function keyOf(model: string, conversation: string): string {
  return `${model}\n${conversation}`;
}

/** Names of a model and a conversation; an undefined conversation cannot be found again. */
export type CalibrationKeys = { readonly model: string; readonly conversation: string | undefined };

/** Everything that a calibration knows of a model and a conversation, as data. */
export type KnownCalibration = {
  readonly ofModel?: CalibratedModel | undefined;
  readonly ofConversation?: CalibratedConversation | undefined;
};

type CalibratedModel = {
  /** Logarithms of reported divided by counted tokens, of the first reports of conversations. */
  readonly levels: readonly number[];
  readonly growth: Growth;
};

type CalibratedConversation = { readonly reports: readonly CountReport[]; readonly growth: Growth };

/** Sum of the tokens by which prompts have grown. */
type Growth = CountReport;

const noGrowth: Growth = { counted: 0, reported: 0 };
const newModel: CalibratedModel = { levels: [], growth: noGrowth };
const newConversation: CalibratedConversation = { reports: [], growth: noGrowth };

/** Number of newest conversations whose beginning decides the level of a model. */
const LEVELS = 31;

/** Tokens. In shorter prompts the hidden part weighs as much as the text: side calls for titles, or to ask for the quota. */
const MIN_LEVEL_TOKENS = 1_000;

/** Growth (tokens) after which a measured slope weighs as much as the assumed one. */
const ASSUMED_GROWTH = 10_000;

/** Growth (tokens) above which half of it is forgotten, so that the slope follows the content. */
const REMEMBERED_GROWTH = 200_000;

/** Tokens that one turn may add without showing in the request: thinking, reminders, wrapping. */
const UNSEEN_GROWTH = 2_000;

function isReport({ counted, reported }: CountReport, bounds: CorrectionBounds): boolean {
  return (
    counted > 0 && Number.isFinite(counted) && Number.isFinite(reported) && reported >= bounds.min * counted
  );
}

function levelOf({ levels }: CalibratedModel): number {
  return Math.exp(median([0, ...levels]));
}

/** Reports beyond the bounds are no ratio, but something that the request does not show. */
function withLevel(
  levels: readonly number[],
  { counted, reported }: CountReport,
  { max }: CorrectionBounds,
): readonly number[] {
  if (counted < MIN_LEVEL_TOKENS || reported > max * counted) return levels;
  return [...levels, Math.log(reported / counted)].slice(-LEVELS);
}

/** Returns how the prompt grew, or shrank by a fold; undefined when the difference is not caused by counting. */
function growthBetween(
  from: CountReport,
  to: CountReport,
  { min, max }: CorrectionBounds,
): Growth | undefined {
  const sign = to.counted < from.counted ? -1 : 1;
  const counted = sign * (to.counted - from.counted);
  const reported = sign * (to.reported - from.reported);
  const believable = reported >= min * counted - UNSEEN_GROWTH && reported <= max * counted + UNSEEN_GROWTH;
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
  /** Returns the tokens the provider would report for a prompt with this count. A larger count never gives less. */
  readonly correct: (counted: number) => number;
  /** Returns the inverse: the largest count that is corrected to at most this many tokens. */
  readonly countFor: (tokens: number) => number;
  /** The tokens that the provider would report for one more counted token. */
  readonly slope: number;
};

/** The counted tokens of a prompt, and those its provider reported. */
export type CountReport = { readonly counted: number; readonly reported: number };

/** Limits of a correction, as factors of the count. */
export type CorrectionBounds = { readonly min: number; readonly max: number };

export type CorrectionEvidence = {
  readonly bounds: CorrectionBounds;
  /** Reported tokens for one counted token at the beginning of a conversation. Within the bounds. */
  readonly level: number;
  /** Reported tokens for one more counted token. Within the bounds. */
  readonly slope: number;
  /** The newest three reports of this conversation, oldest first. */
  readonly reports: readonly CountReport[];
};

/** How far one report may move a correction away from the others, as a share of it. */
const STEP = 0.1;

export function correctionFrom(evidence: CorrectionEvidence): Correction {
  const tokensFor = lineOf(evidence);
  const correct = (counted: number): number => Math.round(tokensFor(counted));
  const { bounds, level, slope, reports } = evidence;
  return {
    correct,
    countFor: (tokens) => largest(tokens / bounds.min, correct, tokens),
    slope: reports.length === 0 ? level : slope,
  };
}

/**
 * Returns the corrected count as a function of the count. Each report gives a line through it. The newest is right except for
 * later changes, unless it is an outlier: so it must lie within a `STEP` of the median of three, which includes the level of the
 * model while there are only two. A single report is accepted within the bounds; one beyond them (for something the request does
 * not show: a stored prompt, a file by its id) needs a second one.
 */
function lineOf({ bounds, level, slope, reports }: CorrectionEvidence): (counted: number) => number {
  const newest = reports.at(-1);
  if (newest === undefined) return (counted) => level * counted;
  const through = (report: CountReport, counted: number) =>
    report.reported + slope * (counted - report.counted);
  if (reports.length === 1) {
    return (counted) => clamp(through(newest, counted), bounds.min * counted, bounds.max * counted);
  }
  const [first, second, third] = reports as readonly [CountReport, CountReport, CountReport?];
  return (counted) => {
    const min = bounds.min * counted;
    const last = third ? through(third, counted) : level * counted;
    const middle = Math.max(min, middleOf(through(first, counted), through(second, counted), last));
    return Math.max(min, clamp(through(newest, counted), middle * (1 - STEP), middle * (1 + STEP)));
  };
}

/** Returns the median of three. Each request corrects several counts, so nothing is sorted. */
function middleOf(one: number, two: number, three: number): number {
  return Math.max(Math.min(one, two), Math.min(Math.max(one, two), three));
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, value));
}

/** Returns the median; of an even number of values the mean of the middle two. */
function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  const upper = sorted[Math.floor(half)] ?? Number.NaN;
  const lower = sorted[Math.ceil(half) - 1] ?? Number.NaN;
  return (lower + upper) / 2;
}

/** Returns the largest whole number up to `end` whose value is at most `max`; 0 if there is none. `valueOf` never decreases. */
function largest(end: number, valueOf: (number: number) => number, max: number): number {
  let low = 0;
  let high = Math.max(0, Math.ceil(end)) + 1;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (valueOf(middle) <= max) low = middle;
    else high = middle;
  }
  return low;
}

// Context windows that providers enforce: learned from refusals, per tenant, upstream and model, and forgotten after a day. They
// are kept in this process only: after a restart one refusal teaches them again.

export interface LearnedWindows {
  /** Returns the window in tokens; undefined when no refusal named a limit within the last day. */
  find(key: WindowKey): number | undefined;
  /** Remembers a limit, in tokens. A larger one than known changes nothing. */
  learn(key: WindowKey, limit: number): void;
  /** Takes the tokens of a prompt that the provider accepted: a smaller learned window was wrong, and is forgotten. */
  accepted(key: WindowKey, prompt: number): void;
  /** Takes over the limit that another thread knows; undefined when it knows none. */
  adopt(key: WindowKey, limit: number | undefined): void;
}

export type WindowKey = {
  readonly tenant: string;
  readonly upstream: string | undefined;
  readonly model: string | undefined;
};

/** Milliseconds. Providers raise limits, and accounts change tiers. */
const rememberedMs = 24 * 60 * 60 * 1_000;

/** Model names come from the client: their kept length is bounded. */
const maxNameLength = 200;

/** Creates an empty list of learned windows. `clock` returns milliseconds since the epoch. */
export function createLearnedWindows(clock: () => number = () => 0): LearnedWindows {
  const learned = openFixed<string, { readonly limit: number; readonly at: number }>('learned windows');

  function find(key: WindowKey): number | undefined {
    const found = learned.get(nameOf(key));
    return found && clock() - found.at < rememberedMs ? found.limit : undefined;
  }

  return {
    find,
    learn(key, limit) {
      const before = find(key);
      if (before === undefined || limit < before) learned.set(nameOf(key), { limit, at: clock() });
    },
    accepted(key, prompt) {
      const before = learned.size > 0 ? find(key) : undefined;
      if (before !== undefined && prompt > before) learned.delete(nameOf(key));
    },
    adopt(key, limit) {
      if (limit === undefined) learned.delete(nameOf(key));
      else learned.set(nameOf(key), { limit, at: clock() });
    },
  };
}

function nameOf({ tenant, upstream, model }: WindowKey): string {
  return JSON.stringify([tenant, upstream, model?.slice(0, maxNameLength)]);
}
