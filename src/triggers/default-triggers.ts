/**
 * Creates the default list of triggers, in their order of priority. This is the one place where the settings of a configuration file become a
 * list; a program may pass any other list.
 */
import { type Checks, offOr } from '../checks.ts';
import {
  type CacheRentOptions,
  type ColdCacheOptions,
  cacheRent,
  cacheRentCheck,
  coldCache,
  coldCacheCheck,
} from './cache-costs.ts';
import {
  type MessageCountOptions,
  type MustFitOptions,
  type WindowFractionOptions,
  type TokenBudgetOptions,
  messageCount,
  messageCountCheck,
  mustFit,
  mustFitCheck,
  windowFraction,
  windowFractionCheck,
  tokenBudget,
  tokenBudgetCheck,
} from './limits.ts';
import type { Trigger } from './trigger.ts';

/** `false` turns a trigger off. The message count is off unless it is given options. */
export type TriggerSettings = {
  /** Its shares default to those of `windowFraction`. */
  readonly mustFit?: MustFitOptions | false | undefined;
  readonly windowFraction?: WindowFractionOptions | false | undefined;
  readonly tokenBudget?: TokenBudgetOptions | false | undefined;
  readonly messageCount?: MessageCountOptions | false | undefined;
  readonly coldCache?: ColdCacheOptions | false | undefined;
  readonly cacheRent?: CacheRentOptions | false | undefined;
};

/** The checks of the settings, by trigger. Its keys are the names of all built-in triggers. */
export const triggerChecks: Checks<TriggerSettings> = {
  mustFit: offOr(mustFitCheck),
  windowFraction: offOr(windowFractionCheck),
  tokenBudget: offOr(tokenBudgetCheck),
  messageCount: offOr(messageCountCheck),
  coldCache: offOr(coldCacheCheck),
  cacheRent: offOr(cacheRentCheck),
};

/**
 * Returns the default triggers: mustFit, windowFraction, tokenBudget, coldCache and cacheRent, with messageCount before coldCache if it has
 * settings. Throws `bad-config` for options out of range.
 *
 * @example
 * const leporello = createLeporello({ triggers: [myTrigger, ...defaultTriggers({ tokenBudget: false })] });
 */
export function defaultTriggers(settings: TriggerSettings = {}): readonly Trigger[] {
  const fraction = settings.windowFraction ?? {};
  const { targetShare, triggerShare: markShare } = fraction === false ? {} : fraction;
  const chosen = [
    create(windowFraction, fraction),
    create(tokenBudget, settings.tokenBudget ?? {}),
    create(messageCount, settings.messageCount ?? false),
    create(coldCache, settings.coldCache ?? {}),
    create(cacheRent, settings.cacheRent ?? {}),
  ];
  const fit = settings.mustFit ?? {};
  const first = create(mustFit, fit && { markShare, targetShare, ...withoutUndefined(fit) });
  return [first, ...chosen].filter((trigger) => trigger !== undefined);
}

function create<Options>(factory: (options: Options) => Trigger, options: Options | false) {
  return options === false ? undefined : factory(options);
}

function withoutUndefined(options: MustFitOptions): MustFitOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
