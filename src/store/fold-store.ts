/**
 * Where folds are kept, by prefix: the same conversation prefix finds the same edits in every later request, across restarts and
 * across instances. A fold is found by the links of the chain it was made on, so no session id is needed. Of a request that made none
 * it is kept for a day which one it was sent with: whoever serves what follows goes on from there.
 */
import { LRUCache } from 'lru-cache';
import type { Edit } from '../conversation/edit.ts';
import { sha256 } from './digest.ts';
import type { FirstSealed, Sealed, EncryptedStore } from './encrypted-store.ts';
import { decodeRecord, encodeRecord } from './versioned-record.ts';

/** A recorded set of edits over the first `length` messages, complete: it holds those of the folds before it too. */
export type Fold = {
  /** Of the conversation as its client sent it. */
  readonly length: number;
  readonly edits: readonly Edit[];
  /** The provider refused this conversation with edits and took it without: it is not folded for a while. */
  readonly alone: boolean;
  /** When the provider did so, in milliseconds since the epoch; undefined when it did not, or nobody knows. */
  readonly aloneSince?: number | undefined;
  /** The store does not have this fold: it failed or did not answer when the request had to be sent. Never written to a store. */
  readonly isUnsaved?: boolean | undefined;
  /** What the edits name places in; undefined where there are none. */
  readonly over?: Prefix | undefined;
  /** Index of the first message whose results were made smaller at birth; undefined where that need not be remembered. */
  readonly shrinksFrom?: number | undefined;
  /** When the request was sent that it was made for, in milliseconds since the epoch. */
  readonly at?: number | undefined;
  /** Tokens that the request it was made for could take; undefined where nobody asked. */
  readonly limit?: number | undefined;
  /** Tells it from others. */
  readonly id: string;
};

/** So many messages of a conversation with what its model recalled in private, by the link that stands for them. */
export type Prefix = { readonly messages: number; readonly link: string };

/** A fold and how many messages of the conversation are those it was made on: all of its own, or fewer where the newest differ. */
export type FoundFold = { readonly fold: Fold; readonly matched: number };

export type FoundFolds = {
  /** Those that hold for the chain, the newest first: the first that is of this very conversation is the one to go on from. */
  readonly folds: readonly FoundFold[];
  /** This very request was sent before, with that fold, when it could take so many tokens. */
  readonly settled: { readonly limit: number | undefined } | undefined;
  /** The longest part of it that was a request of its own, and when that was sent, where it is known. */
  readonly sent?: { readonly matched: number; readonly at: number | undefined } | undefined;
};

/** What another instance has sent meanwhile stands: `settled` is what is to be sent. */
export type Recorded = 'recorded' | { readonly settled: FoundFolds };

export type RecordOptions = {
  /** Messages that it must be found behind, at least; default: it is found by the whole chain alone. */
  readonly from?: number;
  /**
   * What of the same request, by another instance, it gives way to: a fold, or whatever it was sent with. Default: nothing, it takes the
   * place of what was there.
   */
  readonly givesWayTo?: 'folds' | 'all';
  /** Whether this process goes on from it even where the store does not take it. Only for what gives way to nothing. Default false. */
  readonly knownHere?: boolean;
  /** Puts it into the store, with what it must not stand there without. By default it stands alone. */
  readonly write?: Write;
};

/** Undefined; or, with nothing written, what stands under one of the keys in `unless`. */
export type Write = (record: Sealed) => Promise<FirstSealed | undefined>;

export interface FoldStore {
  /** `links[j]` stands for the first j messages as the client sent them. One round trip at most. Rejects with `store-failed`. */
  find(tenant: string, links: readonly string[]): Promise<FoundFolds>;
  /** The same from the memory of this process alone, for when the store does not answer. */
  findHere(tenant: string, links: readonly string[]): FoundFolds;
  /**
   * Keeps a fold made on the whole chain; also under the last few links, so that clients which rewrite their newest messages find it.
   * Rejects with `store-failed`.
   */
  record(
    tenant: string,
    links: readonly string[],
    fold: Omit<Fold, 'length' | 'id'>,
    options?: RecordOptions,
  ): Promise<Recorded>;
  /** Keeps that this request is sent with what was found, without a fold of its own. Rejects with `store-failed`, but knows it here. */
  settle(
    tenant: string,
    links: readonly string[],
    found: FoundFold | undefined,
    options: Pick<Fold, 'at' | 'limit'> & { readonly write?: Write },
  ): Promise<void>;
  /** A request goes out with this fold: it is kept for as long again, and so are its originals. Returns at once. */
  renew(
    tenant: string,
    links: readonly string[],
    found: FoundFold,
    originals: (edits: readonly Edit[]) => readonly string[],
  ): void;
}

type FoldStoreOptions = {
  readonly encryptedStore: Pick<EncryptedStore, 'keep' | 'getSealedMany' | 'getSealedFirst' | 'renewSealed'>;
  /** How long a fold is kept after it was last used, in milliseconds. Default 30 days. */
  readonly ttlMs?: number | undefined;
};

/** How long it is known what a request without a fold was sent with. No provider's cache lives so long. */
const settledMs = 24 * 60 * 60 * 1_000;

/** Links a fold is recorded under at most: enough for a newest message or two that the client rewrites. */
const mostLinks = 8;

/**
 * The newest links, all of which are asked for; a conversation that goes on finds its fold among them. Of those before only the newest
 * that has a fold is: a process that meets a long conversation anew would be sent all of its folds.
 */
const newestLinks = 64;

/** A request sent with a fold of others, by the link that is kept under; or with none. */
type SentWith = Pick<Fold, 'at' | 'limit'> & {
  readonly with?: { readonly matched: number; readonly id: string } | undefined;
};

/** What this process knows of a link. Where there is nothing in the store, nothing. */
type KnownLink = {
  /** The one made on this very chain. */
  readonly fold?: Fold | undefined;
  readonly settled?: SentWith | undefined;
  /** One made on a chain that goes on from here. */
  readonly near?: Fold | undefined;
};

/** A fold store behind an encrypted store. What this process learns of links is remembered, bounded, so a turn that goes on asks for a few. */
export function createFoldStore({
  encryptedStore,
  ttlMs = 30 * 24 * 60 * 60 * 1_000,
}: FoldStoreOptions): FoldStore {
  const known = new LRUCache<string, KnownLink>({
    maxSize: 400_000,
    sizeCalculation: ({ fold, near }) => 1 + (fold?.edits.length ?? 0) + (near?.edits.length ?? 0),
  });
  /** Folds that this process goes on from although the store has not taken them (yet). */
  const unsaved = new WeakSet<Fold>();
  const writeAlone =
    (tenant: string): Write =>
    (record) =>
      encryptedStore.keep(tenant, [], record);

  return {
    async find(tenant, links) {
      await learn(tenant, links);
      return decide(tenant, links);
    },
    findHere: (tenant, links) => decide(tenant, links, 'unknown links are skipped'),
    async record(tenant, links, made, options = {}) {
      const length = links.length - 1;
      const { from = length, givesWayTo, knownHere = false, write = writeAlone(tenant) } = options;
      const content = encodeRecord({ length, ...made });
      const fold: Fold = { length, ...made, id: sha256(content) };
      const link = links[length]!;
      const near = links.slice(Math.max(from, length - mostLinks + 1, 1), length);
      // Before anything can fail, or hang.
      if (knownHere) {
        unsaved.add(fold);
        learned(tenant, link, { fold });
      }
      const inTheWay = await write({
        keys: [keyOf.fold(link), ...near.map(keyOf.near)],
        content: encodeRecord(fold),
        ttlMs,
        unless: [
          ...(givesWayTo ? [keyOf.fold(link)] : []),
          ...(givesWayTo === 'all' ? [keyOf.settled(link)] : []),
        ],
      });
      if (inTheWay) {
        const [kind, parse] =
          inTheWay.at === 0 ? (['fold', parseFold] as const) : (['settled', parseSettled] as const);
        learned(tenant, link, { [kind]: parse(inTheWay.content) });
        const found = decide(tenant, links);
        return { settled: { ...found, settled: found.settled ?? { limit: undefined } } };
      }
      unsaved.delete(fold);
      learned(tenant, link, { fold });
      for (const other of near) learned(tenant, other, { near: fold });
      return 'recorded';
    },
    async settle(tenant, links, found, { write = writeAlone(tenant), ...sent }) {
      const link = links.at(-1)!;
      const unless = [keyOf.fold(link), keyOf.settled(link)];
      if (found && isOfAnother(found, tenant, links)) {
        const fold: Fold = { ...found.fold, ...sent };
        learned(tenant, link, { fold });
        await write({ keys: [keyOf.fold(link)], content: encodeRecord(fold), ttlMs, unless });
        return;
      }
      const settled: SentWith = { with: found && { matched: found.matched, id: found.fold.id }, ...sent };
      learned(tenant, link, { settled });
      const record = { keys: [keyOf.settled(link)], content: encodeRecord(settled), ttlMs: settledMs };
      await write({ ...record, unless });
    },
    renew(tenant, links, { fold, matched }, originals) {
      const kind = matched < fold.length ? 'near' : 'fold';
      encryptedStore.renewSealed(tenant, keyOf[kind](links[matched]!), ttlMs, {
        writtenAt: fold.at,
        // Those that it may have been recorded under besides, as far as they are of this conversation.
        along: () =>
          links
            .slice(Math.max(matched - mostLinks + 1, 1), matched + 1)
            .flatMap((link) => [keyOf.fold(link), keyOf.near(link)]),
        originals: () => originals(fold.edits),
      });
    },
  };

  /**
   * Whether a branch takes over the fold of another, whose next one may take its place where both find it: then it is kept as its own. Not
   * for a client that rewrites its newest messages, of which no request is ever the beginning of another: it takes over its own.
   */
  function isOfAnother({ fold, matched }: FoundFold, tenant: string, links: readonly string[]): boolean {
    return matched < fold.length && decide(tenant, links).sent !== undefined;
  }

  function decide(
    tenant: string,
    links: readonly string[],
    mode: 'all links are known' | 'unknown links are skipped' = 'all links are known',
  ): FoundFolds {
    const length = links.length - 1;
    const folds: FoundFold[] = [];
    const later = new Set<string>();
    let sent: FoundFolds['sent'];
    let settled: FoundFolds['settled'];
    for (let matched = length; matched > 0; matched--) {
      const here = known.get(keyIn(tenant, links[matched]!));
      // The store could not be asked for it.
      if (here === undefined && mode === 'unknown links are skipped') continue;
      // Further back nobody looked, or need look.
      if (here === undefined || (folds.length > 0 && matched <= length - newestLinks)) break;
      const { fold, near } = here;
      // A request that ends there was sent before that fold was made, and must be sent so again.
      if (near && matched === length) later.add(near.id);
      else if (near && !later.has(near.id)) folds.push({ fold: near, matched });
      if (fold) folds.push({ fold, matched });
      const before = fold ? undefined : here.settled;
      const its = before?.with && madeBefore(tenant, links, before.with);
      if (its) folds.push(its);
      const isKnown =
        fold !== undefined || (before !== undefined && (its !== undefined) === (before.with !== undefined));
      const request = fold ?? before;
      if (request) sent ??= { matched, at: request.at };
      if (isKnown && matched === length) settled = { limit: request?.limit };
      if (isKnown && !fold && !its) break;
    }
    return { folds, settled, sent };
  }

  function madeBefore(
    tenant: string,
    links: readonly string[],
    { matched, id }: { readonly matched: number; readonly id: string },
  ): FoundFold | undefined {
    const here = known.get(keyIn(tenant, links[matched] ?? ''));
    const fold = [here?.fold, here?.near].find((one) => one?.id === id);
    return fold && { fold, matched };
  }

  /** Asks the store for what this process does not know of these links, back to the newest that it knows was sent. */
  async function learn(tenant: string, links: readonly string[]): Promise<void> {
    const wanted = wantedOf(tenant, links);
    const newest = wanted.filter((at) => at >= links.length - newestLinks).map((at) => links[at]!);
    const older = wanted.slice(newest.length).map((at) => links[at]!);
    // Started at once, so that both are one round trip.
    const [records, first] = await Promise.all([
      newest.length > 0
        ? encryptedStore.getSealedMany(
            tenant,
            newest.flatMap((link) => kinds.map((kind) => keyOf[kind](link))),
          )
        : [],
      older.length > 0
        ? encryptedStore.getSealedFirst(
            tenant,
            older.flatMap((link) => [keyOf.near(link), keyOf.fold(link)]),
          )
        : undefined,
    ]);
    for (const [order, link] of newest.entries()) {
      const [fold, settled, near] = records.slice(order * kinds.length);
      const here = known.get(keyIn(tenant, link))?.fold;
      learned(tenant, link, {
        fold: here && unsaved.has(here) ? here : parseFold(fold),
        settled: parseSettled(settled),
        near: parseFold(near),
      });
    }
    const place = first ? Math.floor(first.at / 2) : older.length;
    for (const link of older.slice(0, place)) learned(tenant, link, {});
    if (first)
      learned(tenant, older[place]!, { [first.at % 2 === 0 ? 'near' : 'fold']: parseFold(first.content) });
  }

  /**
   * Another instance may have sent it otherwise since: the newest that is known to have been sent is asked for again; so is the newest that
   * is known at all, for what was only the beginning of a request may have been one by itself in between.
   */
  function wantedOf(tenant: string, links: readonly string[]): readonly number[] {
    const wanted: number[] = [];
    let isNewest = true;
    for (let at = links.length - 1; at > 0; at--) {
      const here = known.get(keyIn(tenant, links[at]!));
      const wasSent = here?.fold !== undefined || here?.settled !== undefined;
      if (here === undefined || wasSent || isNewest) wanted.push(at);
      if (here !== undefined) isNewest = false;
      if (wasSent) break;
    }
    return wanted;
  }

  /** What is known besides stays. */
  function learned(tenant: string, link: string, news: KnownLink): void {
    const place = keyIn(tenant, link);
    const before = known.get(place);
    const { fold = before?.fold, settled = before?.settled, near = before?.near } = news;
    known.set(place, { fold, settled, near });
  }
}

const kinds = ['fold', 'settled', 'near'] as const;

const keyOf = {
  fold: (link: string) => `fold/${link}`,
  settled: (link: string) => `sent/${link}`,
  near: (link: string) => `near/${link}`,
};

function keyIn(tenant: string, link: string): string {
  return `${tenant}/${link}`;
}

function parseFold(record: Uint8Array | undefined): Fold | undefined {
  return record && (decodeRecord(record, 'A fold') as Fold | undefined);
}

function parseSettled(record: Uint8Array | undefined): SentWith | undefined {
  return record && (decodeRecord(record, 'What was sent') as SentWith | undefined);
}
