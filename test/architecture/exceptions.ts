/** Where the rules of wording do not hold, and why. Short by intent: a longer list means the rule is wrong. */
import type { Exception } from './source-file.ts';

/** Words with a provider's name in shared code. */
export const namedOnPurpose: readonly Exception[] = [];

/** Paths and hosts that look like a machine's own. */
export const machineLike: readonly Exception[] = [];
