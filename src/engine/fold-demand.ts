/** Whether this request is to be folded anew, and how far. */
import type { Overflow } from '../codecs/provider-errors.ts';
import type { FoundFolds } from '../store/fold-store.ts';
import { newestGoal } from '../triggers/window-fraction.ts';
import { type Demand, firstDemand, type Trigger, type TriggerState } from '../triggers/trigger.ts';
import type { Refusal } from './request.ts';

/**
 * Undefined where it goes out with what was found. What was sent before is sent so again, whatever was learned or went by since; but not
 * to a model that takes less (`settled`). A refusal overrules that.
 */
export function demandFor(
  triggers: readonly Trigger[],
  state: TriggerState,
  { refusal, sentAs }: { readonly refusal: Refusal | undefined; readonly sentAs: FoundFolds['sentAs'] },
): Demand | undefined {
  if (refusal?.reason === 'too long') return overflowDemand(tokensThatFit(refusal.overflow, state));
  return isSettled(sentAs, state) ? undefined : firstDemand(triggers, state);
}

/** Whether this very request was sent before, to a model that took no more than this one. */
export function isSettled(sentAs: FoundFolds['sentAs'], state: TriggerState): boolean {
  return sentAs !== undefined && (sentAs.limit ?? 0) <= (limitOf(state) ?? Number.POSITIVE_INFINITY);
}

/** Tokens that the request may have; undefined where nobody knows the window. */
export function limitOf({ window, reserved }: TriggerState): number | undefined {
  return window === undefined ? undefined : window - reserved;
}

/** Share of a refused request that is tried next when the provider names no limit. */
const nextTry = 0.75;

/**
 * Tokens that the provider will take after it refused the request: the limit that it names, converted into our counts by the prompt
 * length that it names; without a limit a quarter less than was refused.
 */
function tokensThatFit(overflow: Overflow, { tokens, reserved }: TriggerState): number {
  const next = Math.floor(tokens * nextTry);
  if (overflow.unit === 'bytes' || overflow.limit === undefined) return next;
  const fits = Math.max(0, overflow.limit - reserved);
  if (overflow.prompt === undefined) return fits < tokens ? fits : next;
  // The request that was refused may be another draft of this one, so an unlikely ratio is not believed.
  const ratio = Math.min(Math.max(tokens / overflow.prompt, 0.25), 4);
  const converted = Math.floor(fits * ratio);
  return converted < tokens ? converted : next;
}

/** Some way below what the provider takes, so that the next turn does not overflow again. */
function overflowDemand(atMost: number): Demand {
  return {
    trigger: 'overflow',
    goal: { unit: 'tokens', target: Math.floor(atMost * 0.8) },
    newest: newestGoal(atMost),
    atMost,
    force: true,
  };
}
