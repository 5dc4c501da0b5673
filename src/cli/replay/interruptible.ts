/**
 * A policy that can be stopped between two requests. A replay waits for nothing outside, so without a turn of the event loop in between
 * no signal would be heard until it is done.
 */
import { setImmediate } from 'node:timers/promises';
import type { Policy } from '../../replay/policies.ts';

/** What it sends rejects with an AbortError once `signal` is aborted. */
export function interruptible(policy: Policy, signal: AbortSignal): Policy {
  return {
    ...policy,
    open(codec) {
      const session = policy.open(codec);
      return {
        async send(request) {
          await setImmediate(undefined, { signal });
          return session.send(request);
        },
      };
    },
  };
}
