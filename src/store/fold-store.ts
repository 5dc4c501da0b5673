/**
 * Implements the fold store (its interface is in folds.ts): records folds, remembers them, decides from what it remembers, and reads the
 * rest from the store.
 */
import { type Caches, createCaches } from '../caches.ts';
import { type EncryptedStore, sha256 } from './encrypted-store.ts';
import { nextTurn, openSlices, runInSlices, type Steps, runSteps } from '../conversation/steps.ts';
import type { Fold, FoldStore, FoundFold, FoundFolds, SentWith, Winner, Write } from './folds.ts';
import {
  encodeFold,
  encodeFoldInSteps,
  withFoldId,
  foldKeys,
  parseFold,
  parseSentWith,
  encodeRecord,
} from './records.ts';

type FoldStoreOptions = {
  readonly encryptedStore: Pick<
    EncryptedStore,
    'keep' | 'forget' | 'getSealedMany' | 'getSealedFirst' | 'renewSealed' | 'writesByOthers'
  >;
  /** How long a fold is kept after its last use, in milliseconds. Default 30 days. */
  readonly ttlMs?: number | undefined;
  readonly caches?: Caches | undefined;
};

/** How long a record of a request without a fold of its own is kept. No provider's cache lives that long. */
const sentRecordMs = 24 * 60 * 60 * 1_000;

/** The number of prefixes a fold is recorded under at most: enough for one or two newest messages that the client rewrites. */
const maxLinks = 8;

/** The number of newest prefixes that are all looked up. Among older ones only the newest with a fold is read: there may be many. */
const newestLinks = 64;

/** The number of older prefixes that one call of the store reads. */
const linksAtOnce = 2_000;

/** The records of one prefix as this process knows them; empty when the store has none. */
type KnownLink = {
  readonly tenant: string;
  /** The fold made on exactly this prefix. */
  readonly fold?: Fold | undefined;
  readonly sentWith?: SentWith | undefined;
  /** A fold made on a longer conversation that begins with this prefix. */
  readonly prefixFold?: Fold | undefined;
  /** `writesByOthers` when the records were read; undefined when other processes may write, or when not all were read. */
  readonly asOf?: number | undefined;
};

/** Creates a fold store. */
export function createFoldStore({
  encryptedStore,
  ttlMs = 30 * 24 * 60 * 60 * 1_000,
  caches = createCaches(),
}: FoldStoreOptions): FoldStore {
  const known = openKnownFolds(caches);
  const { knownOf, remember, decide, decideSent } = known;
  /** Folds that this process uses although the store has not accepted them (yet). */
  const unsaved = new WeakSet<Fold>();
  const load = readsUnknown(encryptedStore, known, unsaved);
  const writeAlone =
    (tenant: string): Write =>
    (record) =>
      encryptedStore.keep(tenant, [], record);
  return {
    async find(tenant, links) {
      await load(tenant, links);
      return runInSlices(known.decideInSteps(tenant, links), openSlices());
    },
    findHere: (tenant, links) => decide(tenant, links, 'unknown links are skipped'),
    async record(tenant, links, made, options = {}) {
      const length = links.length - 1;
      const { from = length, wins = 'this fold' } = options;
      const write: Write = options.write ?? writeAlone(tenant);
      const slices = openSlices();
      const encoded = await runInSlices(encodeFoldInSteps({ length, ...made }), slices);
      const fold: Fold = { length, ...made, id: sha256(encoded) };
      const link = links[length]!;
      const prefixes = links.slice(Math.max(from, length - maxLinks + 1, 1), length);
      // First, because the write may fail or hang.
      if (wins === 'this fold, even unstored') {
        unsaved.add(fold);
        remember(tenant, link, { fold });
      }
      const markBefore = knownOf(tenant, link)?.sentWith;
      const keys = [foldKeys.fold(link), ...prefixes.map(foldKeys.prefixFold)];
      const inTheWay = await write({
        keys,
        content: withFoldId(encoded, fold.id),
        ttlMs,
        unless: keysThatWin(wins, link),
      });
      if (inTheWay) {
        const { at, content } = inTheWay;
        const there = at === 0 ? { fold: parseFold(content) } : { sentWith: parseSentWith(content) };
        remember(tenant, link, there);
        return { alreadySent: decideSent(tenant, links) };
      }
      // An equal request was sent without the fold while the store wrote it. After a restart, no request may find the fold.
      if (wins === 'any record' && knownOf(tenant, link)?.sentWith !== markBefore) {
        await encryptedStore.forget(tenant, { sealed: keys }).catch(() => undefined);
        return { alreadySent: decideSent(tenant, links) };
      }
      unsaved.delete(fold);
      remember(tenant, link, { fold });
      for (const prefix of prefixes) remember(tenant, prefix, { prefixFold: fold });
      return 'recorded';
    },
    recordedMeanwhile: (tenant, links) =>
      knownOf(tenant, links.at(-1)!)?.fold ? decideSent(tenant, links) : undefined,
    async markSent(tenant, links, found, { write: given, ...sent }) {
      const write: Write = given ?? writeAlone(tenant);
      const link = links.at(-1)!;
      const here = knownOf(tenant, link);
      // An equal request has recorded a fold meanwhile. The first record decides.
      if (here?.fold) return;
      const unless = [foldKeys.fold(link), foldKeys.sentWith(link)];
      if (found && isOfAnotherBranch(known, found, tenant, links)) {
        const fold: Fold = { ...found.fold, ...sent };
        remember(tenant, link, { fold });
        await write({ keys: [foldKeys.fold(link)], content: encodeFold(fold), ttlMs, unless });
        return;
      }
      const sentWith: SentWith = { with: found && { matched: found.matched, id: found.fold.id }, ...sent };
      remember(tenant, link, { sentWith });
      const record = {
        keys: [foldKeys.sentWith(link)],
        content: encodeRecord(sentWith),
        ttlMs: sentRecordMs,
        isTransient: true,
      };
      // If nobody else has written since `find` read these keys, they are still empty.
      const isEmpty = isCurrentAt(encryptedStore.writesByOthers(), here);
      await write({ ...record, unless: isEmpty ? [] : unless });
    },
    renew(tenant, links, { fold, matched }, originals) {
      const kind = matched < fold.length ? 'prefixFold' : 'fold';
      encryptedStore.renewSealed(tenant, foldKeys[kind](links[matched]!), ttlMs, {
        writtenAt: fold.at,
        // The fold may also be recorded under these prefixes of the conversation.
        along: () =>
          links
            .slice(Math.max(matched - maxLinks + 1, 1), matched + 1)
            .flatMap((link) => [foldKeys.fold(link), foldKeys.prefixFold(link)]),
        originals: () => originals(fold.edits),
      });
    },
  };
}

/** Returns the keys whose records keep a fold from being recorded. */
function keysThatWin(wins: Winner, link: string): readonly string[] {
  switch (wins) {
    case 'this fold':
    case 'this fold, even unstored':
      return [];
    case 'another fold':
      return [foldKeys.fold(link)];
    case 'any record':
      return [foldKeys.fold(link), foldKeys.sentWith(link)];
  }
}

/**
 * True when this branch uses a fold that another branch made. The other branch's next fold may replace it under the shared prefixes, so
 * this branch records a copy of its own. A client that rewrites its newest messages is not a branch: none of its requests is ever a
 * prefix of another.
 */
function isOfAnotherBranch(
  { decide }: KnownFolds,
  { fold, matched }: FoundFold,
  ...prefixes: [string, readonly string[]]
): boolean {
  return matched < fold.length && decide(...prefixes).lastSent !== undefined;
}

/** The folds that this process knows, by prefix, and the decisions that need no store. */
type KnownFolds = ReturnType<typeof openKnownFolds>;

/** Opens the memory of folds. It holds a bounded number of prefixes, so an ongoing conversation reads only a few from the store. */
function openKnownFolds(caches: Caches) {
  // One fold is recorded under up to `maxLinks` prefixes, which share its edits.
  const known = caches<KnownLink>('folds', (one) =>
    [one.fold, one.prefixFold].reduce((sum, fold) => sum + (250 / maxLinks) * (fold?.edits.length ?? 0), 0),
  );

  /** Returns what is known of a prefix. This is no use in the sense of the cache, since many prefixes are looked up for one that is used. */
  function knownOf(tenant: string, link: string): KnownLink | undefined {
    const here = known.peek(link);
    return here?.tenant === tenant ? here : undefined;
  }

  /** Adds to what is known of a prefix; records that `news` does not name stay. */
  function remember(tenant: string, link: string, news: Omit<KnownLink, 'tenant'>): void {
    const before = knownOf(tenant, link);
    const { fold = before?.fold, sentWith = before?.sentWith, prefixFold = before?.prefixFold } = news;
    known.set(link, { tenant, fold, sentWith, prefixFold, asOf: news.asOf ?? before?.asOf });
  }

  /** Finds the folds of a conversation in what this process knows. */
  function decide(tenant: string, links: readonly string[], mode?: FindMode): FoundFolds {
    return runSteps(decideInSteps(tenant, links, mode));
  }

  /** Does the same for a request that is known to have been sent. */
  function decideSent(tenant: string, links: readonly string[]): FoundFolds {
    const found = decide(tenant, links);
    return { ...found, sentAs: found.sentAs ?? { limit: undefined } };
  }

  /** Decides in steps: a conversation may have very many prefixes. */
  function* decideInSteps(
    tenant: string,
    links: readonly string[],
    mode: FindMode = 'all links are known',
  ): Steps<FoundFolds> {
    const length = links.length - 1;
    const folds: FoundFold[] = [];
    const later = new Set<string>();
    let lastSent: FoundFolds['lastSent'];
    let sentAs: FoundFolds['sentAs'];
    for (let matched = length; matched > 0; matched--) {
      if (matched % 64 === 0) yield;
      const here = knownOf(tenant, links[matched]!);
      // The store could not be asked for this prefix.
      if (here === undefined && mode === 'unknown links are skipped') continue;
      // Older prefixes were not looked up, or do not matter.
      if (here === undefined || (folds.length > 0 && matched <= length - newestLinks)) break;
      const { fold, prefixFold } = here;
      // A request that ends here was sent before that fold was made, and must be sent the same way again.
      if (prefixFold && matched === length) later.add(prefixFold.id);
      else if (prefixFold && !later.has(prefixFold.id)) folds.push({ fold: prefixFold, matched });
      if (fold) folds.push({ fold, matched });
      if (fold || prefixFold) known.get(links[matched]!);
      const sentWith = fold ? undefined : here.sentWith;
      const used = sentWith?.with && foldUsed(tenant, links, sentWith.with);
      if (used) folds.push(used);
      const isKnown =
        fold !== undefined ||
        (sentWith !== undefined && (used !== undefined) === (sentWith.with !== undefined));
      const request = fold ?? sentWith;
      if (request) lastSent ??= { matched, at: request.at };
      if (isKnown && matched === length) sentAs = { limit: request?.limit };
      if (isKnown && !fold && !used) break;
    }
    return { folds, sentAs, lastSent };
  }

  /** Finds the fold that a request was sent with, by the prefix it is recorded under and its id. */
  function foldUsed(
    tenant: string,
    links: readonly string[],
    { matched, id }: { readonly matched: number; readonly id: string },
  ): FoundFold | undefined {
    const here = knownOf(tenant, links[matched] ?? '');
    const fold = [here?.fold, here?.prefixFold].find((one) => one?.id === id);
    if (!fold) return undefined;
    // It may be much older than the newest message: only this marks it as used.
    known.get(links[matched]!);
    return { fold, matched };
  }

  /**
   * Looks through what this process knows for the links to read: those that it does not know, back to the newest one that it knows was sent; and that of the
   * fold that this request was sent with, if the cache has dropped it.
   */
  function* lookInSteps(tenant: string, links: readonly string[], asOf: number | undefined) {
    const { wanted, sent } = yield* wantedOf(tenant, links, asOf);
    const recent = wanted.filter((at) => at >= links.length - newestLinks);
    const used = sent?.fold ? undefined : sent?.sentWith?.with;
    const dropped = used && !foldUsed(tenant, links, used) ? [used.matched] : [];
    return {
      older: wanted.slice(recent.length).map((at) => links[at]!),
      newest: [...recent, ...dropped].map((at) => links[at]!),
    };
  }

  /**
   * Returns the lengths of the prefixes to read, longest first, and the newest prefix that is known to have been sent. Two known prefixes are read again if
   * another instance may have written since: the newest that was sent, and the newest known one, which may have become a request of its own.
   */
  function* wantedOf(
    tenant: string,
    links: readonly string[],
    asOf: number | undefined,
  ): Steps<{ readonly wanted: readonly number[]; readonly sent: KnownLink | undefined }> {
    const wanted: number[] = [];
    let isNewest = true;
    for (let at = links.length - 1; at > 0; at--) {
      if (at % 64 === 0) yield;
      const here = knownOf(tenant, links[at]!);
      const wasSent = here?.fold !== undefined || here?.sentWith !== undefined;
      if (here === undefined || ((wasSent || isNewest) && !isCurrentAt(asOf, here))) wanted.push(at);
      if (here !== undefined) isNewest = false;
      if (wasSent) return { wanted, sent: here };
    }
    return { wanted, sent: undefined };
  }

  return { knownOf, remember, decide, decideSent, decideInSteps, lookInSteps };
}

/** Creates the function that reads from the store the prefixes that this process does not know, back to the newest one that it knows was sent. */
function readsUnknown(
  encryptedStore: FoldStoreOptions['encryptedStore'],
  { knownOf, remember, lookInSteps }: KnownFolds,
  unsaved: WeakSet<Fold>,
): (tenant: string, links: readonly string[]) => Promise<void> {
  return async function load(tenant: string, links: readonly string[]): Promise<void> {
    const asOf = encryptedStore.writesByOthers();
    const steps = lookInSteps(tenant, links, asOf);
    const isLong = links.length > linksAtOnce;
    const { older, newest } = isLong ? await runInSlices(steps, openSlices()) : runSteps(steps);
    const before = newest.map((link) => knownOf(tenant, link));
    // Both reads start at once, and usually without a pause, so that they take one round trip with those of other records.
    const keys = newest.flatMap((link) => kinds.map((kind) => foldKeys[kind](link)));
    const [records] = await Promise.all([
      keys.length > 0 ? encryptedStore.getSealedMany(tenant, keys) : [],
      loadNewestOf(tenant, older),
    ]);
    for (const [order, link] of newest.entries()) {
      const [fold, sentWith, prefixFold] = records.slice(order * kinds.length);
      const here = knownOf(tenant, link);
      const read = {
        fold: here?.fold && unsaved.has(here.fold) ? here.fold : parseFold(fold, here?.fold),
        sentWith: parseSentWith(sentWith),
        prefixFold: parseFold(prefixFold, here?.prefixFold),
      };
      // This engine may have recorded something while the store was read: that is newer, and the rest is read again next time.
      if (here === before[order]) remember(tenant, link, { ...read, asOf });
      else remember(tenant, link, { ...read, ...withoutUndefined(here) });
    }
  };

  /** Loads the first of these prefixes that has a fold. Very many are looked up piece by piece, so that other requests run in between. */
  async function loadNewestOf(tenant: string, links: readonly string[]): Promise<void> {
    for (let from = 0; from < links.length; from += linksAtOnce) {
      const piece = links.slice(from, from + linksAtOnce);
      if (from > 0) await nextTurn();
      const first = await encryptedStore.getSealedFirst(
        tenant,
        piece.flatMap((link) => [foldKeys.prefixFold(link), foldKeys.fold(link)]),
      );
      const place = first ? Math.floor(first.at / 2) : piece.length;
      for (const link of piece.slice(0, place)) remember(tenant, link, {});
      if (!first) continue;
      const kind = first.at % 2 === 0 ? 'prefixFold' : 'fold';
      return remember(tenant, piece[place]!, { [kind]: parseFold(first.content) });
    }
  }
}

const isCurrentAt = (asOf: number | undefined, here: KnownLink | undefined) =>
  asOf !== undefined && here?.asOf === asOf;

type FindMode = 'all links are known' | 'unknown links are skipped';

function withoutUndefined(here: KnownLink | undefined): Partial<KnownLink> {
  return Object.fromEntries(Object.entries(here ?? {}).filter(([, value]) => value !== undefined));
}

const kinds = ['fold', 'sentWith', 'prefixFold'] as const;
