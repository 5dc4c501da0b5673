/**
 * Defines folds and the interface of the fold store, which keeps them by conversation prefix: the same prefix finds the same edits in every
 * later request, across restarts and instances. A fold is found by the prefix hashes ("links") of the conversation it was made on, so no
 * session id is needed. A request that made no fold leaves a record for one day that says which fold it was sent with, so that the next
 * request continues from there.
 */
import type { Edit } from '../conversation/edit.ts';
import type { FirstSealed, Sealed } from './store.ts';

/** A recorded set of edits over the first `length` messages. It is complete: it includes the edits of earlier folds. */
export type Fold = {
  /** Messages of the conversation as its client sent it. */
  readonly length: number;
  readonly edits: readonly Edit[];
  /** The provider rejected this conversation with edits and accepted it without: it is not folded for a while. */
  readonly foldingDisabled: boolean;
  /** When the provider did so, in milliseconds since the epoch; undefined when it did not, or when that is unknown. */
  readonly foldingDisabledSince?: number | undefined;
  /** The store does not have this fold: it failed or did not answer before the request had to be sent. Never written to a store. */
  readonly isUnsaved?: boolean | undefined;
  /** The prefix whose places the edits name; undefined when there are no edits. */
  readonly over?: Prefix | undefined;
  /** Index of the first message whose tool results were made smaller on arrival; undefined when that need not be remembered. */
  readonly shrinksFrom?: number | undefined;
  /** The experiment that the conversation is part of. */
  readonly trial?: Trial | undefined;
  /** When the request was sent that this fold was made for, in milliseconds since the epoch. */
  readonly at?: number | undefined;
  /** Token limit of the request that this fold was made for; undefined when it had none. */
  readonly limit?: number | undefined;
  /** A digest of the fold that identifies it. */
  readonly id: string;
};

/** A conversation's part in the holdout experiment. `unit` identifies its session, or itself; the arms parted after `at` messages. */
export type Trial = { readonly unit: string; readonly isControl: boolean; readonly at: number };

/** A prefix of a conversation, hidden recalls included: how many messages it has, and its hash. */
type Prefix = { readonly messages: number; readonly link: string };

/** Says which fold a request without a fold of its own was sent with, or that it was sent without any. */
export type SentWith = Pick<Fold, 'at' | 'limit'> & {
  readonly with?: { readonly matched: number; readonly id: string } | undefined;
};

/** A fold, and how many messages of the conversation match it: all of the fold's messages, or fewer when the newest ones differ. */
export type FoundFold = { readonly fold: Fold; readonly matched: number };

export type FoundFolds = {
  /** The folds of this prefix chain, newest first. The first one of this very conversation is the one to continue from. */
  readonly folds: readonly FoundFold[];
  /** Set when this very request was sent before, with the first of `folds`: the token limit it had then. */
  readonly sentAs: { readonly limit: number | undefined } | undefined;
  /** The longest prefix that was sent as a request of its own, and when, if that is known. */
  readonly lastSent?: { readonly matched: number; readonly at: number | undefined } | undefined;
};

/** The fold was recorded; or another instance already sent this request, and it must be sent again with `alreadySent`. */
export type Recorded = 'recorded' | { readonly alreadySent: FoundFolds };

/**
 * Says which record counts when another instance has sent the same request.
 * - `this fold` replaces what the other one recorded.
 * - `this fold, even unstored`: and this process uses it although the store may not accept it.
 * - `another fold`: a fold of the other instance. This fold replaces a record that the request was sent without a fold of its own.
 * - `any record` of the other instance.
 */
export type Winner = 'this fold' | 'this fold, even unstored' | 'another fold' | 'any record';

type RecordOptions = {
  /** The shortest prefix, in messages, under which the fold must be found. Default: only the whole conversation. */
  readonly from?: number;
  /** Default: `this fold`. */
  readonly wins?: Winner;
  /** Writes the record to the store, together with the originals it depends on. By default the record is written alone. */
  readonly write?: Write;
};

/** Writes a record. Returns undefined; or, with nothing written, the record found under one of the keys in `unless`. */
export type Write = (record: Sealed) => Promise<FirstSealed | undefined>;

export interface FoldStore {
  /** Finds folds. `links[j]` is the hash of the first j messages as the client sent them. At most one round trip. Rejects with `store-failed`. */
  find(tenant: string, links: readonly string[]): Promise<FoundFolds>;
  /** Finds folds in this process's memory only, for when the store does not answer. */
  findHere(tenant: string, links: readonly string[]): FoundFolds;
  /**
   * Records a fold made on the whole conversation, also under its last few prefixes, so that clients which rewrite their newest messages
   * find it. Rejects with `store-failed`.
   */
  record(
    tenant: string,
    links: readonly string[],
    fold: Omit<Fold, 'length' | 'id'>,
    options?: RecordOptions,
  ): Promise<Recorded>;
  /** Returns what is known now if an equal request of this process has recorded a fold meanwhile. Then this one must be sent with it, too. */
  recordedMeanwhile(tenant: string, links: readonly string[]): FoundFolds | undefined;
  /** Records that this request is sent with the found fold. Rejects with `store-failed`, but this process remembers it. */
  markSent(
    tenant: string,
    links: readonly string[],
    found: FoundFold | undefined,
    options: Pick<Fold, 'at' | 'limit'> & { readonly write?: Write },
  ): Promise<void>;
  /** Extends the retention of a fold that a request was sent with, and of its originals. Returns at once. */
  renew(
    tenant: string,
    links: readonly string[],
    found: FoundFold,
    originals: (edits: readonly Edit[]) => readonly string[],
  ): void;
}
