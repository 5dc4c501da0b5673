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
