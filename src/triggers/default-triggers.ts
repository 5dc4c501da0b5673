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

/** The triggers of each preset; it changes no others. Lower targets keep less: `cost` keeps least, `debugging` most. */
export const presetTriggers = {
  cost: {
    windowFraction: { triggerShare: 0.85, targetShare: 0.3 },
    tokenBudget: { triggerTokens: 80_000, targetTokens: 20_000 },
    cacheRent: { keepForRequests: 3, keepStepsForRequests: 10 },
  },
  'long-horizon': {
    windowFraction: { triggerShare: 0.85, targetShare: 0.4 },
    tokenBudget: { triggerTokens: 100_000, targetTokens: 30_000 },
    cacheRent: { keepForRequests: 4, keepStepsForRequests: 12 },
  },
  production: {},
  summaries: {
    windowFraction: { triggerShare: 0.85, targetShare: 0.65 },
    tokenBudget: { triggerTokens: 120_000, targetTokens: 50_000 },
    cacheRent: { keepForRequests: 6, keepStepsForRequests: 20 },
  },
  debugging: {
    windowFraction: { triggerShare: 0.85, targetShare: 0.7 },
    tokenBudget: { triggerTokens: 150_000, targetTokens: 90_000 },
    cacheRent: { keepForRequests: 12, keepStepsForRequests: 40 },
  },
} as const satisfies Readonly<Record<string, TriggerSettings>>;

/**
 * Returns the default triggers: mustFit, windowFraction, tokenBudget, coldCache and cacheRent, with messageCount before coldCache if it has
 * settings. A preset sets those that `settings` leaves out. Throws `bad-config` for options out of range.
 *
 * @example
 * const leporello = createLeporello({ triggers: [myTrigger, ...defaultTriggers({ tokenBudget: false })] });
 */
export function defaultTriggers(
  own: TriggerSettings = {},
  preset?: keyof typeof presetTriggers,
): readonly Trigger[] {
  const settings: TriggerSettings = { ...(preset && presetTriggers[preset]), ...withoutUndefined(own) };
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

function withoutUndefined<Options extends object>(options: Options): Partial<Options> {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as Partial<Options>;
}
