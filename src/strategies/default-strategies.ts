/** The default strategies, in order: least harm first. */
import { clipNewest } from './clip-newest.ts';
import type { Preset } from '../outline/levels.ts';
import { compressItems } from './compress-items.ts';
import { dropFailedCalls, dropOldest, dropRecalls } from './drop-messages.ts';
import { offloadResults, stubArguments } from './offload.ts';
import type { Strategy } from './strategy.ts';
import { createFoldSubgoals, type SubgoalOptions } from './fold-subgoals.ts';
import { createSummarizeHistory, type SummaryOptions } from './summarize-history.ts';

/** drop-failed-calls, offload-results, stub-arguments, drop-recalls, drop-oldest, compress-items, clip-newest. */
export const defaultStrategies: readonly Strategy[] = [
  dropFailedCalls,
  offloadResults,
  stubArguments,
  dropRecalls,
  dropOldest,
  compressItems,
  clipNewest,
];

/** How summaries of old history are made: during the fold from the messages' own words, or ahead of it by a model. */
export type SummarySettings = SummaryOptions &
  (
    | { readonly kind: 'extractive' }
    | {
        readonly kind: 'model';
        /** The model, of the same provider, that writes summaries. Default: the model of the conversation. */
        readonly model?: string | undefined;
        /** Deadline for one summary, in milliseconds. Default 60,000. */
        readonly deadlineMs?: number | undefined;
      }
  );

/** Settings of strategies that replace messages by text. */
export type TextFolds = {
  readonly summaries?: SummarySettings | false | undefined;
  readonly subgoals?: SubgoalOptions | false | undefined;
  /** The preset of sub-goals; `subgoals` overrides it. */
  readonly preset?: Preset | undefined;
};

/** Returns the strategies. With summaries, messages are dropped for a mere stub only if the request would not fit otherwise. */
export function strategiesFor({
  summaries,
  preset,
  subgoals = preset && {},
}: TextFolds): readonly Strategy[] {
  if (!summaries && !subgoals) return defaultStrategies;
  const dropping = [
    ...(subgoals ? [createFoldSubgoals({ preset, ...subgoals })] : []),
    ...(summaries ? [createSummarizeHistory(summaries)] : []),
    summaries ? { ...dropOldest, reach: 'everything' as const } : dropOldest,
  ];
  return defaultStrategies.flatMap((strategy) => (strategy === dropOldest ? dropping : [strategy]));
}
