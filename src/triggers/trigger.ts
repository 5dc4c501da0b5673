/**
 * Defines the interface of a trigger, which decides whether to fold and how far. Strategies decide what to fold. A trigger is pure: numbers
 * in, a demand out. It fires at one value and asks for a lower one (hysteresis), so that a fold, which re-bills the cached prefix,
 * is followed by many turns without one. A trigger whose goal is met never fires on that state.
 */

export interface Trigger {
  readonly name: string;
  /** Returns the demand on this state; undefined when no fold is needed. Pure, never throws. */
  demand(state: TriggerState): Demand | undefined;
}

export type TriggerState = {
  /** Tokens of the request as it would be sent now. */
  readonly tokens: number;
  /**
   * The part of `tokens` that no fold can remove: tools, system text, protected and pinned content, what the provider wants back
   * unchanged, and stubs. The rest is foldable. Default 0.
   */
  readonly fixed?: number | undefined;
  /** Bytes of the body as it would be sent now. Default: not considered. */
  readonly bytes?: number | undefined;
  /** The model's context window in tokens; undefined when unknown. */
  readonly window: number | undefined;
  /** Tokens of the window kept free for the reply; the caller caps what a client claims. */
  readonly reserved: number;
  /** Number of messages as they would be sent, without system messages and preamble. */
  readonly messages: number;
  /** Prices of tokens; undefined when unknown. */
  readonly economy?: Economy | undefined;
  /** Milliseconds since the conversation's last request; undefined when unknown. */
  readonly idleMs?: number | undefined;
};

/** Prices of one prompt token, relative to a token that is not cached. */
export type Economy = {
  /** Price of a token read from the provider's cache; 1 when the provider does not cache. */
  readonly read: number;
  /** Price of a token written to the cache; 1 when writing costs nothing extra. */
  readonly write: number;
  /** Milliseconds for which an unused prefix stays cached; undefined when unknown. */
  readonly keptMs?: number | undefined;
  /** Tokens of the shortest prompt that the provider caches: a shorter one is billed at the full price. Default: any prompt is cached. */
  readonly minCachedTokens?: number | undefined;
  /**
   * True when a fold adds the recall tool. The tool comes ahead of all messages, so the provider writes even the unfolded messages
   * to its cache again. Default false.
   */
  readonly bringsTool?: boolean;
  /** Tokens of tools and system text, ahead of all messages: each recall reads them once more. Default 0. */
  readonly ahead?: number | undefined;
  /**
   * Steps in which the agent fetched folded results again, by what was evicted: texts, or whole messages. Each is charged to the price of
   * evicting such content again. Default: none.
   */
  readonly fetchedAgain?: { readonly texts: number; readonly messages: number } | undefined;
  /** Computes what could be evicted, in the order of the conversation. */
  readonly candidates: (keepForRequests: KeepForRequests) => readonly EvictionCandidate[];
  /**
   * Tells whether evicting what `candidates` returns from some message on may pay, for which it asks `pays`. It is quickly computed, so a trigger asks for it
   * first. Default: it may.
   */
  readonly mayPay?:
    | ((keepForRequests: KeepForRequests, pays: (limit: RentLimit) => boolean) => boolean)
    | undefined;
};

/** Limits the sums of all candidates from a message on. */
export type RentLimit = {
  /** The most that `tokens` times `requests` can be, for all candidates together. */
  readonly rent: number;
  /** The most tokens of all candidates together. */
  readonly tokens: number;
  /** The fewest tokens that stay behind the first one. */
  readonly behind: number;
};

/** For how many requests each kind of content counts as used after it arrived. */
export type KeepForRequests = {
  /** Tool results. */
  readonly results: number;
  /** Long texts in the arguments of calls. */
  readonly arguments: number;
  /** Long texts in the arguments of calls of a step that edits files: later edits quote them. */
  readonly editArguments: number;
  /** Whole steps: replies with their calls and results. */
  readonly steps: number;
  /** Whole steps that edit files. */
  readonly edits: number;
  /** Whole steps that only run commands and search. */
  readonly commands: number;
  /** Recalled content, which the model can recall again under the same id. */
  readonly recalls: number;
  /** Replies to the user without any call. */
  readonly replies: number;
};

/** Content of one message that is not expected to be used again. */
export type EvictionCandidate = {
  readonly message: number;
  /** Tokens that evicting it would save. */
  readonly tokens: number;
  /** Number of requests it was sent with since it counts as unused. */
  readonly requests: number;
  /** Tokens from the beginning of its message to the end of the request. */
  readonly behind: number;
} & Evicts;

/** Says what is evicted: the long texts of a message (stubs take their place), the rest of the message, or a recall exchange. */
export type Evicts =
  | { readonly evicts: 'texts' | 'message' }
  /** A message of a recall exchange, which is evicted as a whole or not at all; `exchange` is the tokens of the whole exchange. */
  | { readonly evicts: 'recall'; readonly exchange: number };

export type Demand = {
  /** Name of the trigger that made the demand. */
  readonly trigger: string;
  /** The goal of the fold: at most `target` of the unit. Missing it is no failure. */
  readonly goal: { readonly unit: 'tokens' | 'messages'; readonly target: number };
  /** Tokens above which the provider refuses the request; undefined when the goal is only a wish. */
  readonly atMost: number | undefined;
  /** True when even the newest content may be clipped, as the last resort, to get under `atMost`. */
  readonly force: boolean;
  /** If folding history is not enough: above `above` tokens, the newest results are made smaller too, down to `target` tokens. */
  readonly newest?: { readonly above: number; readonly target: number };
  /** Exactly what to fold. Default: everything that may be folded. */
  readonly only?: FoldOnly;
  /** Tokens that a fold must save, or it is not made. Default: a share of the goal. */
  readonly minTokens?: number;
};

/** Messages to fold, by index. */
export type FoldOnly = {
  /** Messages whose long texts are replaced. */
  readonly smaller: ReadonlySet<number>;
  /** Messages that are removed as a whole. */
  readonly gone: ReadonlySet<number>;
};
