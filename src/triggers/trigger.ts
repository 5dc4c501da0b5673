/**
 * The interface of everything that decides whether to fold, and how far. What to fold is for strategies to decide.
 * Pure: numbers in, a demand out. A trigger fires at one value and asks for a lower one (hysteresis), so that a fold,
 * which re-bills the cached prefix, buys many turns of quiet; a trigger whose goal is met never fires on that state.
 */

export type TriggerState = {
  /** Tokens of the request as it would be sent now. */
  readonly tokens: number;
  /** The model's context window in tokens; undefined where nobody knows it. */
  readonly window: number | undefined;
  /** Tokens of the window kept free for the reply; the caller caps what a client claims. */
  readonly reserved: number;
  /** Messages as they would be sent, without system and preamble. */
  readonly messages: number;
  /** What tokens cost, where that is known. */
  readonly economy?: Economy | undefined;
};

/** Prices of one prompt token, relative to one that is not cached. */
export type Economy = {
  /** Read from the provider's cache; 1 where it does not cache. */
  readonly read: number;
  /** Written to it; 1 where that costs nothing extra. */
  readonly write: number;
  /** What could go, in the order of the conversation, where a result counts as used for so many requests. Reckoned when asked for. */
  readonly dead: (usedFor: number) => readonly Dead[];
};

/** A message of results that nobody is expected to use again. */
export type Dead = {
  readonly message: number;
  /** Tokens that taking it out would save. */
  readonly tokens: number;
  /** Requests it was sent with since it went dead. */
  readonly requests: number;
  /** Tokens sent from it on to the end, its own among them. */
  readonly behind: number;
};

export type Demand = {
  /** Name of the trigger that made it. */
  readonly trigger: string;
  /** What folding aims at: no more than `target` of the unit. Falling short of it is no failure. */
  readonly goal: { readonly unit: 'tokens' | 'messages'; readonly target: number };
  /** Tokens the request must not exceed to be accepted at all; undefined where the goal is only a wish. */
  readonly atMost: number | undefined;
  /** True when even the newest content may be clipped, as the last resort, to come under `atMost`. */
  readonly force: boolean;
  /** Messages (of the conversation, by index) that alone may be folded. Default: whatever is free. */
  readonly only?: ReadonlySet<number>;
};

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
