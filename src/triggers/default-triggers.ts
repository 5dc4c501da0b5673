/** Creates the triggers that the configuration asks for, in their order of priority. `firstDemand` takes any other list as well. */
import { createCacheRent, type CacheRentOptions } from './cache-rent.ts';
import { createColdCache, type ColdCacheOptions } from './cold-cache.ts';
import { createMessageCount, type MessageCountOptions } from './message-count.ts';
import { createMustFit, type MustFitOptions } from './must-fit.ts';
import { createTokenBudget, type TokenBudgetOptions } from './token-budget.ts';
import type { Trigger } from './trigger.ts';
import { createWindowFraction, type WindowFractionOptions } from './window-fraction.ts';

/** `false` turns a trigger off. The message count is off unless it is given options. */
export type TriggerOptions = {
  /** Its target defaults to the one of `windowFraction`. */
  readonly mustFit?: MustFitOptions | false | undefined;
  readonly windowFraction?: WindowFractionOptions | false | undefined;
  readonly tokenBudget?: TokenBudgetOptions | false | undefined;
  readonly messageCount?: MessageCountOptions | false | undefined;
  readonly coldCache?: ColdCacheOptions | false | undefined;
  readonly cacheRent?: CacheRentOptions | false | undefined;
};

/** Order: must-fit, window-fraction, token-budget, message-count, cold-cache, cache-rent. Throws `bad-config` for options out of range. */
export function defaultTriggers(options: TriggerOptions = {}): readonly Trigger[] {
  const {
    mustFit = {},
    windowFraction = {},
    tokenBudget = {},
    messageCount = false,
    coldCache = {},
    cacheRent = {},
  } = options;
  const triggers: Trigger[] = [];
  const { target: lowMark, trigger: mark } = windowFraction === false ? {} : windowFraction;
  const fraction = windowFraction === false ? undefined : createWindowFraction(windowFraction);
  if (mustFit !== false) triggers.push(createMustFit({ mark, target: mustFit.target ?? lowMark }));
  if (fraction !== undefined) triggers.push(fraction);
  if (tokenBudget !== false) triggers.push(createTokenBudget(tokenBudget));
  if (messageCount !== false) triggers.push(createMessageCount(messageCount));
  if (coldCache !== false) triggers.push(createColdCache(coldCache));
  if (cacheRent !== false) triggers.push(createCacheRent(cacheRent));
  return triggers;
}
