/**
 * The interface of everything that decides whether to fold, and how far. What to fold is for strategies to decide.
 * Pure: numbers in, a demand out. A trigger fires at one value and asks for a lower one (hysteresis), so that a fold,
 * which re-bills the cached prefix, buys many turns of quiet; a trigger whose goal is met never fires on that state.
 */

export type TriggerState = {
  /** Tokens of the request as it would be sent now. */
  readonly tokens: number;
  /**
   * The part of `tokens` that no fold can take out: tools, system text, what is protected or pinned, what the provider wants back as it was,
   * stubs. The rest is foldable. Default 0.
   */
  readonly fixed?: number | undefined;
  /** The model's context window in tokens; undefined where nobody knows it. */
  readonly window: number | undefined;
  /** Tokens of the window kept free for the reply; the caller caps what a client claims. */
  readonly reserved: number;
  /** Messages as they would be sent, without system and preamble. */
  readonly messages: number;
  /** What tokens cost, where that is known. */
  readonly economy?: Economy | undefined;
  /** Milliseconds since the conversation's last request; undefined where nobody knows. */
  readonly idleMs?: number | undefined;
};

/** Prices of one prompt token, relative to one that is not cached. */
export type Economy = {
  /** Read from the provider's cache; 1 where it does not cache. */
  readonly read: number;
  /** Written to it; 1 where that costs nothing extra. */
  readonly write: number;
  /** For how many milliseconds what nobody asks for stays cached; undefined where nobody knows. */
  readonly keptMs?: number | undefined;
  /** Tokens of the shortest prompt that is cached: a shorter one is billed at the full price. Default: any is cached. */
  readonly least?: number | undefined;
  /** Whether a fold brings the recall tool, which stands ahead of all messages, so that what it leaves alone is written anew, too. Default false. */
  readonly bringsTool?: boolean;
  /** Tokens of tools and system text, ahead of all messages: each recall reads them once more. Default 0. */
  readonly ahead?: number | undefined;
  /** What could go, in the order of the conversation. Reckoned when asked for. */
  readonly dead: (usedFor: UsedFor) => readonly Dead[];
};

/** For how many requests things count as used after they came. */
export type UsedFor = {
  /** Tool results. */
  readonly results: number;
  /** Long texts in the arguments of calls. */
  readonly arguments: number;
  /** Whole steps: replies with their calls and results. */
  readonly steps: number;
  /** What was recalled, which can be recalled again under the same id. */
  readonly recalls: number;
  /** What the model told the user without calling anything. */
  readonly replies: number;
};

/** What stands in a message and is not expected to be used again. */
export type Dead = {
  readonly message: number;
  /** Tokens that taking it out would save. */
  readonly tokens: number;
  /** Requests it was sent with since it went dead. */
  readonly requests: number;
  /** Tokens sent from its message on to the end, its own among them. */
  readonly behind: number;
} & Going;

/** The long texts in it, stubs in their place; or all that would be left of the message without these. */
export type Going =
  | { readonly goes: 'texts' | 'message' }
  /** A message of an exchange by which something was recalled, which goes as a whole or not at all: tokens of all of it. */
  | { readonly goes: 'recall'; readonly exchange: number };

export type Demand = {
  /** Name of the trigger that made it. */
  readonly trigger: string;
  /** What folding aims at: no more than `target` of the unit. Falling short of it is no failure. */
  readonly goal: { readonly unit: 'tokens' | 'messages'; readonly target: number };
  /** Tokens the request must not exceed to be accepted at all; undefined where the goal is only a wish. */
  readonly atMost: number | undefined;
  /** True when even the newest content may be clipped, as the last resort, to come under `atMost`. */
  readonly force: boolean;
  /** Where history alone does not bring it there: above so many tokens newest results are made smaller, too, down to so many. */
  readonly newest?: { readonly above: number; readonly target: number };
  /** All that may be folded, and all of it is to be: what is named here and nothing else. Default: whatever is free. */
  readonly only?: Only;
  /** Tokens that a fold must take out at least, or it is not made. Default: a share of what the goal asks for. */
  readonly least?: number;
};

/** Messages of the conversation, by index. */
export type Only = {
  /** Their long texts go. */
  readonly smaller: ReadonlySet<number>;
  /** They go as a whole. */
  readonly gone: ReadonlySet<number>;
};

/** All that is dead of these messages, and nothing else. */
export function onlyDead(dead: readonly Dead[]): Only {
  const gone = new Set(dead.flatMap(({ message, goes }) => (goes === 'texts' ? [] : [message])));
  const smaller = new Set(dead.flatMap(({ message }) => (gone.has(message) ? [] : [message])));
  return { smaller, gone };
}

/** Returns whether a prompt is too short for its provider to cache: then nothing is saved by making it shorter for the cache's sake. */
export function isTooShortToCache(tokens: number, economy: Economy | undefined): boolean {
  return tokens < shortestCached(economy);
}

/** Returns the tokens below which a prompt is no longer cached, and so becomes dearer when it is folded; 0 where that does not happen. */
export function shortestCached(economy: Economy | undefined): number {
  return economy && economy.read < 1 ? (economy.least ?? 0) : 0;
}

export interface Trigger {
  readonly name: string;
  /** The demand on this state, or undefined while all is well. Pure, never throws. */
  demand(state: TriggerState): Demand | undefined;
}

/** The demand of the first trigger that fires: the order of the list is the priority. */
export function firstDemand(triggers: readonly Trigger[], state: TriggerState): Demand | undefined {
  for (const trigger of triggers) {
    const demand = trigger.demand(state);
    if (demand !== undefined) return demand;
  }
  return undefined;
}
