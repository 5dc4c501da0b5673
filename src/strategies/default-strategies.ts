/** The strategies that are used unless others are given, in their order: least harm first. */
import { clipNewest } from './clip-newest.ts';
import type { Preset } from '../outline/levels.ts';
import { compressItems } from './compress-items.ts';
import { dropFailedCalls } from './drop-failed-calls.ts';
import { dropOldest } from './drop-oldest.ts';
import { dropRecalls } from './drop-recalls.ts';
import { offloadResults } from './offload-results.ts';
import { stubArguments } from './stub-arguments.ts';
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

/** How summaries of old history are made: at the fold, of the messages' own words, or ahead of it by a model. */
export type SummarySettings = SummaryOptions &
  (
    | { readonly kind: 'extractive' }
    | {
        readonly kind: 'model';
        /** Which model of the same provider is asked. Default: the one that the conversation is with. */
        readonly model?: string | undefined;
        /** Milliseconds that one summary may take. Default 60,000. */
        readonly deadlineMs?: number | undefined;
      }
  );

export type TextFolds = {
  readonly summaries?: SummarySettings | false | undefined;
  readonly subgoals?: SubgoalOptions | false | undefined;
  /** Sub-goals as the preset has them, where `subgoals` does not say otherwise. */
  readonly preset?: Preset | undefined;
};

/** The default ones; with summaries or sub-goals whole messages leave a mere stub only where the request would not fit otherwise. */
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
