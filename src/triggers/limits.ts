/**
 * Implements four triggers that compare a request with a limit: its tokens with a share of the context window, the whole window, or a budget, and
 * its number of messages with a number. Also decides whether a fold saves enough of what a trigger asked for.
 */
import { checkSettings, fraction, object, wholeNumber } from '../checks.ts';
import type { Demand, Economy, Trigger } from './trigger.ts';
import { LeporelloError } from '../errors.ts';

// Share of the window. The trigger fires when the request takes more than the fraction `triggerShare` of the context window, and asks for
// `targetShare`: the gap is the hysteresis. Needs a known window; `reserved` plays no part here.

export type WindowFractionOptions = {
  /** Fraction of the window above which the trigger fires. Default 0.85. */
  readonly triggerShare?: number | undefined;
  /** Fraction of the window to fold down to, below `triggerShare`. Default 0.5. */
  readonly targetShare?: number | undefined;
};

/** Checks the options, each by itself. */
export const windowFractionCheck = object<WindowFractionOptions>({
  triggerShare: fraction(),
  targetShare: fraction(),
});

/** Share of the gap between trigger and target that a fold must save, or the next one would follow a few turns later. */
const minShareOfGap = 0.25;

/** Fraction of the window at which the trigger fires by default. */
const defaultMark = 0.85;

/** Folds a request that takes more than a share of its window. Throws `bad-config` for options out of range. */
export function windowFraction(options: WindowFractionOptions = {}): Trigger {
  checkSettings(windowFractionCheck, options, 'windowFraction');
  const trigger = options.triggerShare ?? defaultMark;
  const target = options.targetShare ?? 0.5;
  checkBelow('windowFraction.targetShare', target, trigger, 'windowFraction.triggerShare');
  const name = 'window-fraction';
  return {
    name,
    demand(state) {
      const { tokens, window } = state;
      if (window === undefined || tokens <= window * trigger) return undefined;
      const [low, high] = [window * target, window * trigger];
      const left = lowMark(low, high, state.fixed);
      const goal = { unit: 'tokens', target: left } as const;
      const newest = newestGoal(Math.floor(high));
      const minimum = left > low && { minTokens: Math.floor((high - low) * minShareOfGap) };
      return { trigger: name, goal, atMost: undefined, force: false, newest, ...minimum };
    },
  };
}

/** Share of the foldable tokens below the high mark that a fold leaves in place: folding all of them causes recalls of most. */
const minShareLeft = 0.25;

/**
 * Returns the tokens to fold down to: `low`, or more when the `fixed` tokens leave too little to fold. A fold then asks for at most
 * three quarters of the tokens between `fixed` and `high`. All values are tokens.
 */
function lowMark(low: number, high: number, fixed = 0): number {
  if (fixed >= high) return Math.floor(low);
  return Math.floor(Math.max(low, fixed + (high - fixed) * Math.min(minShareLeft, low / high)));
}

/** From 0.85 of a window to 0.8 of it: enough for the next tool result, without shrinking more of the newest results than necessary. */
const shareOfMark = 0.94;

/**
 * Returns how far the newest results are made smaller when folding history did not bring a request below a mark. `above` is the mark
 * in tokens.
 */
export function newestGoal(above: number): NonNullable<Demand['newest']> {
  return { above, target: Math.floor(above * shareOfMark) };
}

// The whole window. The trigger fires when the request and the tokens reserved for its reply do not fit the context window: the provider
// would refuse it. Needs a known window. It asks for the same low mark as `window-fraction`, so that a forced fold is not followed by another
// one a turn later.

export type MustFitOptions = {
  /** Fraction of the window to fold down to. Default 0.5. */
  readonly targetShare?: number | undefined;
  /** Fraction of the window above which the next turn would ask for a fold again: newest results are brought below it. Default 0.85. */
  readonly markShare?: number | undefined;
};

/** Checks the options. */
export const mustFitCheck = object<MustFitOptions>({
  targetShare: fraction({ isWhole: false }),
  markShare: fraction(),
});

/** When the reply's reserve leaves little more than the target, the goal still frees 15 % of the remaining tokens. */
const maxShareOfRemaining = 0.85;

/**
 * Folds a request that would not fit its window together with the reply. Throws `bad-config` for options out of range.
 *
 * @example
 * const leporello = createLeporello({ triggers: [mustFit(), tokenBudget({ triggerTokens: 60_000, targetTokens: 25_000 })] });
 */
export function mustFit(options: MustFitOptions = {}): Trigger {
  checkSettings(mustFitCheck, options, 'mustFit');
  const target = options.targetShare ?? 0.5;
  const mark = options.markShare ?? defaultMark;
  const name = 'must-fit';
  return {
    name,
    demand(state) {
      const { tokens, window, reserved } = state;
      if (window === undefined) return undefined;
      const atMost = Math.max(0, window - reserved);
      if (tokens <= atMost) return undefined;
      const high = Math.min(atMost, window * mark);
      const goal = lowMark(Math.min(window * target, atMost * maxShareOfRemaining), high, state.fixed);
      const newest = newestGoal(Math.floor(high));
      return { trigger: name, goal: { unit: 'tokens', target: goal }, atMost, force: true, newest };
    },
  };
}

// Token budget. The trigger fires when the request has more tokens than a budget, whatever the context window. Tokens that no fold can remove (tools,
// system text, protected content) may take three fifths of the target; tokens beyond that are added to trigger and target
// alike. So a fold saves the same amount however large the fixed part is. The buffer covers counts that are too low: the
// trigger fires that many tokens early. The gap between trigger and target is the hysteresis.

export type TokenBudgetOptions = {
  /** Tokens that count plus buffer may not exceed. Default 110,000. */
  readonly triggerTokens?: number | undefined;
  /** Tokens to fold down to, below `triggerTokens` minus `bufferTokens`. Default 40,000. */
  readonly targetTokens?: number | undefined;
  /** Tokens by which the count may be too low. Default 1,000. */
  readonly bufferTokens?: number | undefined;
};

/** Checks the options, each by itself. */
export const tokenBudgetCheck = object<TokenBudgetOptions>({
  triggerTokens: wholeNumber(2),
  targetTokens: wholeNumber(1),
  bufferTokens: wholeNumber(0),
});

/** Share of the target that is kept for foldable tokens. */
const foldableShare = 0.4;

/**
 * Bytes of a body above which the budget also counts as exceeded, and those that a fold aims at. Images have few tokens for their bytes, and
 * providers refuse bodies of 20 to 50 MB.
 */
const [triggerBytes, targetBytes] = [16_000_000, 8_000_000];

/** Folds a request of more than a number of tokens, whatever its window is, and one whose body has more than 16 MB. Throws `bad-config` for options out of range. */
export function tokenBudget(options: TokenBudgetOptions = {}): Trigger {
  checkSettings(tokenBudgetCheck, options, 'tokenBudget');
  const trigger = options.triggerTokens ?? 110_000;
  const buffer = options.bufferTokens ?? 1_000;
  const target = options.targetTokens ?? 40_000;
  checkBelow('tokenBudget.bufferTokens', buffer, trigger - 1, 'tokenBudget.triggerTokens minus 1');
  checkBelow(
    'tokenBudget.targetTokens',
    target,
    trigger - buffer,
    'tokenBudget.triggerTokens minus tokenBudget.bufferTokens',
  );
  const name = 'token-budget';
  return {
    name,
    demand(state) {
      const { tokens, economy, bytes = 0 } = state;
      // The share of the tokens to fold: most bytes are in images, which are folded first.
      const large = bytes > triggerBytes ? Math.floor((tokens * targetBytes) / bytes) : undefined;
      if (large !== undefined && tokens + buffer <= trigger)
        return { trigger: name, goal: { unit: 'tokens', target: large }, atMost: undefined, force: false };
      // The fixed part is counted only when it can change the decision.
      if (tokens + buffer <= trigger || isTooShortToCache(tokens, economy)) return undefined;
      const beyond = Math.max(0, Math.ceil((state.fixed ?? 0) - target * (1 - foldableShare)));
      if (tokens + buffer <= trigger + beyond) return undefined;
      const left = Math.max(target + beyond, shortestCached(economy));
      return { trigger: name, goal: { unit: 'tokens', target: left }, atMost: undefined, force: false };
    },
  };
}

/** Throws `bad-config` unless `value` is below `limit`. `name` says which options the limit comes from. */
function checkBelow(key: string, value: number, limit: number, name: string): void {
  if (value < limit) return;
  throw new LeporelloError('bad-config', `${key} is ${value}, but must be below ${limit} (${name}).`);
}

/** True for a prompt that is too short for its provider to cache: making it shorter saves no cache cost. */
export function isTooShortToCache(tokens: number, economy: Economy | undefined): boolean {
  return tokens < shortestCached(economy);
}

/** Returns the tokens below which a prompt is no longer cached, and so gets dearer when it is folded; 0 when there is no such limit. */
function shortestCached(economy: Economy | undefined): number {
  return economy && economy.read < 1 ? (economy.minCachedTokens ?? 0) : 0;
}

// Number of messages. The trigger fires when a request has more messages than `targetMessages + bufferMessages`, and asks for
// `targetMessages`: the buffer is the hysteresis. It counts messages, not tokens, so it needs neither a context window nor a token counter.

export type MessageCountOptions = {
  /** Number of messages to fold down to. Default 20. */
  readonly targetMessages?: number | undefined;
  /** Number of messages allowed above the target before the trigger fires. Default 5. */
  readonly bufferMessages?: number | undefined;
};

/** Checks the options. */
export const messageCountCheck = object<MessageCountOptions>({
  targetMessages: wholeNumber(1),
  bufferMessages: wholeNumber(1),
});

/** Folds a request of more than a number of messages. Throws `bad-config` for options out of range. */
export function messageCount(options: MessageCountOptions = {}): Trigger {
  checkSettings(messageCountCheck, options, 'messageCount');
  const target = options.targetMessages ?? 20;
  const buffer = options.bufferMessages ?? 5;
  const name = 'message-count';
  return {
    name,
    demand({ messages }) {
      if (messages <= target + buffer) return undefined;
      return { trigger: name, goal: { unit: 'messages', target }, atMost: undefined, force: false };
    },
  };
}

// The gain of a fold, compared with the demand

/** The size of a request. */
type FoldedSize = { readonly tokens: number; readonly messages: number; readonly body: Uint8Array };

/**
 * True when a fold saves enough. A fold re-bills everything after it, so one that is not forced must save a quarter of the demand, or meet the
 * goal for the newest results. Otherwise there would be a small fold on every turn.
 */
export function paysOff(before: FoldedSize, after: FoldedSize, demand: Demand): boolean {
  const won = amount(before, demand) - amount(after, demand);
  if (after.tokens > before.tokens || after.body.length > before.body.length) return false;
  if (demand.force || (demand.newest && after.tokens <= demand.newest.target)) return true;
  const wanted = amount(before, demand) - demand.goal.target;
  return won >= Math.max(wanted * (demand.only ? 0.5 : 0.25), demand.minTokens ?? 0);
}

/** Returns the size of a draft in the unit of the goal. */
export function amount(state: FoldedSize, demand: Demand): number {
  return demand.goal.unit === 'tokens' ? state.tokens : state.messages;
}
