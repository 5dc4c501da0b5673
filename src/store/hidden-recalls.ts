/**
 * Stores hidden recalls by the prefix that the model replied to, so that any instance finds them when a client sends that reply
 * back. No session id is needed, and branches cannot mix. Also remembers how to continue replies that
 * the provider stores.
 */
import { type Caches, createCaches } from '../caches.ts';
import type { HiddenRecall, KeptReply, RecallAnswer } from '../conversation/conversation.ts';
import type { Clock } from './store.ts';
import { type EncryptedStore, sha256 } from './encrypted-store.ts';
import { openSlices } from '../conversation/steps.ts';
import { decodeRecord, encodeRecord } from './records.ts';

export interface HiddenRecalls {
  /**
   * Finds the replies of a conversation that have hidden recalls, the newest recall of each reply first; none for most conversations. Reads
   * no more replies than needed. Renews the expiry of what it finds. Rejects with `store-failed`.
   */
  find<R extends Reply>(tenant: string, newestFirst: Iterable<R>): Promise<readonly FoundRecalls<R>[]>;
  /** Finds hidden recalls in this process's memory only, for when the store does not answer. */
  findHere<R extends Reply>(tenant: string, newestFirst: Iterable<R>): readonly FoundRecalls<R>[];
  /** Stores a hidden recall of a reply to the prefix with hash `link`. Rejects with `store-failed`, but this process remembers it. */
  record(tenant: string, link: string, recall: HiddenRecall): Promise<void>;
}

/** A reply as the client sends it back: the hash of the prefix before it, and the hash of the prefix that ends with it. */
export type Reply = { readonly before: string; readonly through: string };

export type FoundRecalls<R extends Reply> = { readonly reply: R; readonly turns: readonly HiddenRecall[] };

type HiddenRecallsOptions = {
  readonly encryptedStore: Pick<EncryptedStore, 'keep' | 'getSealedMany' | 'renewSealed' | 'writesByOthers'>;
  /** How long a hidden recall is kept after it was last put back, in milliseconds. Default 30 days. */
  readonly ttlMs?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly caches?: Caches | undefined;
};

/** The number of hidden recalls stored for one prefix: a client may retry a request and continue from any of the replies. */
const maxTurns = 4;

/**
 * The number of newest replies that are looked up again if they had no recall and another process uses the store. It may have answered one of
 * them, and its write may have taken longer than its client.
 */
const lateReplies = 2;

/** The number of versions of one prefix's record. Further versions are only remembered in this process. */
const maxVersions = 16;

/** Creates the store of hidden recalls. It remembers a bounded number in memory, so an ongoing conversation reads only its newest reply. */
export function createHiddenRecalls({
  encryptedStore,
  ttlMs = 30 * 24 * 60 * 60 * 1_000,
  clock = Date.now,
  caches = createCaches(),
}: HiddenRecallsOptions): HiddenRecalls {
  // By the hash of the prefix that ends with the reply: another instance may later record recalls of another reply to the same prefix.
  const known = caches<readonly HiddenRecall[]>('stored recalls', bytesHeld);
  const made = caches<readonly HiddenRecall[]>('own recalls', bytesHeld);
  // By the same hash: the value of `records` when neither this reply nor any before it had a recall.
  const without = caches<number>('replies without recalls');
  let records = 0;

  return {
    async find<R extends Reply>(tenant: string, newestFirst: Iterable<R>) {
      const now = records;
      const met: { readonly reply: R; readonly key: string; turns: readonly HiddenRecall[] | undefined }[] =
        [];
      const slices = openSlices();
      const mayBeLate = encryptedStore.writesByOthers() === undefined;
      for (const reply of newestFirst) {
        if (slices.isOver()) await slices.pause();
        const key = keyIn(tenant, reply.through);
        const looksAgain = mayBeLate && met.length < lateReplies;
        if (!looksAgain && without.get(key) === now) break;
        const here = known.get(key);
        const turns = looksAgain && here?.length === 0 ? undefined : here;
        // A client that disconnected may return before its reply was recorded, so an empty result is checked again.
        const late = turns?.length === 0 ? made.get(keyIn(tenant, reply.before)) : undefined;
        met.push({ reply, key, turns: late ?? turns });
      }
      const unknown = met.filter(({ turns }) => turns === undefined);
      if (unknown.length > 0) {
        const kept = await encryptedStore.getSealedMany(
          tenant,
          unknown.map(({ reply }) => keyOf(reply.before)),
        );
        for (const [at, one] of unknown.entries()) {
          const stored = parseTurns(kept[at]);
          one.turns = merged(made.get(keyIn(tenant, one.reply.before)), stored?.turns);
          known.set(one.key, one.turns);
          if (slices.isOver()) await slices.pause();
          if (stored) renew(tenant, one.reply.before, stored.at);
        }
      }
      const oldest = met.findLastIndex(({ turns = [] }) => turns.length > 0);
      // Those up to a recall that another process stored late were counted as without recalls.
      if (mayBeLate) for (const { key } of met.slice(0, oldest + 1)) without.delete(key);
      for (const { key } of met.slice(oldest + 1)) {
        without.set(key, now);
        if (slices.isOver()) await slices.pause();
      }
      for (const { reply, turns = [] } of met) if (turns.length > 0) renew(tenant, reply.before);
      return met.flatMap(({ reply, turns = [] }) => (turns.length > 0 ? [{ reply, turns }] : []));
    },
    findHere<R extends Reply>(tenant: string, newestFirst: Iterable<R>) {
      return [...newestFirst].flatMap((reply): FoundRecalls<R>[] => {
        const recorded = made.get(keyIn(tenant, reply.before));
        const found = known.get(keyIn(tenant, reply.through));
        const turns = found && found.length > 0 ? found : recorded;
        return turns ? [{ reply, turns }] : [];
      });
    },
    async record(tenant, link, recall) {
      records++;
      const place = keyIn(tenant, link);
      const mine = merged([recall], made.get(place));
      // First, because the write may fail: this process uses the recall although the store does not have it.
      made.set(place, mine);
      await add(tenant, link, mine);
    },
  };

  /** Renews a record with the keys of its versions: a later version must find the earlier ones. */
  function renew(tenant: string, link: string, writtenAt?: number): void {
    const versions = () => Array.from({ length: maxVersions }, (_, at) => versionKey(link, at + 1));
    encryptedStore.renewSealed(tenant, keyOf(link), ttlMs, { writtenAt, along: versions });
  }

  /**
   * Writes the recalls of a prefix. Other instances may write to the same prefix at the same time, so each version is written once, and the
   * next version includes the recalls of the one before.
   */
  async function add(tenant: string, link: string, mine: readonly HiddenRecall[]): Promise<void> {
    let turns = mine;
    for (let version = 1; version <= maxVersions; version++) {
      const key = versionKey(link, version);
      const existing = await encryptedStore.keep(tenant, [], {
        keys: [keyOf(link), key],
        content: bytesOf(turns, clock()),
        ttlMs,
        unless: [key],
      });
      if (existing === undefined) return;
      turns = merged(mine, parseTurns(existing.content)?.turns);
    }
  }
}

/** Merges two lists, newest first, without duplicates. The place of a recall in `older`, which all instances share, wins. */
function merged(
  newer: readonly HiddenRecall[] | undefined = [],
  older: readonly HiddenRecall[] | undefined = [],
): readonly HiddenRecall[] {
  if (newer.length === 0 || older.length === 0) return older.length === 0 ? newer : older;
  const stored = new Set(older.map((turn) => JSON.stringify(storedOf(turn))));
  const fresh = newer.filter((turn) => !stored.has(JSON.stringify(storedOf(turn))));
  return [...fresh, ...older].slice(0, maxTurns);
}

function bytesHeld(turns: readonly HiddenRecall[]): number {
  const bytes = turns.flatMap(({ rounds, closing }) => [
    closing?.length ?? 0,
    ...rounds.flatMap(({ turn, answers }) => [turn.length, ...answers.map(bytesOfAnswer)]),
  ]);
  return bytes.reduce((sum, length) => sum + length, 0);
}

function bytesOfAnswer({ text, media = [] }: RecallAnswer): number {
  return media.reduce((sum, { json }) => sum + json.length, text.length);
}

function keyIn(tenant: string, link: string): string {
  return `${tenant}/${link}`;
}

function keyOf(link: string): string {
  return `ghost/${link}`;
}

function versionKey(link: string, version: number): string {
  return `${keyOf(link)}/${version}`;
}

/** The record in the store. Turns are stored as JSON texts, because their bytes are sent again unchanged. */
type StoredRecalls = {
  readonly turns: readonly StoredRecall[];
  /** When the record was written, in milliseconds since the epoch. Earlier releases did not write it. */
  readonly at?: number;
};

type StoredRecall = {
  readonly rounds: readonly {
    readonly turn: string;
    readonly answers: HiddenRecall['rounds'][0]['answers'];
    readonly hidesText?: true | undefined;
  }[];
  readonly closing?: string;
};

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function bytesOf(turns: readonly HiddenRecall[], at: number): Uint8Array {
  const stored: StoredRecalls = { turns: turns.map(storedOf), at };
  return encodeRecord(stored);
}

function storedOf({ rounds, closing }: HiddenRecall): StoredRecall {
  return {
    rounds: rounds.map((round) => ({ ...round, turn: decoder.decode(round.turn) })),
    ...(closing ? { closing: decoder.decode(closing) } : {}),
  };
}

function parseTurns(
  record: Uint8Array | undefined,
): { readonly turns: readonly HiddenRecall[]; readonly at: number | undefined } | undefined {
  const stored = record && (decodeRecord(record, 'A hidden recall') as StoredRecalls | undefined);
  const turns = stored?.turns.map(({ rounds, closing }) => ({
    rounds: rounds.map((round) => ({ ...round, turn: encoder.encode(round.turn) })),
    closing: closing === undefined ? undefined : encoder.encode(closing),
  }));
  return turns && { turns, at: stored?.at };
}

// Kept replies: how to continue a reply that the provider stores, by the response id that the client knows. The stored reply may
// end with a private call that must be answered first.

export interface KeptReplies {
  /** Returns the reply that this process remembers, without reading the store. */
  known(tenant: string, knownAs: string): KeptReply | undefined;
  /**
   * Finds a reply and renews its expiry. Undefined for most replies: they can be continued as they are. Rejects with `store-failed`.
   */
  find(tenant: string, knownAs: string): Promise<KeptReply | undefined>;
  /** Stores a reply. Rejects with `store-failed`, but this process remembers the reply. */
  record(tenant: string, knownAs: string, reply: KeptReply): Promise<void>;
}

type KeptRepliesOptions = {
  readonly encryptedStore: Pick<EncryptedStore, 'putSealed' | 'getSealedMany' | 'renewSealed'>;
  /** How long a reply is kept after it was last continued, in milliseconds. Default 30 days. */
  readonly ttlMs?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly caches?: Caches | undefined;
};

/** The format on disk. `at`: when the record was written, in milliseconds since the epoch; earlier releases did not write it. */
type StoredReply = {
  readonly name: string;
  readonly owed: KeptReply['pendingAnswers'];
  readonly at?: number;
};

/** Creates the store of kept replies. It remembers a bounded number in memory, so it also works while the store is down. */
export function createKeptReplies({
  encryptedStore,
  ttlMs = 30 * 24 * 60 * 60 * 1_000,
  clock = Date.now,
  caches = createCaches(),
}: KeptRepliesOptions): KeptReplies {
  const known = caches<KeptReply>('kept replies', ({ pendingAnswers }) =>
    pendingAnswers.reduce((sum, answer) => sum + bytesOfAnswer(answer), 0),
  );

  function findHere(tenant: string, knownAs: string): KeptReply | undefined {
    const here = known.get(`${tenant}/${knownAs}`);
    if (here) encryptedStore.renewSealed(tenant, replyKey(knownAs), ttlMs);
    return here;
  }

  return {
    known: findHere,
    async find(tenant, knownAs) {
      const here = findHere(tenant, knownAs);
      if (here) return here;
      const [record] = await encryptedStore.getSealedMany(tenant, [replyKey(knownAs)]);
      const stored = record && (decodeRecord(record, 'A kept reply') as StoredReply | undefined);
      if (!stored) return undefined;
      const { at, name, owed: pendingAnswers } = stored;
      const reply = { name, pendingAnswers };
      known.set(`${tenant}/${knownAs}`, reply);
      encryptedStore.renewSealed(tenant, replyKey(knownAs), ttlMs, { writtenAt: at });
      return reply;
    },
    async record(tenant, knownAs, reply) {
      // This process remembers the reply even if the store fails.
      known.set(`${tenant}/${knownAs}`, reply);
      const stored: StoredReply = { name: reply.name, owed: reply.pendingAnswers, at: clock() };
      const content = encodeRecord(stored);
      await encryptedStore.putSealed(tenant, [replyKey(knownAs)], content, ttlMs);
    },
  };
}

/** Returns the key of a reply. It is a hash, because names come from outside and keys are stored in clear. */
function replyKey(knownAs: string): string {
  return `kept/${sha256(new TextEncoder().encode(knownAs))}`;
}
