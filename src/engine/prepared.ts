/** A request ready to be sent, with what is needed to answer recalls from it. */
import type { Conversation } from '../conversation/conversation.ts';
import type { HiddenRecall, KeptReply } from '../conversation/hidden-recall.ts';
import type { FoldReport, Outcome } from '../receipts/receipt.ts';
import type { SummaryJob } from './summary-ahead.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';

export type Prepared = {
  readonly outcome: Outcome;
  readonly body: Uint8Array;
  /** False where no provider takes the client's own bytes: they go on from a reply in which a private call waits for its answer. */
  readonly mayGoAsItCame: boolean;
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
  readonly learn: (reported: number) => void;
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
  readonly came: number;
  /** What the provider is expected to report, after what it reported before. */
  readonly expected: number;
};

/** A request that goes out without a fold, with what its body is known to say of itself. */
export function unprepared(
  body: Uint8Array,
  outcome: Outcome,
  said?: Partial<Pick<Conversation, 'model' | 'sessionKey'>>,
): Prepared {
  return {
    outcome,
    body,
    mayGoAsItCame: true,
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
    learn: () => {},
  };
}
