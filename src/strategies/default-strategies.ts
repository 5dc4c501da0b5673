/**
 * Creates the default list of strategies, least harm first. This is the one place where the settings of a configuration file become a list; a
 * program may pass any other list.
 */
import { checkSettings, object, offOr, oneOf, positiveNumber, someText, wholeNumber } from '../checks.ts';
import { clipNewest } from './clip-newest.ts';
import { type Preset, presetNames } from '../outline/levels.ts';
import { compressItems } from './compress-items.ts';
import { dropFailedCalls, dropOldest, dropRecalls } from './drop-messages.ts';
import { offloadResults, stubArguments } from './offload.ts';
import type { Strategy } from './strategy.ts';
import { foldSubgoals, subgoalsCheck, type SubgoalOptions } from './fold-subgoals.ts';
import { summarizeHistory } from './summarize-history.ts';

/** How summaries of old history are made: during the fold from the messages' own words, or ahead of it by a model. */
export type SummarySettings = {
  readonly kind: 'extractive' | 'model';
  /** Maximum tokens that a summary aims at. Default 1,500. */
  readonly maxTokens?: number | undefined;
  /** The model, of the same provider, that writes summaries for the gateway. Default: the model of the conversation. */
  readonly model?: string | undefined;
  /** Deadline for one summary of the gateway, in milliseconds. Default 60,000. */
  readonly deadlineMs?: number | undefined;
};

/** Settings of the default strategies. */
export type StrategySettings = {
  /** Texts of fewer bytes (UTF-8) in results and arguments are never replaced. Default 1,000. */
  readonly minResultBytes?: number | undefined;
  /** Replaces old messages by a summary instead of a stub that names their calls. Default: a stub. */
  readonly summaries?: SummarySettings | false | undefined;
  /** Replaces finished sub-goals by short records, and many of these by the record of a phase. Overrides `preset`. Default: the preset. */
  readonly subgoals?: SubgoalOptions | false | undefined;
  /** How strongly finished sub-goals are folded: `production`, `debugging`, `long-horizon` or `cost`. Default: they are not folded. */
  readonly preset?: Preset | undefined;
};

/** The checks of each setting. */
export const strategyChecks = {
  minResultBytes: wholeNumber(0),
  summaries: offOr(
    object<SummarySettings>(
      {
        kind: oneOf('extractive', 'model'),
        maxTokens: wholeNumber(100),
        model: someText,
        deadlineMs: positiveNumber,
      },
      { required: ['kind'] },
    ),
  ),
  preset: oneOf(...presetNames),
  subgoals: offOr(subgoalsCheck),
};

const strategiesCheck = object<StrategySettings>(strategyChecks);

/**
 * Returns the default strategies: dropFailedCalls, offloadResults, stubArguments, dropRecalls, foldSubgoals and summarizeHistory if they are set,
 * dropOldest, compressItems, clipNewest. With summaries, messages are dropped for a mere stub only if the request would not fit otherwise.
 * Throws `bad-config` for settings that are not allowed.
 *
 * @example
 * const leporello = createLeporello({ strategies: [myStrategy, ...defaultStrategies({ preset: 'production' })] });
 */
export function defaultStrategies(settings: StrategySettings = {}): readonly Strategy[] {
  checkSettings(strategiesCheck, settings, 'defaultStrategies');
  const { minResultBytes, summaries = false, preset, subgoals = preset && {} } = settings;
  const limit = { minResultBytes };
  return [
    dropFailedCalls(),
    offloadResults(limit),
    stubArguments(limit),
    dropRecalls(),
    ...(subgoals ? [foldSubgoals({ preset, ...subgoals })] : []),
    ...(summaries
      ? [summarizeHistory({ maxTokens: summaries.maxTokens, isWrittenAhead: summaries.kind === 'model' })]
      : []),
    dropOldest({ reach: summaries ? 'everything' : 'history' }),
    compressItems(limit),
    clipNewest(),
  ];
}
