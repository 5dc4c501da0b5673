/** What an engine is made of. */
import type { SeenBodies } from '../codecs/seen-bodies.ts';
import type { HiddenRecalls } from '../store/hidden-recalls.ts';
import type { KeptReplies } from '../store/kept-replies.ts';
import type { FoldStore } from '../store/fold-store.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import type { ShrinkSettings } from '../strategies/shrink-results.ts';
import type { Strategy } from '../strategies/strategy.ts';
import type { Calibration } from '../tokens/calibration.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import type { Economy, Trigger } from '../triggers/trigger.ts';
import type { Pins } from './protection.ts';
import type { AheadOptions } from './summary-ahead.ts';
import type { SenderOptions } from './sender.ts';

export type EngineOptions = SenderOptions & {
  readonly encryptedStore: Pick<EncryptedStore, 'keep' | 'idOf' | 'renewOriginals'>;
  readonly foldStore: FoldStore;
  readonly hiddenRecalls: HiddenRecalls;
  readonly keptReplies: KeptReplies;
  /** A cryptographic digest of bytes: the identity of prefixes hangs on it. */
  readonly digest: (bytes: Uint8Array) => string;
  /** Bodies read before. Without them each is scanned and digested whole. */
  readonly seen?: SeenBodies | undefined;
  readonly triggers: readonly Trigger[];
  readonly strategies: readonly Strategy[];
  readonly counterFor: (model: string | undefined) => Promise<TokenCounter>;
  readonly windowFor: (model: string | undefined) => Promise<ModelWindow>;
  /**
   * Returns what the tokens of a prompt cost relative to those that are not cached; undefined where nobody knows. Some models cost more for
   * a long prompt: `promptTokens` is the length of this one. Default: nobody knows.
   */
  readonly pricesFor?: (model: string | undefined, promptTokens: number) => Promise<CachePrices | undefined>;
  /** What is known of how far counts are off. Default: one of its own, with the usual bounds. */
  readonly calibration?: Calibration | undefined;
  /** `observe` reckons everything and changes nothing: the report says what would have been sent. Default `fold`. */
  readonly mode?: EngineMode | undefined;
  /** How tool results are made smaller when they come. Default: not at all. */
  readonly shrinks?: ShrinkSettings | undefined;
  /** When to offer the recall tool to conversations that have tools. Default `always`. */
  readonly offerRecall?: OfferRecall | undefined;
  /**
   * Whether the client keeps its messages as they are folded and goes on from these, rather than sending its whole history again. It
   * offers the recall tool itself then. Default false.
   */
  readonly isHistoryKept?: boolean | undefined;
  readonly pins?: Pins | undefined;
  /** Smaller tool results (bytes, UTF-8) are never offloaded. Default 1,000. */
  readonly compressionBytesThreshold?: number | undefined;
  /** Has summaries written ahead by whoever can ask a model: `Prepared.summary`. Default: folds leave extracts, or stubs. */
  readonly summaries?: AheadOptions | undefined;
  /** How much is remembered of blocks read before, in parts of some 200 bytes. Default 400,000. */
  readonly maxParts?: number;
};

export type EngineMode = 'fold' | 'observe';

/**
 * When the model is offered the recall tool:
 * - `always`: from the first request of a conversation on. The prefix never changes later.
 * - `with-fold`: as soon as something can be recalled. Short conversations are sent without it; the first fold re-bills the whole prefix.
 * - `never`: the model cannot recall, so requests are folded only in order to fit.
 */
export type OfferRecall = 'always' | 'with-fold' | 'never';

/** Prices of a provider's cache, and how long it keeps entries unless the client asks for more. */
export type CachePrices = Pick<Economy, 'read' | 'write' | 'keptMs' | 'minCachedTokens'> & {
  /** The price of a token that is written to be kept for an hour. Default: twice the input, where writing costs anything extra. */
  readonly writeLong?: number | undefined;
};

/** What a model takes. */
export type ModelWindow = {
  /** Tokens; undefined where nobody knows. */
  readonly tokens: number | undefined;
  /** Whether the reply comes out of the same window, so that room must be left for it. */
  readonly holdsReply: boolean;
};
