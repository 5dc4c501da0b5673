/** Creates strategies from their names and options, as a configuration file lists them. */
import { isRecord } from '../conversation/json-scan.ts';
import {
  type Check,
  nearest,
  object,
  oneOf,
  positiveNumber,
  shown,
  someText,
  wholeNumber,
} from '../checks.ts';
import type { Preset } from '../outline/levels.ts';
import { clipNewest } from './clip-newest.ts';
import { type CompressItemsOptions, compressItems, compressItemsCheck } from './compress-items.ts';
import {
  type DropOldestOptions,
  dropFailedCalls,
  dropOldest,
  dropOldestCheck,
  dropRecalls,
} from './drop-messages.ts';
import { foldSubgoals, subgoalChecks, subgoalsCheck, type SubgoalOptions } from './fold-subgoals.ts';
import type { MinBytesOptions } from './lib/editable-texts.ts';
import {
  type MediaOptions,
  mediaCheck,
  offloadMedia,
  offloadNewestMedia,
  offloadResults,
  stubArguments,
} from './offload.ts';
import type { Strategy } from './strategy.ts';
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

/** The model that writes texts for the gateway, and its deadline. */
export type TextWriter = Pick<SummarySettings, 'model' | 'deadlineMs'>;

/** How items of old lists are shortened: to their own sentences, or to words that a model wrote ahead. */
export type ItemSettings = { readonly kind: 'extractive' | 'model' } & TextWriter;

/** Options of each strategy that a list of names can choose, besides those in the settings. */
type OptionsByName = {
  readonly 'drop-failed-calls': object;
  readonly 'offload-media': MediaOptions;
  readonly 'offload-results': MinBytesOptions;
  readonly 'stub-arguments': MinBytesOptions;
  readonly 'drop-recalls': object;
  readonly 'fold-subgoals': SubgoalOptions;
  readonly 'summarize-history': Partial<SummarySettings>;
  readonly 'drop-oldest': DropOldestOptions;
  readonly 'compress-items': CompressItemsOptions;
  readonly 'offload-newest-media': object;
  readonly 'clip-newest': object;
};

type StrategyName = keyof OptionsByName;

/** A strategy in a list of settings: its name, or its name with its options. */
export type StrategyChoice =
  | StrategyName
  | { readonly [Name in StrategyName]: { readonly name: Name } & OptionsByName[Name] }[StrategyName];

/** The check of each option of summaries. */
export const summaryChecks = {
  kind: oneOf('extractive', 'model'),
  maxTokens: wholeNumber(100),
  model: someText,
  deadlineMs: positiveNumber,
};

const writerChecks = { model: someText, deadlineMs: positiveNumber };

/** The check of each option of items. */
export const itemChecks = { kind: summaryChecks.kind, ...writerChecks };

/** The check of the options of records, with the model that writes them. */
export const subgoalSettingsCheck = object<SubgoalSettings>({ ...subgoalChecks, ...writerChecks });

const limitCheck = { minResultBytes: wholeNumber(0) };
const noOptions: Check = (value, path) =>
  Object.keys(value as object).map((key) => `${path}.${key} is not an option: this strategy has none.`);

/** The check of the options of each strategy, without the name. */
const optionChecks: Readonly<Record<StrategyName, Check>> = {
  'drop-failed-calls': noOptions,
  'offload-media': mediaCheck,
  'offload-results': object<MinBytesOptions>(limitCheck),
  'stub-arguments': object<MinBytesOptions>(limitCheck),
  'drop-recalls': noOptions,
  'fold-subgoals': subgoalsCheck,
  'summarize-history': object<Partial<SummarySettings>>(summaryChecks),
  'drop-oldest': dropOldestCheck,
  'compress-items': compressItemsCheck,
  'offload-newest-media': noOptions,
  'clip-newest': noOptions,
};

/** The names of all strategies, in the order of the default list. */
export const strategyNames = Object.keys(optionChecks) as readonly StrategyName[];

/** Checks one entry of a list of strategies. */
export const choiceCheck: Check = (value, path) => {
  const name = isRecord(value) ? value['name'] : value;
  if (typeof name !== 'string' || !Object.hasOwn(optionChecks, name))
    return [unknownStrategy(value, path, name)];
  if (!isRecord(value)) return [];
  const { name: _, ...options } = value;
  return optionChecks[name as StrategyName](options, path);
};

function unknownStrategy(value: unknown, path: string, name: unknown): string {
  const known = `Strategies by name: ${strategyNames.join(', ')}.`;
  if (typeof name !== 'string')
    return `${path} is ${shown(value)}, but must be the name of a strategy, or an object with name and options. ${known}`;
  const like = nearest(name, strategyNames);
  const hint = like === undefined ? '' : ` Did you mean ${like}?`;
  return `${path} is ${shown(value)}, which is no strategy.${hint} ${known}`;
}

/** Options of records, with the model that writes them for the gateway. */
export type SubgoalSettings = SubgoalOptions & TextWriter;

/** Options for entries that do not set them. */
export type StrategyDefaults = {
  /** Texts of fewer bytes (UTF-8) in results and arguments are never replaced. Default 1,000. */
  readonly minResultBytes?: number | undefined;
  /** The newest images, documents and sounds that stay, in number. Default 4. */
  readonly keepNewestMedia?: number | undefined;
  /** Replaces old messages by a summary instead of a log. Default: a log. */
  readonly summaries?: SummarySettings | false | undefined;
  /** Replaces finished sub-goals by short records, and many of these by the record of a phase. Overrides `preset`. Default: the preset. */
  readonly subgoals?: SubgoalSettings | false | undefined;
  /** Shortens old lists item by item before results become stubs, if that is enough for the fold. Default: whole results become stubs. */
  readonly items?: ItemSettings | false | undefined;
  /** Settings for a kind of work, which other settings override: see `presets`. */
  readonly preset?: FoldPreset | undefined;
};

export type FoldPreset = Preset | 'summaries';

/**
 * The presets, from the one that keeps least to the one that keeps most, each with a sentence that says when to use it. The triggers of each are in
 * triggers/default-triggers.ts, and the ratios of sub-goals in outline/levels.ts.
 */
export const presets: Readonly<
  Record<
    FoldPreset,
    { readonly use: string; readonly subgoals?: SubgoalOptions; readonly summaries?: SummarySettings }
  >
> = {
  cost: {
    use: 'when the price counts more than details; folds early and far, sub-goals at 12:1',
    subgoals: {},
  },
  'long-horizon': {
    use: 'for runs of hundreds of actions; an outline of all stays, sub-goals at 15:1 with phases',
    subgoals: {},
  },
  production: {
    use: 'for agents at work; the default triggers, and finished sub-goals become records at 10:1',
    subgoals: {},
  },
  summaries: {
    use: 'for talk, support and research, where the thread counts; old messages become one summary',
    summaries: { kind: 'extractive', maxTokens: 4_000 },
  },
  debugging: {
    use: 'when exact values are needed again and again; folds late and little, sub-goals at 3:1',
    subgoals: {},
  },
};

/** Creates the strategy of one entry. `list`: the whole list, because what is dropped depends on whether there are summaries. */
export function chosenStrategy(
  choice: StrategyChoice,
  defaults: StrategyDefaults = {},
  list: readonly unknown[] = [choice],
): Strategy {
  const { minResultBytes, keepNewestMedia: keepNewest, preset, subgoals, summaries, items } = defaults;
  const limit = { minResultBytes };
  const one = typeof choice === 'string' ? ({ name: choice } as Exclude<StrategyChoice, string>) : choice;
  switch (one.name) {
    case 'drop-failed-calls':
      return dropFailedCalls();
    case 'offload-media':
      return offloadMedia({ keepNewest, ...optionsOf(one) });
    case 'offload-newest-media':
      return offloadNewestMedia();
    case 'offload-results':
      return offloadResults({ ...limit, ...optionsOf(one) });
    case 'stub-arguments':
      return stubArguments({ ...limit, ...optionsOf(one) });
    case 'drop-recalls':
      return dropRecalls();
    case 'fold-subgoals': {
      const { model: _, deadlineMs: __, ...records } = subgoals || {};
      return foldSubgoals({
        preset: preset === 'summaries' ? undefined : preset,
        ...records,
        ...optionsOf(one),
      });
    }
    case 'summarize-history': {
      const { kind, maxTokens } = { ...summaries, ...optionsOf(one) };
      return summarizeHistory({ maxTokens, isWrittenAhead: kind === 'model' });
    }
    case 'drop-oldest': {
      const summarizes = list.some((other) => nameOf(other) === 'summarize-history');
      return dropOldest({ reach: summarizes ? 'everything' : 'history', ...optionsOf(one) });
    }
    case 'compress-items':
      return compressItems({ ...limit, ...(items && { kind: items.kind }), ...optionsOf(one) });
    case 'clip-newest':
      return clipNewest();
  }
}

/** Returns the options of an entry, without the name. */
export function optionsOf<T extends { readonly name: string }>(choice: T): Omit<T, 'name'> {
  const { name: _, ...options } = choice;
  return options;
}

/** Returns the name of an entry. */
export function nameOf(choice: unknown): unknown {
  return isRecord(choice) ? choice['name'] : choice;
}
