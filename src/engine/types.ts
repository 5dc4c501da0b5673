/** Defines the types of the engine: its options, its requests, and its results; and the result for a request that is sent as it is. */
import type { Cache, Caches } from '../caches.ts';
import type { Codec, SeenBodies, Overflow } from '../codecs/codec.ts';
import type { Conversation, HiddenRecall, KeptReply } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import type { RequestDetail } from '../receipts/detail.ts';
import type { FoldReport, Outcome } from '../receipts/receipt.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import type { FoldStore } from '../store/folds.ts';
import type { OriginalTitle } from '../recall/read-original.ts';
import type { HiddenRecalls, KeptReplies } from '../store/hidden-recalls.ts';
import type { ShrinkSettings } from '../strategies/shrink-results.ts';
import type { Summarizer } from '../outline/summarizer.ts';
import type { FoldedMedia } from '../recall/tool.ts';
import type { TenantControls } from '../store/controls.ts';
import type { Trial } from '../store/folds.ts';
import type { ReadySummaries } from '../store/ready-summaries.ts';
import type { Strategy } from '../strategies/strategy.ts';
import type { Calibration, CalibrationKeys, LearnedWindows, WindowKey } from '../tokens/calibration.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import type { Economy, Trigger } from '../triggers/trigger.ts';

export type EngineOptions = FinishOptions & {
  readonly encryptedStore: Pick<EncryptedStore, 'keep' | 'idOf' | 'renewOriginals'>;
  readonly foldStore: FoldStore;
  readonly hiddenRecalls: HiddenRecalls;
  readonly keptReplies: KeptReplies;
  /** Returns a cryptographic digest of bytes. Prefixes are identified by it. */
  readonly digest: (bytes: Uint8Array) => string;
  /** Remembers bodies that were read. Without it, every body is scanned and digested in full. */
  readonly seen?: SeenBodies | undefined;
  readonly triggers: readonly Trigger[];
  readonly strategies: readonly Strategy[];
  readonly counterFor: (model: string | undefined) => Promise<TokenCounter>;
  readonly windowFor: (model: string | undefined) => Promise<ModelWindow>;
  /**
   * Returns the prices of prompt tokens relative to uncached ones; undefined when they are unknown. Some models cost more for a long
   * prompt, so `promptTokens` gives its length. Default: prices are unknown.
   */
  readonly pricesFor?: (model: string | undefined, promptTokens: number) => Promise<CachePrices | undefined>;
  /** Everything that is learned from requests and reports, which the engines of one process share. Default: nothing yet. */
  readonly learned?: Learned | undefined;
  /** `observe` changes nothing and only reports what folding would have sent. Default `fold`. */
  readonly mode?: EngineMode | undefined;
  /** How tool results are made smaller on arrival. Default: they are not. */
  readonly shrinks?: ShrinkSettings | undefined;
  /** When to offer the recall tool to conversations that have tools. Default `always`. */
  readonly offerRecall?: OfferRecall | undefined;
  /** Whether the tool for notes is offered with the recall tool. Default false. */
  readonly offerNotes?: boolean | undefined;
  /**
   * True when the client replaces its messages by the folded ones and continues with these, instead of sending its whole history again.
   * Such a client offers the recall tool itself. Default false.
   */
  readonly isHistoryKept?: boolean | undefined;
  readonly pins?: Pins | undefined;
  /** Whether folded lines that a failed edit must match are added to its result. Default true. */
  readonly repairEdits?: boolean | undefined;
  /** Tool results of fewer bytes (UTF-8) are never replaced by a stub. Default 1,000. */
  readonly minResultBytes?: number | undefined;
  /** The newest images, documents and sounds that no fold replaces, in number. Default: none is replaced. */
  readonly keepNewestMedia?: number | undefined;
  /** Asks the caller to have summaries written ahead of time (`PreparedRequest.summary`). Default: folds use extracts or stubs. */
  readonly summaries?: SummaryAheadOptions | undefined;
  /** Draws the arm of a conversation that would be folded for the first time: a number from 0 to 1 for a key, and the control group's share. */
  readonly holdout?:
    | { readonly rate: number; readonly draw: (tenant: string, key: string) => number }
    | undefined;
  /** Asks the caller to have texts of items and records written ahead, too. Default: folds use extracts. */
  readonly texts?: TextsAhead | undefined;
  /** The caches, under one memory budget. Default: a budget of 160 MB. */
  readonly caches?: Caches | undefined;
};

/** Everything that the engines of one process learn from requests and reports. It is never stored: after a restart it is learned again. */
export type Learned = {
  readonly calibration: Calibration;
  readonly windows: LearnedWindows;
  readonly lastSent: LastSent;
  /** Takes over what another thread has learned for a request. Never rejects. Default: there is no other thread. */
  readonly load?: (keys: LearnedKeys) => Promise<void>;
};

/** The keys under which something is learned. `links`: the prefix hashes of the conversation as the client sent it. */
export type LearnedKeys = {
  readonly tokens: CalibrationKeys;
  readonly window: WindowKey;
  readonly links: readonly string[];
};

/** The last request of a conversation. */
export type SentRequest = {
  /** The messages as they were sent, without cache marks. */
  readonly messages: SentMessages;
  /** The edits of folds that were applied. */
  readonly edits: readonly Edit[];
  /** The number of messages before the edits. */
  readonly length: number;
  /** Identifies the model and everything that precedes the messages. */
  readonly preamble: string;
  /** True when it offered the recall tool. */
  readonly offers: boolean;
  /** When it was sent, in milliseconds since the epoch. */
  readonly at: number;
  /** The number of messages of the request before this one, if this one begins with them. */
  readonly earlier: number | undefined;
  readonly habit: CacheHabit;
};

/** Digests of the first `length` messages. The list may be longer, because requests that only append share one. */
export type SentMessages = { readonly digests: readonly string[]; readonly length: number };

/** How often a request of the conversation found its prefix in the cache, or would have found it with marks. */
export type CacheHabit = {
  /** The number of requests that were followed by another. */
  readonly followed: number;
  /** The share of the last few requests whose prefix was still cached when the next one arrived. */
  readonly kept: number;
};

/**
 * An earlier request that was found. `matched`: the number of the client's messages that it had; the current request begins with them.
 * `isAgain`: it is the same request, sent again or counted first, and not the previous one.
 */
export type FoundLastRequest = {
  readonly request: SentRequest;
  readonly matched: number;
  readonly isAgain: boolean;
};

export interface LastSent {
  /** Finds the last request by the prefix hashes of the client's conversation. */
  find(clientLinks: readonly string[]): FoundLastRequest | undefined;
  /** Records a request in place of the one that was found. */
  record(clientLinks: readonly string[], request: SentRequest, found: FoundLastRequest | undefined): void;
  /** Returns the newest request that is recorded under one of these hashes, oldest hash first, for another thread. */
  packed(links: readonly string[]): PackedRequest | undefined;
  /** Records a request of another thread, in place of the one under the hash `replaced`. */
  adopt(sent: PackedRequest, replaced?: string): void;
}

/** A request as one text: to copy it to another thread takes no longer if it has more messages. */
export type PackedRequest = { readonly link: string; readonly text: string };

export type EngineMode = 'fold' | 'observe';

/**
 * When the model is offered the recall tool:
 * - `always`: from the first request of a conversation on. The prefix never changes later.
 * - `with-fold`: as soon as there is something to recall. Short conversations are sent without it; the first fold re-bills the whole prefix.
 * - `never`: the model cannot read what was folded.
 */
export type OfferRecall = 'always' | 'with-fold' | 'never';

/** Prices of a provider's cache, and how long it keeps entries unless the client asks for more. */
export type CachePrices = Pick<Economy, 'read' | 'write' | 'keptMs' | 'minCachedTokens'> & {
  /** The price of writing a token that is cached for an hour. Default: twice the input price if cache writes cost extra. */
  readonly writeLong?: number | undefined;
};

/** The context window of a model. */
export type ModelWindow = {
  /** Tokens; undefined when unknown. */
  readonly tokens: number | undefined;
  /** True when the reply counts against the same window, so that tokens must be reserved for it. */
  readonly holdsReply: boolean;
};

/** Content that the user wants kept verbatim. */
export type Pins = {
  /** Results of these tools are never folded. */
  readonly tools: readonly string[];
  /** Parts that contain one of these texts are never folded. */
  readonly texts: readonly string[];
  /** Whether the agent's newest plan stays in view. Default true. */
  readonly plan?: boolean | undefined;
  /** Whether the newest version of each instruction file that a tool read stays in view. Default true. */
  readonly instructions?: boolean | undefined;
};

/** The options for finishing a body. */
export type FinishOptions = {
  /** Whether to set cache marks for clients that set none, when they pay off at the prices of `pricesFor`. Default true. */
  readonly cacheMarks?: boolean | undefined;
  /** Returns milliseconds since the epoch, to tell whether a cache can still be warm. Default: a constant clock. */
  readonly clock?: (() => number) | undefined;
  readonly mode?: string | undefined;
};

/** The options for summaries that are written ahead; `maxTokens` is the largest number of tokens that a summary aims at. */
export type SummaryAheadOptions = { readonly ready: ReadySummaries; readonly maxTokens: number };

/** Texts that were written ahead, by tenant and key, as far as this process knows them, and the messages of the last plan that looked for them. */
export type TextsAhead = {
  readonly known: Cache<string, string>;
  readonly planned: Cache<string, number>;
  readonly encryptedStore: Pick<EncryptedStore, 'keep' | 'putSealed' | 'getSealedMany'>;
};

// Requests.

export type EngineRequest = {
  readonly codec: Codec;
  /** The client's request body. Its bytes must not change before `prepare` resolves. */
  readonly body: Uint8Array;
  readonly tenant: string;
  /** The upstream that serves the request, such as its origin. Context windows are learned per upstream and model. */
  readonly upstream?: string;
  /**
   * Returns the milliseconds left to wait for a store, and to plan a fold that only saves money. A fold that the request needs to fit
   * is made however long it takes. Default: unlimited.
   */
  readonly leftMs?: () => number;
  /** The reason why the provider refused an earlier attempt of this request. */
  readonly refusal?: Refusal;
  /** The client's session, as its headers name it. All conversations of a session are in the same arm of an experiment. */
  readonly session?: string | undefined;
  /** The folds that a shadow holds back. The receipt names strategies only if this is set. */
  readonly held?: HeldFolds;
  /** The user's decisions for later requests, made while the gateway runs. Default: none. */
  readonly controls?: TenantControls;
};

/** Sets of strategies that make no new fold for a model together, unless a request would not fit. */
export type HeldFolds = {
  readonly sets: readonly { readonly model: string; readonly strategies: string }[];
  /** True when all sets are held but these. */
  readonly allBut?: boolean;
};

/** `too long` makes the engine fold below the provider's limit, whatever the triggers say; `reasoning` makes it drop all reasoning. */
export type Refusal =
  | { readonly reason: 'too long'; readonly overflow: Overflow }
  | { readonly reason: 'reasoning' };

// Prepared requests.

export type PreparedRequest = {
  readonly outcome: Outcome;
  readonly body: Uint8Array;
  /** False when no provider accepts the client's own bytes, because they continue a reply that ends with an unanswered hidden recall. */
  readonly maySendClientBody: boolean;
  readonly report: FoldReport;
  /** Describes, without content, a failure despite which the request was sent; undefined when nothing failed. */
  readonly problem?: string | undefined;
  /** When a new fold was planned, in milliseconds since the epoch; undefined when none was. */
  readonly planTime?: { readonly from: number; readonly to: number } | undefined;
  readonly identity: Identity;
  /** The client's conversation; undefined when it is held elsewhere, such as in another thread, or was not read to its end. */
  readonly conversation?: Conversation | undefined;
  /** The experiment that the conversation is part of. */
  readonly trial?: Trial | undefined;
  /** The name of the recall tool that the body offers; undefined when it offers none. */
  readonly recallTool: string | undefined;
  /** The name of the tool for notes that the body offers besides the recall tool; undefined when it offers none. */
  readonly notesTool?: string | undefined;
  /** True when the client asks for structured output. */
  readonly wantsJson?: boolean | undefined;
  /**
   * Returns the original for an id of this conversation, as exact JSON bytes; undefined for any other id. Returns a promise when the originals
   * are held elsewhere, such as in another thread; it rejects with `store-failed`.
   */
  readonly original: (id: string) => Uint8Array | undefined | Promise<Uint8Array | undefined>;
  /** Returns the title of an original, or a promise of it, as `original` does; undefined for ids that have none. */
  readonly titleOf: (id: string) => OriginalTitle | undefined | Promise<OriginalTitle | undefined>;
  /** Returns the ids that a recall without an id searches, the most likely first. */
  readonly searched: () => readonly string[];
  /** The images and documents among the originals, by id. */
  readonly media: ReadonlyMap<string, FoldedMedia>;
  /** Stores a hidden recall made for the reply to this request, to be put back into later requests. Rejects with `store-failed`. */
  readonly remember: (hiddenRecall: HiddenRecall) => Promise<void>;
  /** Stores how to continue from the reply that the client knows by this name. Rejects with `store-failed`. */
  readonly keepReply: (knownAs: string, reply: KeptReply) => Promise<void>;
  /** The tokens that the prompt and the reply leave free in the window; undefined when the window is unknown. */
  readonly room: number | undefined;
  /** Undefined when the body could not be read. */
  readonly counter: TokenCounter | undefined;
  /** The length of the prompt in `body`; undefined when it was not counted. */
  readonly prompt: PromptTokens | undefined;
  /** Resolves when other instances can see how this request is sent. Await it before the client can continue from the reply. Never rejects. */
  readonly known: Promise<void>;
  /** A summary that the next fold will need and that should be written now, in the background. */
  readonly summary?: SummaryJob | undefined;
  /** With `allBut`: the same request with the fold that was held back, and its strategies. It is stored nowhere. */
  readonly heldBack?:
    | {
        readonly strategies: string;
        readonly prepared: () => PreparedRequest | Promise<PreparedRequest | undefined>;
      }
    | undefined;
  /** Takes the number of tokens that the provider reported for the prompt of `body`, which makes later counts more exact. Never throws. */
  readonly reportPromptTokens: (reported: number) => void;
  /** Describes the request, for a receipt that is read later. Undefined when it was sent without looking at its messages. */
  readonly detail?: () => RequestDetail | Promise<RequestDetail | undefined>;
  /** Lets another thread forget the request once its response has ended and nothing else will ask about it. Default: no thread holds it. */
  readonly release?: () => void;
};

/** Identifies a conversation. */
export type Identity = {
  /** The prefix hashes of the conversation as the client sent it; empty when the provider keeps the history. */
  readonly links: readonly string[];
  /** The prefix hash that all requests of a conversation share; undefined when there is none. */
  readonly beginning: string | undefined;
  /** The session key in the body. It is only a hint for grouping. */
  readonly session: string | undefined;
};

export type PromptTokens = {
  /** Tokens by the counter, with the tools and the format's overhead. */
  readonly counted: number;
  /** The same for the prompt as the client sent it. */
  readonly original: number;
  /** The tokens that the provider is expected to report, given its earlier reports. */
  readonly expected: number;
};

/** A summary that the next fold will need. */
export type SummaryJob = {
  /** Whether a summary of history is written, or texts of items and records. */
  readonly writes: 'summary' | 'texts';
  /** Two requests that need the same summary have the same key. */
  readonly key: string;
  /** Returns the keys of summaries of earlier parts of the same conversation. */
  readonly earlier: () => ReadonlySet<string>;
  /** The tokens of the messages that it replaces, without those of the earlier summary that it includes; of texts, those that the fold is expected to remove. */
  readonly tokens: number;
  /** Resolves with true when this instance may write it: for `forMs` milliseconds, no other instance on the store will. Rejects with `store-failed`. */
  readonly claim: (forMs: number) => Promise<boolean>;
  /** Writes and stores it; resolves with its tokens. Rejects when the summarizer fails, or with `store-failed`. */
  readonly write: (summarizer: Summarizer, signal?: AbortSignal) => Promise<number>;
};

/** The engine as its callers see it. On any failure, the client's original bytes can be sent. */
export interface Engine {
  /** Prepares a request to be sent. Never rejects: on a failure, the outcome is `failed` and the body is the client's own. */
  prepare(request: EngineRequest): Promise<PreparedRequest>;
  /**
   * Returns the request without a fold, for a bypass or when folding took too long. The body is the client's own, except that it names
   * the reply to continue from as the provider knows it. Only the beginning of the body is read. If this process does not know that
   * reply, the store is asked for at most `waitMs` milliseconds. Never rejects.
   */
  unfolded(request: EngineRequest, outcome: UnfoldedOutcome, waitMs?: number): Promise<PreparedRequest>;
  /** Disables folding of this conversation for a day, except when it would not fit, because its provider refused our edits. Never rejects. */
  disableFolding(request: EngineRequest): Promise<void>;
  /** Takes the number of tokens that a provider reported for a prompt that was sent without `prepare`. Never rejects. */
  reportPromptTokens(request: EngineRequest, reported: number): Promise<void>;
}

/** The outcome of a request that is sent without a fold. */
export type UnfoldedOutcome = Extract<Outcome, { readonly reason: string }>;

/** Returns a request that is sent without a fold. `said` holds the fields that could be read from its body. */
export function passThrough(
  body: Uint8Array,
  outcome: Outcome,
  said?: Partial<Pick<Conversation, 'model' | 'sessionKey'>>,
): PreparedRequest {
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
    titleOf: () => undefined,
    searched: () => [],
    media: new Map(),
    remember: () => Promise.resolve(),
    keepReply: () => Promise.resolve(),
    room: undefined,
    counter: undefined,
    prompt: undefined,
    known: Promise.resolve(),
    reportPromptTokens: () => {},
  };
}
