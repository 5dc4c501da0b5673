/**
 * Remembers the context windows that providers enforce: learned from refusals, per tenant, upstream and model, and forgotten
 * after a day. Kept in this process only: after a restart one refusal teaches them again. Pure except for its memory and its
 * clock.
 */
import { LRUCache } from 'lru-cache';

export interface LearnedWindows {
  /** Returns the window in tokens; undefined when no refusal named a limit within the last day. */
  find(key: WindowKey): number | undefined;
  /** Remembers a limit, in tokens. A larger one than known changes nothing. */
  learn(key: WindowKey, limit: number): void;
  /** Takes the tokens of a prompt that the provider accepted: a smaller learned window was wrong, and is forgotten. */
  accepted(key: WindowKey, prompt: number): void;
}

export type WindowKey = {
  readonly tenant: string;
  readonly upstream: string | undefined;
  readonly model: string | undefined;
};

/** Milliseconds. Providers raise limits, and accounts change tiers. */
const rememberedMs = 24 * 60 * 60 * 1_000;

/** Model names come from the client: their kept length is bounded. */
const maxNameLength = 200;

/** `clock` gives milliseconds since the epoch. */
export function createLearnedWindows(clock: () => number = () => 0): LearnedWindows {
  const learned = new LRUCache<string, { readonly limit: number; readonly at: number }>({ max: 1_000 });

  function find(key: WindowKey): number | undefined {
    const found = learned.get(nameOf(key));
    return found && clock() - found.at < rememberedMs ? found.limit : undefined;
  }

  return {
    find,
    learn(key, limit) {
      const before = find(key);
      if (before === undefined || limit < before) learned.set(nameOf(key), { limit, at: clock() });
    },
    accepted(key, prompt) {
      const before = learned.size > 0 ? find(key) : undefined;
      if (before !== undefined && prompt > before) learned.delete(nameOf(key));
    },
  };
}

function nameOf({ tenant, upstream, model }: WindowKey): string {
  return JSON.stringify([tenant, upstream, model?.slice(0, maxNameLength)]);
}
