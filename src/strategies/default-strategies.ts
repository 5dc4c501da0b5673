/** The strategies that are used unless others are given, in their order: least harm first. */
import { clipNewest } from './clip-newest.ts';
import { compressItems } from './compress-items.ts';
import { dropFailedCalls } from './drop-failed-calls.ts';
import { dropOldest } from './drop-oldest.ts';
import { dropRecalls } from './drop-recalls.ts';
import { offloadResults } from './offload-results.ts';
import { stubArguments } from './stub-arguments.ts';
import type { Strategy } from './strategy.ts';

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
