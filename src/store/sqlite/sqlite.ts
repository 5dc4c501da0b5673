/**
 * Implements the store on disk: one SQLite file, embedded in Node, shared by any number of processes on one machine. A write that has resolved
 * survives `kill -9` and a crash of the process, but not necessarily a power cut: with `synchronous = normal` the last writes before one
 * may be missing, while the file stays intact. No timers, no threads.
 */
import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { nextTurn } from '../../conversation/steps.ts';
import { allowed, checkSettings, numberFrom, object, someText, trueOrFalse } from '../../checks.ts';
import { LeporelloError } from '../../errors.ts';
import { openDatabase, isBusy, storeFailed } from './database.ts';
import type { Clock, FirstFound, Store, StoreEntry } from '../store.ts';

export type SqliteOptions = {
  /** Path of the database; its folder is created if needed. Not on a network drive: SQLite's locks need a local disk. */
  readonly file: string;
  readonly clock?: Clock;
  /** How long a call waits for another process's lock before it fails, in milliseconds. Default 400, less than a store's deadline. */
  readonly lockWaitMs?: number;
  /**
   * True if other processes use the file from the start, or if several engines in this process use the store. Default false: it counts as shared
   * as soon as another process has written to the file.
   */
  readonly isShared?: boolean;
};

const optionsCheck = object<SqliteOptions>(
  {
    file: someText,
    clock: allowed('a function', (value) => typeof value === 'function'),
    lockWaitMs: numberFrom(0),
    isShared: trueOrFalse,
  },
  { required: ['file'] },
);

/** How long opening waits for the lock at least, in milliseconds. No request waits for it, and nothing works without it. */
const openWaitMs = 5_000;

/**
 * Opens the store. Rejects with `bad-config` for other options, and with `store-failed` if the file cannot be read. A read-only file opens: reads work and writes reject. In a
 * read-only folder, later changes by other processes are not seen.
 */
export async function sqliteStore(options: SqliteOptions): Promise<Store> {
  checkSettings(optionsCheck, options, 'sqliteStore');
  const { clock = Date.now, lockWaitMs = 400 } = options;
  const file = resolve(options.file);
  const openedBy = performance.now() + Math.max(lockWaitMs, openWaitMs);
  const database = await retryWhileLocked(file, openedBy - performance.now(), () => openDatabase(file));
  const statements = await retryWhileLocked(file, openedBy - performance.now(), () => prepare(database));
  const writes = createQueue();
  const filter = await retryWhileLocked(file, openedBy - performance.now(), () =>
    createKeyFilter(statements),
  );
  openCounts.set(file, (openCounts.get(file) ?? 0) + 1);
  let closing: Promise<void> | undefined;
  const versionAtStart = statements.dataVersion();
  let isShared = options.isShared ?? false;
  let isChecked = false;

  /** Looks once per turn of the event loop whether another process has written: a look takes 15 us, and a request asks several times. */
  function checkShared(): void {
    if (isShared || isChecked || closing !== undefined) return;
    isShared = statements.dataVersion() !== versionAtStart;
    isChecked = true;
    setImmediate(() => {
      isChecked = false;
    });
  }

  function put(entries: readonly StoreEntry[], now: number): void {
    // The keys are added first, because the filter must never miss a key of the file.
    filter.add(entries.map(({ key }) => key));
    statements.put(entries, now);
  }

  function write<T>(work: () => T): Promise<T> {
    const deadline = performance.now() + lockWaitMs;
    return writes.add(() =>
      retryWhileLocked(file, deadline - performance.now(), () => transact(database, work)),
    );
  }

  function checkOpen(): void {
    if (closing !== undefined)
      throw new LeporelloError('store-failed', `The store ${file} is closed: open it again.`);
  }

  return {
    name: 'sqlite',
    get isShared() {
      checkShared();
      return isShared;
    },
    mayHold(keys) {
      checkShared();
      // Once others write to the file, every key may be in it. Another store of this process on the file would be noticed too late.
      const isOnlyUser = closing === undefined && !isShared && openCounts.get(file) === 1;
      return !isOnlyUser || !filter.isComplete() || keys.some((key) => filter.mayHold(key));
    },
    async get(key) {
      checkOpen();
      return retryWhileLocked(file, lockWaitMs, () => statements.get(key, clock()));
    },
    async getMany(keys) {
      checkOpen();
      return retryWhileLocked(file, lockWaitMs, () => statements.getMany(keys, clock()));
    },
    async getFirst(keys) {
      checkOpen();
      return retryWhileLocked(file, lockWaitMs, () => statements.getFirst(keys, clock()));
    },
    async putMany(entries) {
      checkOpen();
      const copies = entries.map((entry) => ({ ...entry, value: new Uint8Array(entry.value) }));
      if (copies.length > 0) await write(() => put(copies, clock()));
    },
    async putUnless(guards, entries) {
      checkOpen();
      const keys = [...guards];
      const copies = entries.map((entry) => ({ ...entry, value: new Uint8Array(entry.value) }));
      return write(() => {
        const now = clock();
        const inTheWay = statements.getFirst(keys, now);
        if (inTheWay === undefined && copies.length > 0) put(copies, now);
        return inTheWay;
      });
    },
    async touch(keys, expiresAt) {
      checkOpen();
      const wanted = [...keys];
      if (wanted.length > 0) await write(() => statements.touch(wanted, expiresAt, clock()));
    },
    async delete(keys) {
      checkOpen();
      const wanted = [...keys];
      if (wanted.length > 0) await write(() => statements.delete(wanted));
    },
    close() {
      closing ??= writes.add(async () => {
        openCounts.set(file, (openCounts.get(file) ?? 1) - 1);
        await retryWhileLocked(file, lockWaitMs, () => database.close());
      });
      return closing;
    },
  };
}

type Statements = {
  get(key: string, now: number): Uint8Array | undefined;
  getMany(keys: readonly string[], now: number): readonly (Uint8Array | undefined)[];
  getFirst(keys: readonly string[], now: number): FirstFound | undefined;
  put(entries: readonly StoreEntry[], now: number): void;
  /** Returns at most `limit` keys of entries behind a row, with their rows. */
  keysAfter(row: number, limit: number): readonly { readonly row: number; readonly key: string }[];
  /** An upper bound of the number of entries. */
  lastRow(): number;
  touch(keys: readonly string[], expiresAt: number, now: number): void;
  delete(keys: readonly string[]): void;
  /** A number that changes when another connection writes to the file; undefined when it cannot be read. */
  dataVersion(): number | undefined;
};

function prepare(database: DatabaseSync): Statements {
  const alive = '(expires_at is null or expires_at > ?)';
  const one = database.prepare(`select value from entries where key = ? and ${alive}`);
  // One statement for all keys: ten times faster than one statement per key if most keys do not exist.
  const these = `select wanted.key as place, entries.value as value from json_each(?) as wanted
    cross join entries on entries.key = wanted.value where ${alive}`;
  const many = database.prepare(these);
  // A cross join keeps the order of the keys: SQLite stops at the first.
  const first = database.prepare(`${these} limit 1`);
  const put = database.prepare(
    `insert into entries (key, value, expires_at) values (?, ?, ?)
     on conflict (key) do update set value = excluded.value, expires_at = excluded.expires_at`,
  );
  const sweep = database.prepare(
    'delete from entries where rowid in (select rowid from entries where expires_at <= ? limit ?)',
  );
  // For an entry that never expires, the column is null and no comparison is true.
  const touch = database.prepare(
    `update entries set expires_at = ?1
     where key in (select value from json_each(?2)) and expires_at > ?3 and expires_at < ?1`,
  );
  const remove = database.prepare('delete from entries where key in (select value from json_each(?))');
  const version = database.prepare('pragma data_version');
  const keysAfter = database.prepare(
    'select rowid as row, key from entries where rowid > ? order by rowid limit ?',
  );
  const lastRow = database.prepare('select max(rowid) as row from entries');
  return {
    get: (key, now) => one.get(key, now)?.['value'] as Uint8Array | undefined,
    getMany(keys, now) {
      const values = Array.from<Uint8Array | undefined>({ length: keys.length });
      for (const row of many.all(JSON.stringify(keys), now)) {
        values[Number(row['place'])] = row['value'] as Uint8Array;
      }
      return values;
    },
    getFirst(keys, now) {
      const row = first.get(JSON.stringify(keys), now);
      return row && { at: Number(row['place']), value: row['value'] as Uint8Array };
    },
    put(entries, now) {
      for (const { key, value, expiresAt } of entries) put.run(key, value, expiresAt ?? null);
      // Deletes more than is written, so that expired entries never pile up; not all at once, so that a write stays short.
      sweep.run(now, 2 * entries.length + 8);
    },
    keysAfter: (row, limit) =>
      keysAfter.all(row, limit).map((found) => ({ row: Number(found['row']), key: String(found['key']) })),
    lastRow: () => Number(lastRow.get()?.['row'] ?? 0),
    touch: (keys, expiresAt, now) => void touch.run(expiresAt, JSON.stringify(keys), now),
    delete: (keys) => void remove.run(JSON.stringify(keys)),
    dataVersion() {
      try {
        return Number(version.get()?.['data_version']);
      } catch {
        return undefined;
      }
    },
  };
}

/** The number of open stores by file. */
const openCounts = new Map<string, number>();

/** Tells the keys that are certainly not in the file from those that may be: a Bloom filter with 16 bits for each key. */
type KeyFilter = {
  add(keys: readonly string[]): void;
  /** True when the filter has all keys of the file. Each call adds some of those that were in it at the start. */
  isComplete(): boolean;
  mayHold(key: string): boolean;
};

/** The number of keys that one call reads: about 0.3 ms. */
const keysAtOnce = 500;

/** Keys of the largest filter: 8 MB. With more entries, all keys are looked up in the file. */
const maxKeys = 4_000_000;

function createKeyFilter(statements: Pick<Statements, 'keysAfter' | 'lastRow'>): KeyFilter {
  let capacity = 0;
  let held = 0;
  let bits = new Uint32Array(0);
  let row = 0;
  let isFilled = false;

  /** Begins again, with room for twice the keys. */
  function start(): void {
    capacity = 2 ** Math.ceil(Math.log2(Math.max(32_768, 2 * statements.lastRow())));
    bits = new Uint32Array(capacity <= maxKeys ? capacity / 2 : 0);
    [held, row, isFilled] = [0, 0, false];
  }
  function fill(): void {
    const found = statements.keysAfter(row, keysAtOnce);
    isFilled = found.length < keysAtOnce;
    row = found.at(-1)?.row ?? row;
    add(found.map(({ key }) => key));
  }
  function add(keys: readonly string[]): void {
    held += keys.length;
    for (const key of keys)
      for (const bit of places(key, bits.length * 32)) bits[bit >> 5]! |= 1 << (bit & 31);
  }
  start();
  return {
    add,
    isComplete() {
      try {
        if (bits.length > 0 && held > capacity) start();
        if (bits.length > 0 && !isFilled) fill();
        return isFilled;
      } catch {
        // The file is locked or damaged. A read says so, or waits.
        return false;
      }
    },
    mayHold: (key) =>
      places(key, bits.length * 32).every((bit) => ((bits[bit >> 5]! >> (bit & 31)) & 1) === 1),
  };
}

/** Returns four bits for a key, of `room` bits, a power of two: hashes by FNV-1a, combined. */
function places(key: string, room: number): readonly number[] {
  let one = 0x811c9dc5;
  let other = 0x9e3779b9;
  for (let at = 0; at < key.length; at++) {
    const unit = key.charCodeAt(at);
    one = Math.imul(one ^ unit, 0x01000193);
    other = Math.imul(other + unit, 0x85ebca6b) ^ (other >>> 13);
  }
  return [one, one + other, one + 2 * other, one + 3 * other].map((hash) => (hash & (room - 1)) >>> 0);
}

/** Creates a queue that runs work one after the other, so that a write that waits for a lock is not overtaken by a later one. */
function createQueue(): { add<T>(work: () => Promise<T>): Promise<T> } {
  let last: Promise<unknown> = Promise.resolve();
  return {
    add(work) {
      const turn = last.then(work);
      last = turn.catch(() => undefined);
      return turn;
    },
  };
}

function transact<T>(database: DatabaseSync, work: () => T): T {
  database.exec('begin immediate');
  try {
    const result = work();
    database.exec('commit');
    return result;
  } catch (error) {
    if (database.isTransaction) database.exec('rollback');
    throw error;
  }
}

/**
 * Retries while the database is locked, until the time is up, without blocking. Rejects with `store-failed`. The last try is made in the
 * next turn of the event loop: on a busy machine, the time may be up before this process has handled what releases the lock.
 */
async function retryWhileLocked<T>(file: string, waitMs: number, work: () => T): Promise<T> {
  const deadline = performance.now() + waitMs;
  let isLast = false;
  for (let wait = 1; ; wait = Math.min(2 * wait, 50)) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || isLast) throw storeFailed(file, error);
    }
    isLast = performance.now() + wait > deadline;
    await (isLast ? nextTurn() : pause(wait));
  }
}
