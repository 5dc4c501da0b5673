/**
 * Creates the default list of strategies, least harm first. This is the one place where the settings of a configuration file become a list; a
 * program may pass any other list.
 */
import { type Check, checkSettings, object, offOr, oneOf, shown, wholeNumber } from '../checks.ts';
import {
  type FoldPreset,
  type StrategyChoice,
  type StrategyDefaults,
  type SummarySettings,
  choiceCheck,
  chosenStrategy,
  nameOf,
  optionsOf,
  presets,
  strategyNames,
  summaryChecks,
} from './by-name.ts';
import { subgoalsCheck } from './fold-subgoals.ts';
import type { Strategy } from './strategy.ts';

/** Settings of the default strategies. */
export type StrategySettings = StrategyDefaults & {
  /** The strategies by name, in order, least harm first. Default: those of `defaultStrategies`. */
  readonly strategies?: readonly StrategyChoice[] | undefined;
};

const choicesCheck: Check = (value, path) => {
  if (!Array.isArray(value) || value.length === 0)
    return [
      `${path} is ${shown(value)}, but must be a list of at least one strategy: ${strategyNames.join(', ')}.`,
    ];
  return value.flatMap((choice, at) => choiceCheck(choice, `${path}[${at}]`));
};

/** The checks of each setting. */
export const strategyChecks = {
  strategies: choicesCheck,
  minResultBytes: wholeNumber(0),
  keepNewestMedia: wholeNumber(0),
  summaries: offOr(object<SummarySettings>(summaryChecks, { required: ['kind'] })),
  preset: oneOf(...(Object.keys(presets) as FoldPreset[])),
  subgoals: offOr(subgoalsCheck),
};

const strategiesCheck = object<StrategySettings>(strategyChecks);

/**
 * Returns the default strategies: dropFailedCalls, offloadMedia, offloadResults, stubArguments, dropRecalls, foldSubgoals and summarizeHistory if
 * they are set, dropOldest, compressItems, offloadNewestMedia, clipNewest. With summaries, messages are dropped for a mere stub only if the request would not fit otherwise. With
 * `settings.strategies`, it returns those of that list. Throws `bad-config` for settings that are not allowed.
 *
 * @example
 * const leporello = createLeporello({ strategies: [myStrategy, ...defaultStrategies({ preset: 'production' })] });
 */
export function defaultStrategies(settings: StrategySettings = {}): readonly Strategy[] {
  checkSettings(strategiesCheck, settings, 'defaultStrategies');
  const all = withPreset(settings);
  const { summaries, subgoals } = all;
  const {
    strategies = strategyNames.filter(
      (name) =>
        (name !== 'fold-subgoals' || subgoals) && (name !== 'summarize-history' || summaries !== false),
    ),
  } = all;
  return strategies.map((choice) => chosenStrategy(choice, all, strategies));
}

/** Adds what the preset sets and the settings leave out. */
function withPreset(settings: StrategySettings): StrategySettings {
  const { preset } = settings;
  const { subgoals, summaries = false } = preset ? presets[preset] : {};
  return {
    ...settings,
    subgoals: settings.subgoals ?? subgoals,
    summaries: settings.summaries ?? summaries,
  };
}

/** Returns how summaries are made: by the settings, and by the options of the entry in the list of strategies. `false` without summaries. */
export function summariesIn(settings: StrategySettings): SummarySettings | false {
  const { strategies, summaries = false } = withPreset(settings);
  if (strategies === undefined) return summaries;
  const choice = strategies.find((one) => nameOf(one) === 'summarize-history');
  if (choice === undefined) return false;
  const options = typeof choice === 'string' ? {} : (optionsOf(choice) as Partial<SummarySettings>);
  return { kind: 'extractive', ...summaries, ...options };
}
