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
import { type Bounds, clamp, type Correction, correctionFrom, median, type Report } from './correction.ts';

export interface Calibration {
  /**
   * How to correct counts of a conversation as far as is known now: it does not change when more is learned. An undefined
   * conversation is one nobody could find again: it is corrected by its model alone.
   */
  correctionFor(model: string, conversation: string | undefined): Correction;
  /** Takes in what the provider reported for a prompt. What cannot be a report of it is left out. */
  learn(model: string, conversation: string | undefined, report: Report): void;
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
  const models = new LRUCache<string, ModelRecord>({ max: options.models ?? 500 });
  const conversations = new LRUCache<string, ConversationRecord>({ max: most });

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

type ModelRecord = {
  /** Logarithms of reported for counted, of the first reports of conversations. */
  readonly levels: readonly number[];
  readonly growth: Growth;
};

type ConversationRecord = { readonly reports: readonly Report[]; readonly growth: Growth };

/** Tokens prompts have grown by, all told. */
type Growth = Report;

const noGrowth: Growth = { counted: 0, reported: 0 };
const newModel: ModelRecord = { levels: [], growth: noGrowth };
const newConversation: ConversationRecord = { reports: [], growth: noGrowth };

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

function isReport({ counted, reported }: Report, bounds: Bounds): boolean {
  return (
    counted > 0 && Number.isFinite(counted) && Number.isFinite(reported) && reported >= bounds.least * counted
  );
}

function levelOf({ levels }: ModelRecord): number {
  return Math.exp(median([0, ...levels]));
}

/** Beyond the bounds it is no ratio, but something the request does not show. */
function withLevel(
  levels: readonly number[],
  { counted, reported }: Report,
  { most }: Bounds,
): readonly number[] {
  if (counted < LEAST_TELLING || reported > most * counted) return levels;
  return [...levels, Math.log(reported / counted)].slice(-LEVELS);
}

/** How the prompt grew, or shrank by a fold; undefined where that is no matter of counting. */
function growthBetween(from: Report, to: Report, { least, most }: Bounds): Growth | undefined {
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
