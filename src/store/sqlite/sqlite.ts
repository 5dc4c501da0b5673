/**
 * Implements the store on disk: one SQLite file, embedded in Node, shared by any number of processes on one machine. A write that has resolved
 * survives `kill -9` and a crash of the process, but not necessarily a power cut: with `synchronous = normal` the last writes before one
 * may be missing, while the file stays intact. No timers, no threads.
 */
import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
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

/** How long opening waits for the lock at least, in milliseconds. No request waits for it, and nothing works without it. */
const openWaitMs = 5_000;

/**
 * Opens the store. Rejects with `store-failed` if the file cannot be read. A read-only file opens: reads work and writes reject. In a
 * read-only folder, later changes by other processes are not seen.
 */
export async function sqliteStore(options: SqliteOptions): Promise<Store> {
  const { clock = Date.now, lockWaitMs = 400 } = options;
  const file = resolve(options.file);
  const openedBy = performance.now() + Math.max(lockWaitMs, openWaitMs);
  const database = await retryWhileLocked(file, openedBy - performance.now(), () => openDatabase(file));
  const statements = await retryWhileLocked(file, openedBy - performance.now(), () => prepare(database));
  const writes = createQueue();
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
      if (copies.length > 0) await write(() => statements.put(copies, clock()));
    },
    async putUnless(guards, entries) {
      checkOpen();
      const keys = [...guards];
      const copies = entries.map((entry) => ({ ...entry, value: new Uint8Array(entry.value) }));
      return write(() => {
        const now = clock();
        const inTheWay = statements.getFirst(keys, now);
        if (inTheWay === undefined && copies.length > 0) statements.put(copies, now);
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
      closing ??= writes.add(() => retryWhileLocked(file, lockWaitMs, () => database.close()));
      return closing;
    },
  };
}

type Statements = {
  get(key: string, now: number): Uint8Array | undefined;
  getMany(keys: readonly string[], now: number): readonly (Uint8Array | undefined)[];
  getFirst(keys: readonly string[], now: number): FirstFound | undefined;
  put(entries: readonly StoreEntry[], now: number): void;
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

/** Retries while the database is locked, until the time is up, without blocking. Rejects with `store-failed`. */
async function retryWhileLocked<T>(file: string, waitMs: number, work: () => T): Promise<T> {
  const deadline = performance.now() + waitMs;
  for (let wait = 1; ; wait = Math.min(2 * wait, 50)) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() + wait > deadline) throw storeFailed(file, error);
    }
    await pause(wait);
  }
}
