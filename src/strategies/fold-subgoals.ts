/**
 * Replaces each finished sub-goal by a short record, calls always together with their results; several records by the record of a phase, and
 * several phases by that of an overview. User messages stay in place. A record's id returns what it replaced, so every message is a few recalls
 * away.
 */
import { allowed, checkSettings, object, oneOf, wholeNumber } from '../checks.ts';
import type { Edit } from '../conversation/edit.ts';
import { pairCalls } from '../conversation/turns.ts';
import {
  fullLevel,
  largestLevel,
  overviewLevel,
  type CompressionLevel,
  compressionLevelOf,
  type Preset,
  presetNames,
} from '../outline/levels.ts';
import { finishedSubgoals, createRecords } from './lib/subgoals.ts';
import type { FoldView, Strategy } from './strategy.ts';

export type SubgoalOptions = {
  /** Default `production`. Other options override it. */
  readonly preset?: Preset | undefined;
  /**
   * Tokens before for one token after, 1.5 to 15, on each level; `adaptive`: from 15 for repetitive text to 5 for varied text. A higher one, up to
   * 1,000, is reached by levels.
   */
  readonly ratio?: number | 'adaptive' | undefined;
  /** Bounds of the ratio of a level, 1.5 to 15. */
  readonly minRatio?: number | undefined;
  readonly maxRatio?: number | undefined;
  /** Maximum tokens of one record. */
  readonly maxTokens?: number | undefined;
  /**
   * Whether ten sub-goals become a phase, and five phases an overview, always, or only if records take more than a sixth of the request or the
   * request would not fit.
   */
  readonly levels?: 'always' | 'as-needed' | undefined;
  /** Conversations with fewer calls are not folded by this strategy. Default 20. */
  readonly minActions?: number | undefined;
  /** `model` uses a model's words for what was done in a sub-goal where these were written ahead. Default `extractive`: words of the conversation. */
  readonly kind?: 'extractive' | 'model' | undefined;
};

const ofOneLevel = allowed(
  'a number from 1.5 to 15',
  (ratio) => typeof ratio === 'number' && ratio >= 1.5 && ratio <= 15,
);

/** The check of each option. */
export const subgoalChecks = {
  preset: oneOf(...presetNames),
  ratio: allowed(
    'a number from 1.5 to 1000, or "adaptive"',
    (ratio) => ratio === 'adaptive' || (typeof ratio === 'number' && ratio >= 1.5 && ratio <= 1_000),
  ),
  minRatio: ofOneLevel,
  maxRatio: ofOneLevel,
  maxTokens: wholeNumber(40),
  levels: oneOf('always', 'as-needed'),
  minActions: wholeNumber(0),
  kind: oneOf('extractive', 'model'),
};

/** Checks the options. */
export const subgoalsCheck = object<SubgoalOptions>(subgoalChecks);

/** Maximum share of records in the request if levels are made as needed. */
const maxShare = 1 / 6;

/**
 * Creates a strategy that replaces messages by records of sub-goals. It belongs before `drop-oldest` in the list. Throws `bad-config` for options
 * out of range.
 *
 * @example
 * const strategies = defaultStrategies({ subgoals: { ratio: 15, levels: 'always' } });
 */
export function foldSubgoals(options: SubgoalOptions = {}): Strategy {
  checkSettings(subgoalsCheck, options, 'foldSubgoals');
  const settings = compressionLevelOf(options.preset ?? 'production', options, "The sub-goals'");
  const asksForTexts = options.kind === 'model';
  return {
    name: 'fold-subgoals',
    reach: 'history',
    ...(asksForTexts && { asksForTexts }),
    propose: (view) => propose(asksForTexts ? view : { ...view, written: undefined }, settings),
  };
}

function propose(view: FoldView, settings: CompressionLevel): readonly Edit[] {
  if (pairCalls(view.conversation).pairs.length < settings.minActions) return [];
  const { excess } = view;
  const records = createRecords(view, settings);
  for (const found of finishedSubgoals(view)) {
    if (records.saved() >= excess.amount) break;
    records.add(found);
  }
  while (settings.levels === 'always' && records.levelUp((these) => fullLevel([these], overviewLevel, 1)));
  // Levels are only forced if the fold is.
  const isLacking = () => view.isForced && records.saved() < excess.amount;
  const isTooMuch = () => isLacking() || records.tokens() > records.before * maxShare;
  while (isTooMuch() && records.levelUp((these) => fullLevel([these], Infinity, 0) ?? largestLevel([these])));
  return records.saved() > 0 ? records.edits() : [];
}
