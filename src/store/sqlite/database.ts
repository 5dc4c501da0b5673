/**
 * Opens the database file of the SQLite store and explains SQLite's errors. Creates folder, file and table; opens read-only if writing is
 * not allowed. Loads node:sqlite only when called. Does blocking file I/O.
 */
import { closeSync, existsSync, openSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type * as Sqlite from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { LeporelloError } from '../../errors.ts';
import { makePrivateFolder } from '../secret.ts';

/**
 * How long SQLite itself waits for a lock while it opens the file, in milliseconds. The thread is blocked meanwhile, so it is short, and
 * zero once the file is open: the store retries without blocking.
 */
const openingWaitMs = 10;

const schemaVersion = 1;

// With rowids: WITHOUT ROWID keeps the values inside the key's tree. Measured with 8,000 values of 0.3 to 30 kB on Node 24,
// rowid against without: put 32 / 67 us, get 7 / 28 us, 500 keys that are not there 0.12 / 6.3 ms. Larger pages: no gain.
const schema = `
  begin immediate;
  create table if not exists entries (key text primary key not null, value blob not null, expires_at integer);
  create index if not exists entries_expiry on entries (expires_at) where expires_at is not null;
  pragma user_version = ${schemaVersion};
  commit`;

/** Opens the file; a read-only file opens, too, and writes to it fail. Throws SQLite's errors. */
export function openDatabase(file: string): Sqlite.DatabaseSync {
  makePrivateFile(file);
  const { DatabaseSync } = loadSqlite();
  const database = new DatabaseSync(file, { timeout: openingWaitMs });
  try {
    // The limit keeps the -wal file from staying as large as the largest write ever made.
    database.exec(
      'pragma journal_mode = wal; pragma synchronous = normal; pragma journal_size_limit = 16777216',
    );
    if (versionOf(database, file) === 0) database.exec(schema);
    database.exec('pragma busy_timeout = 0');
    return database;
  } catch (error) {
    database.close();
    if (!isReadOnly(error) || existsSync(`${file}-wal`)) throw error;
    return openUnchanging(file, error);
  }
}

/** Opens the file as immutable. WAL mode writes files next to the database even for reading, unless it knows that nobody writes. */
function openUnchanging(file: string, whyNot: unknown): Sqlite.DatabaseSync {
  const { DatabaseSync } = loadSqlite();
  const url = pathToFileURL(file);
  url.searchParams.set('immutable', '1');
  const database = new DatabaseSync(url, { readOnly: true });
  if (versionOf(database, file) === schemaVersion) return database;
  database.close();
  throw whyNot;
}

function versionOf(database: Sqlite.DatabaseSync, file: string): number {
  const row = database.prepare('pragma user_version').get();
  const version = Number(row?.['user_version']);
  if (version <= schemaVersion) return version;
  throw new LeporelloError(
    'store-failed',
    `The store ${file} has version ${version}, but this Leporello supports ${schemaVersion}: update Leporello or choose another file.`,
  );
}

/** Creates a file that only this user may read; SQLite gives its -wal and -shm files the same rights. SQLite reports errors better. */
function makePrivateFile(file: string): void {
  try {
    makePrivateFolder(dirname(file));
    closeSync(openSync(file, 'a', 0o600));
  } catch {
    // Opening the database fails the same way, or the file exists and can be read.
  }
}

/** Loads node:sqlite without the warning of Node 22 that its interface is experimental; our tests check it on Node 22, 24 and 26. */
function loadSqlite(): typeof Sqlite {
  // oxlint-disable-next-line typescript/unbound-method -- restored below
  const { emitWarning } = process;
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (String(warning).includes('SQLite is an experimental feature')) return;
    Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
  try {
    const sqlite = process.getBuiltinModule('node:sqlite') as typeof Sqlite | undefined;
    if (sqlite) return sqlite;
  } finally {
    process.emitWarning = emitWarning;
  }
  throw new LeporelloError(
    'store-failed',
    `A SQLite store needs Node 22.13 or newer, which has node:sqlite; this is Node ${process.versions.node}. Update Node, or use redisStore or httpStore.`,
  );
}

const codes = {
  perm: 3,
  busy: 5,
  locked: 6,
  readOnly: 8,
  io: 10,
  corrupt: 11,
  full: 13,
  cantOpen: 14,
  notDatabase: 26,
};

/** True if another connection holds the lock: a retry may succeed. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === codes.busy || code === codes.locked;
}

/** True if the file or its folder cannot be written. */
function isReadOnly(error: unknown): boolean {
  return resultCode(error) === codes.readOnly;
}

/** Returns the error as `store-failed`, with the file and a remedy; an error of ours is returned unchanged. Codes: https://www.sqlite.org/rescode.html */
export function storeFailed(file: string, error: unknown): LeporelloError {
  if (LeporelloError.isInstance(error)) return error;
  const said = error instanceof Error ? error.message : String(error);
  return new LeporelloError(
    'store-failed',
    `The store ${file} failed: ${said}. ${remedy(resultCode(error), file)}`,
    {
      cause: error,
    },
  );
}

function remedy(code: number | undefined, file: string): string {
  switch (code) {
    case codes.busy:
    case codes.locked:
      return 'Another process keeps it locked: end that process, or use one file per process.';
    case codes.readOnly:
    case codes.perm:
      return 'Let this user write the file and its folder, or choose another file.';
    case codes.cantOpen:
      return 'Check that its folder exists and that this user may write there, or choose another file.';
    case codes.full:
    case codes.io:
      return `${spaceOf(dirname(file))} Free some space if that is too little; else check the disk.`;
    case codes.corrupt:
    case codes.notDatabase:
      return 'It is damaged or not a store: move it away (then a new one is created), or restore it from a backup.';
    case undefined:
    default:
      return 'Check the disk, and the permissions of the file and its folder.';
  }
}

/** Says how much space the disk of a folder has. On a full disk, SQLite often reports only an error of input or output. */
function spaceOf(folder: string): string {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return `The disk of ${folder} has ${((bavail * bsize) / 1e6).toFixed(1)} MB free.`;
  } catch {
    return `The folder ${folder} cannot be reached.`;
  }
}

/** Returns the primary result code; SQLite keeps details in the higher bits. */
function resultCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('errcode' in error)) return undefined;
  return typeof error.errcode === 'number' ? error.errcode & 0xff : undefined;
}
