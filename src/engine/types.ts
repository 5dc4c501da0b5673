/** Types of the engine: its options, its requests, and what it returns for them. */
import type { Codec } from '../codecs/codec.ts';
import type { Overflow } from '../codecs/provider-errors.ts';
import type { SeenBodies } from '../codecs/seen-bodies.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { HiddenRecall, KeptReply } from '../conversation/hidden-recall.ts';
import { LeporelloError } from '../errors.ts';
import type { FoldReport, Outcome } from '../receipts/receipt.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import type { FoldStore } from '../store/fold-store.ts';
import type { HiddenRecalls } from '../store/hidden-recalls.ts';
import type { KeptReplies } from '../store/kept-replies.ts';
import type { ShrinkSettings } from '../strategies/shrink-results.ts';
import type { Summarizer } from '../outline/summarizer.ts';
import type { ReadySummaries } from '../store/ready-summaries.ts';
import type { Strategy } from '../strategies/strategy.ts';
import type { Calibration } from '../tokens/calibration.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import type { Economy, Trigger } from '../triggers/trigger.ts';

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

// Requests.

export type EngineRequest = {
  readonly codec: Codec;
  readonly body: Uint8Array;
  readonly tenant: string;
  /** The upstream that serves the request, such as its origin. Context windows are learned per upstream and model. */
  readonly upstream?: string;
  /**
   * Milliseconds left to wait for a store, and to plan a fold that only saves money. A fold without which the request would not fit is
   * made however long it takes. Default: unbounded.
   */
  readonly leftMs?: () => number;
  /** The reason why the provider refused this request before. */
  readonly refusal?: Refusal;
};

/** `too long` folds below the provider's limit, whatever the triggers say; `reasoning` drops all reasoning. */
export type Refusal =
  | { readonly reason: 'too long'; readonly overflow: Overflow }
  | { readonly reason: 'reasoning' };

/** Settles like the promise; rejects with `deadline` when the request's time is over first. */
export async function inTime<T>({ leftMs }: Pick<EngineRequest, 'leftMs'>, promise: Promise<T>): Promise<T> {
  if (!leftMs) return promise;
  const left = Math.max(0, leftMs());
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () =>
      late.reject(
        new LeporelloError('deadline', `The store did not answer in the ${Math.round(left)} ms left.`),
      ),
    left,
  );
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

// Prepared requests.

export type Prepared = {
  readonly outcome: Outcome;
  readonly body: Uint8Array;
  /** False where no provider takes the client's own bytes: they go on from a reply in which a private call waits for its answer. */
  readonly maySendClientBody: boolean;
  readonly report: FoldReport;
  /** A failure that the request was sent in spite of, in words without content; undefined when nothing failed. */
  readonly problem?: string | undefined;
  readonly identity: Identity;
  /** Name of the recall tool the body offers; undefined when it offers none. */
  readonly recallTool: string | undefined;
  /** The original behind an id of this very conversation, as exact JSON bytes; nothing for any other id. */
  readonly original: (id: string) => Uint8Array | undefined;
  /**
   * The same where the originals are held elsewhere, as in another thread: then `original` knows none. Undefined where `original` knows all.
   * Rejects with `store-failed`.
   */
  readonly lookUpOriginal?: (id: string) => Promise<Uint8Array | undefined>;
  /** The ids to search where none is named, what is likelier to be asked for first. */
  readonly searched: readonly string[];
  /** Keeps what was recalled for the reply to this request, to be put back into later ones. Rejects with `store-failed`. */
  readonly remember: (hiddenRecall: HiddenRecall) => Promise<void>;
  /** Keeps how to go on from the reply that the client knows by this name. Rejects with `store-failed`. */
  readonly keepReply: (knownAs: string, reply: KeptReply) => Promise<void>;
  /** Tokens the window has left beside what is sent and the reply; undefined where nobody knows the window. */
  readonly room: number | undefined;
  /** Undefined when the body could not be read. */
  readonly counter: TokenCounter | undefined;
  /** How long the prompt of `body` is; undefined when nobody counted it. */
  readonly prompt: PromptTokens | undefined;
  /** Resolves, always, when other instances can know what this request is sent with: before its client goes on from the reply. */
  readonly known: Promise<void>;
  /** A summary that a fold to come will need, to be written by now, off the request's path. */
  readonly summary?: SummaryJob | undefined;
  /** Takes in how many tokens the provider reported for the prompt of `body`, so that the next counts are closer. Never throws. */
  readonly reportPromptTokens: (reported: number) => void;
};

/** What tells the conversation from others. */
export type Identity = {
  /** The links of its prefix chain as the client sent it; none where the history stands with the provider. */
  readonly links: readonly string[];
  /** The link that all requests of a conversation share; undefined where there is none. */
  readonly beginning: string | undefined;
  /** What the body calls the session: to group by, never to rely on. */
  readonly session: string | undefined;
};

export type PromptTokens = {
  /** By the counter, wrapping and tools included. */
  readonly counted: number;
  /** The same of what came. */
  readonly original: number;
  /** What the provider is expected to report, after what it reported before. */
  readonly expected: number;
};

/** A request that goes out without a fold, with what its body is known to say of itself. */
export function passThrough(
  body: Uint8Array,
  outcome: Outcome,
  said?: Partial<Pick<Conversation, 'model' | 'sessionKey'>>,
): Prepared {
  return {
    outcome,
    body,
    maySendClientBody: true,
    report: {
      model: said?.model,
      counter: undefined,
      window: undefined,
      trigger: undefined,
      replayed: 0,
      shrunk: 0,
      hiddenRecalls: 0,
      steps: [],
      compressions: [],
      memories: [],
      tokensBefore: undefined,
      tokensAfter: undefined,
      tokensKept: undefined,
      bytesBefore: body.length,
      bytesAfter: body.length,
      cacheMarks: 0,
      unstableFrom: undefined,
      unfit: undefined,
    },
    identity: { links: [], beginning: undefined, session: said?.sessionKey },
    recallTool: undefined,
    original: () => undefined,
    searched: [],
    remember: () => Promise.resolve(),
    keepReply: () => Promise.resolve(),
    room: undefined,
    counter: undefined,
    prompt: undefined,
    known: Promise.resolve(),
    reportPromptTokens: () => {},
  };
}

/** What the user wants kept verbatim. */
export type Pins = {
  /** Results of these tools are never folded. */
  readonly tools: readonly string[];
  /** Parts whose text holds one of these are never folded. */
  readonly texts: readonly string[];
};

export type SenderOptions = {
  /** Whether clients that mark nothing get marks for their provider's cache, where they pay by `pricesFor`. Default true. */
  readonly cacheMarks?: boolean | undefined;
  /** Milliseconds; tells whether a cache can still be warm. Default: time stands still. */
  readonly clock?: (() => number) | undefined;
  readonly mode?: string | undefined;
};

export type AheadOptions = {
  readonly ready: ReadySummaries;
  /** Tokens that a summary aims at, at most. */
  readonly maxTokens: number;
};

/** A summary that will be needed. */
export type SummaryJob = {
  /** The same for two requests that want the same summary. */
  readonly key: string;
  /** The keys of summaries of earlier parts of the same conversation. */
  readonly earlier: () => ReadonlySet<string>;
  /** Tokens of the messages it is to stand for, those of the summary it takes in left out. */
  readonly tokens: number;
  /** Whether it is to be written here: for `forMs`, no other instance on the same store will. Rejects with `store-failed`. */
  readonly claim: (forMs: number) => Promise<boolean>;
  /** Has it written and keeps it; resolves with its tokens. Rejects where the summarizer fails, or with `store-failed`. */
  readonly write: (summarizer: Summarizer, signal?: AbortSignal) => Promise<number>;
};
