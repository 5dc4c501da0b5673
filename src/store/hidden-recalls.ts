/**
 * Where ghost turns are kept: by the prefix the model replied to, so that any instance finds what was recalled for a reply once a
 * client sends that reply back. No session id is needed, and branches cannot mix.
 */
import { LRUCache } from 'lru-cache';
import type { HiddenRecall } from '../conversation/hidden-recall.ts';
import type { Clock } from './store.ts';
import type { EncryptedStore } from './encrypted-store.ts';
import { decodeRecord, encodeRecord } from './versioned-record.ts';

export interface HiddenRecalls {
  /**
   * The replies of one conversation for which something was recalled, with that, the newest turn first; none for most conversations.
   * No more of them are looked at than need be. What is found is kept for as long again. Rejects with `store-failed`.
   */
  find<R extends Reply>(tenant: string, newestFirst: Iterable<R>): Promise<readonly FoundRecalls<R>[]>;
  /** The same from the memory of this process alone, for when the store does not answer. */
  findHere<R extends Reply>(tenant: string, newestFirst: Iterable<R>): readonly FoundRecalls<R>[];
  /** Keeps what was recalled for a reply to the prefix `link` stands for. Rejects with `store-failed`, but remembers it here. */
  record(tenant: string, link: string, ghost: HiddenRecall): Promise<void>;
}

/** A reply in a client's copy: the link of the prefix before it, and the one behind the whole copy. */
export type Reply = { readonly before: string; readonly through: string };

export type FoundRecalls<R extends Reply> = { readonly reply: R; readonly turns: readonly HiddenRecall[] };

type HiddenRecallsOptions = {
  readonly encryptedStore: Pick<EncryptedStore, 'keep' | 'getSealedMany' | 'renewSealed'>;
  /** How long a ghost turn is kept after it was last put back, in milliseconds. Default 30 days. */
  readonly ttlMs?: number | undefined;
  readonly clock?: Clock | undefined;
};

/** Replies to one prefix that are told apart: a client may ask again, and go on from any of them. */
const mostTurns = 4;

/** Further ones are remembered here alone. */
const mostVersions = 16;

/** Behind an encrypted store. What this process learns is remembered, bounded, so that a turn that goes on asks for its newest reply alone. */
export function createHiddenRecalls({
  encryptedStore,
  ttlMs = 30 * 24 * 60 * 60 * 1_000,
  clock = Date.now,
}: HiddenRecallsOptions): HiddenRecalls {
  // By the link behind the copy: another reply to the same prefix may have been recalled for later, by another instance.
  const known = new LRUCache<string, readonly HiddenRecall[]>({ maxSize: 64 * 1024 * 1024, sizeCalculation });
  const made = new LRUCache<string, readonly HiddenRecall[]>({ maxSize: 64 * 1024 * 1024, sizeCalculation });
  // By the same link: how many records there were when nothing was recalled for this reply nor for any before it.
  const without = new LRUCache<string, number>({ maxSize: 400_000, sizeCalculation: () => 1 });
  let records = 0;

  return {
    async find<R extends Reply>(tenant: string, newestFirst: Iterable<R>) {
      const now = records;
      const met: { readonly reply: R; readonly key: string; turns: readonly HiddenRecall[] | undefined }[] =
        [];
      for (const reply of newestFirst) {
        const key = keyIn(tenant, reply.through);
        if (without.get(key) === now) break;
        const turns = known.get(key);
        // A client that left may be back before its reply was recorded: none then is not none for ever.
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
          if (stored) renew(tenant, one.reply.before, stored.at);
        }
      }
      const oldest = met.findLastIndex(({ turns = [] }) => turns.length > 0);
      for (const { key } of met.slice(oldest + 1)) without.set(key, now);
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
    async record(tenant, link, ghost) {
      records++;
      const place = keyIn(tenant, link);
      const mine = merged([ghost], made.get(place));
      // Before anything can fail: this process goes on from it although the store does not have it.
      made.set(place, mine);
      await add(tenant, link, mine);
    },
  };

  /** Its marks, too: a version that is recorded later must meet those that stand there. */
  function renew(tenant: string, link: string, writtenAt?: number): void {
    const marks = () => Array.from({ length: mostVersions }, (_, at) => markOf(link, at + 1));
    encryptedStore.renewSealed(tenant, keyOf(link), ttlMs, { writtenAt, along: marks });
  }

  /** Other instances may record for the same prefix at once: each version is written once, and the next begins with what it holds. */
  async function add(tenant: string, link: string, mine: readonly HiddenRecall[]): Promise<void> {
    let turns = mine;
    for (let version = 1; version <= mostVersions; version++) {
      const mark = markOf(link, version);
      const keys = [keyOf(link), mark];
      const there = await encryptedStore.keep(tenant, [], {
        keys,
        content: bytesOf(turns, clock()),
        ttlMs,
        unless: [mark],
      });
      if (there === undefined) return;
      turns = merged(mine, parseTurns(there.content)?.turns);
    }
  }
}

/** The newest turns, each once: of those that stand in both lists the later decides, which all instances share. */
function merged(
  newer: readonly HiddenRecall[] | undefined = [],
  older: readonly HiddenRecall[] | undefined = [],
): readonly HiddenRecall[] {
  if (newer.length === 0 || older.length === 0) return older.length === 0 ? newer : older;
  const there = new Set(older.map((turn) => JSON.stringify(storedOf(turn))));
  const fresh = newer.filter((turn) => !there.has(JSON.stringify(storedOf(turn))));
  return [...fresh, ...older].slice(0, mostTurns);
}

function sizeCalculation(turns: readonly HiddenRecall[]): number {
  const bytes = turns.flatMap(({ rounds, closing }) => [
    closing?.length ?? 0,
    ...rounds.flatMap(({ turn, answers }) => [turn.length, ...answers.map(({ text }) => text.length)]),
  ]);
  return bytes.reduce((sum, length) => sum + length, 100);
}

function keyIn(tenant: string, link: string): string {
  return `${tenant}/${link}`;
}

function keyOf(link: string): string {
  return `ghost/${link}`;
}

function markOf(link: string, version: number): string {
  return `${keyOf(link)}/${version}`;
}

/** Turns are JSON texts, kept as such: their bytes are sent again as they were. */
type StoredRecalls = {
  readonly turns: readonly StoredRecall[];
  /** When it was written, in milliseconds since the epoch. Earlier releases did not say. */
  readonly at?: number;
};

type StoredRecall = {
  readonly rounds: readonly {
    readonly turn: string;
    readonly answers: HiddenRecall['rounds'][0]['answers'];
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
    rounds: rounds.map(({ turn, answers }) => ({ turn: decoder.decode(turn), answers })),
    ...(closing ? { closing: decoder.decode(closing) } : {}),
  };
}

function parseTurns(
  record: Uint8Array | undefined,
): { readonly turns: readonly HiddenRecall[]; readonly at: number | undefined } | undefined {
  const stored = record && (decodeRecord(record, 'A ghost turn') as StoredRecalls | undefined);
  const turns = stored?.turns.map(({ rounds, closing }) => ({
    rounds: rounds.map(({ turn, answers }) => ({ turn: encoder.encode(turn), answers })),
    closing: closing === undefined ? undefined : encoder.encode(closing),
  }));
  return turns && { turns, at: stored?.at };
}
