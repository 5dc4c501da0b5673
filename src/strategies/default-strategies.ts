/** The strategies that are used unless others are given, in their order: least harm first. */
import { clipNewest } from './clip-newest.ts';
import { dropFailedCalls } from './drop-failed-calls.ts';
import { dropOldest } from './drop-oldest.ts';
import { offloadResults } from './offload-results.ts';
import type { Strategy } from './strategy.ts';

/** drop-failed-calls, offload-results, drop-oldest, clip-newest. */
export const defaultStrategies: readonly Strategy[] = [
  dropFailedCalls,
  offloadResults,
  dropOldest,
  clipNewest,
];
