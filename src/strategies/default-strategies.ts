/**
 * Creates the default list of strategies, least harm first. This is the one place where the settings of a configuration file become a list; a
 * program may pass any other list.
 */
import { type Check, checkSettings, object, offOr, oneOf, shown, wholeNumber } from '../checks.ts';
import {
  type FoldPreset,
  type StrategyChoice,
  type ItemSettings,
  type StrategyDefaults,
  type SummarySettings,
  type TextWriter,
  choiceCheck,
  itemChecks,
  chosenStrategy,
  nameOf,
  optionsOf,
  presets,
  strategyNames,
  subgoalSettingsCheck,
  summaryChecks,
} from './by-name.ts';
import type { Strategy } from './strategy.ts';
import { LeporelloError } from '../errors.ts';

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
  subgoals: offOr(subgoalSettingsCheck),
  items: offOr(object<ItemSettings>(itemChecks, { required: ['kind'] })),
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
  return strategiesIn(settings);
}

/** Settings of strategies in a program, whose list may also hold strategies of its own. */
export type ProgramStrategies = StrategyDefaults & {
  /** The strategies, least harm first: strategies, or names with options. Default: those of `defaultStrategies`. */
  readonly strategies?: readonly (Strategy | StrategyChoice)[] | undefined;
};

/** Does the same for settings that were checked. */
export function strategiesIn(settings: ProgramStrategies): readonly Strategy[] {
  const all = withPreset(settings);
  const { summaries, subgoals, items } = all;
  const usual = strategyNames.filter(
    (name) => (name !== 'fold-subgoals' || subgoals) && (name !== 'summarize-history' || summaries !== false),
  );
  // Items of old lists are shortened before the results that hold them become stubs.
  const withItems = usual.flatMap((name): readonly StrategyChoice[] =>
    items && name === 'offload-results' ? [{ name: 'compress-items', reach: 'history' }, name] : [name],
  );
  const { strategies = withItems } = all;
  return strategies.map((one) =>
    typeof one === 'object' && 'propose' in one ? one : chosenStrategy(one, all, strategies),
  );
}

/** Adds what the preset sets and the settings leave out. */
function withPreset<Settings extends StrategyDefaults>(settings: Settings): Settings {
  const { preset } = settings;
  const { subgoals, summaries = false } = preset ? presets[preset] : {};
  return {
    ...settings,
    subgoals: settings.subgoals ?? subgoals,
    summaries: settings.summaries ?? summaries,
  };
}

/** Returns the model that writes summaries, items and records ahead of folds, with its deadline; undefined if a model writes none of them. */
export function textWriterOf(settings: StrategySettings): TextWriter | undefined {
  const { subgoals, items } = withPreset(settings);
  const all = [summariesIn(settings), items, subgoals].filter((one) => one && one.kind === 'model');
  const writers = all as readonly TextWriter[];
  if (writers.length === 0) return undefined;
  const models = new Set(writers.flatMap(({ model }) => model ?? []));
  if (models.size > 1)
    throw new LeporelloError(
      'bad-config',
      `summaries, items and subgoals name different models (${[...models].join(', ')}), but one model writes all of them: name one.`,
    );
  const deadlines = writers.flatMap(({ deadlineMs }) => deadlineMs ?? []);
  return { model: [...models][0], deadlineMs: deadlines.length > 0 ? Math.max(...deadlines) : undefined };
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
