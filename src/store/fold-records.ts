/** Records of folds: a fold, and the fold that a request was sent with; their keys and their format on disk. */
import type { Edit } from '../conversation/edit.ts';
import { decodeRecord, encodeRecord } from './sealing.ts';

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
  /** When the request was sent that this fold was made for, in milliseconds since the epoch. */
  readonly at?: number | undefined;
  /** Token limit of the request that this fold was made for; undefined when it had none. */
  readonly limit?: number | undefined;
  /** A digest of the fold that identifies it. */
  readonly id: string;
};

/** A prefix of a conversation, hidden recalls included: how many messages it has, and its hash. */
type Prefix = { readonly messages: number; readonly link: string };

/** Says which fold a request without a fold of its own was sent with, or that it was sent without any. */
export type SentWith = Pick<Fold, 'at' | 'limit'> & {
  readonly with?: { readonly matched: number; readonly id: string } | undefined;
};

export const foldKeys = {
  fold: (link: string) => `fold/${link}`,
  sentWith: (link: string) => `sent/${link}`,
  prefixFold: (link: string) => `near/${link}`,
};

/** Fields that records on disk call by an older name. */
const namesOnDisk: readonly (readonly [name: keyof Fold, onDisk: string])[] = [
  ['foldingDisabled', 'alone'],
  ['foldingDisabledSince', 'aloneSince'],
];

/** Encodes a fold, with or without its id. Fields keep their order, since the id is a digest of the bytes. */
export function encodeFold(fold: Omit<Fold, 'id'>): Uint8Array {
  return encodeRecord(renamed(fold, new Map<string, string>(namesOnDisk)));
}

/** Reads a fold; undefined if it is missing or of a later version. Returns `here` if it is the same fold, for what others remember of it. */
export function parseFold(record: Uint8Array | undefined, here?: Fold): Fold | undefined {
  const stored = record && (decodeRecord(record, 'A fold') as object | undefined);
  if (stored === undefined) return undefined;
  const fold = renamed(stored, new Map(namesOnDisk.map(([name, onDisk]) => [onDisk, name]))) as Fold;
  return fold.id === here?.id ? here : fold;
}

function renamed(record: object, names: ReadonlyMap<string, string>): object {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [names.get(name) ?? name, value]));
}

/** Reads the record of a sent request; undefined for one that is missing or of a later version. */
export function parseSentWith(record: Uint8Array | undefined): SentWith | undefined {
  return record && (decodeRecord(record, 'The record of a sent request') as SentWith | undefined);
}
