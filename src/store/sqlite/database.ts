/**
 * Opens the database file of the SQLite store: makes folder, file and table, and settles for reading where writing is not
 * allowed. Loads node:sqlite only when called. Does blocking file I/O.
 */
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import type * as Sqlite from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { LeporelloError } from '../../errors.ts';

/**
 * How long SQLite itself waits for a lock while it opens the file, in milliseconds. The thread stands still meanwhile, so it is
 * short, and nothing once the file is open: the store tries again later without blocking.
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

/** Throws what SQLite throws. A file that may only be read opens; writing to it fails then. */
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

/** WAL mode wants to write beside the file even for reading; where it cannot, SQLite is told that nobody writes. */
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
    `The store ${file} has version ${version}, this Leporello knows ${schemaVersion}: update Leporello or choose another file.`,
  );
}

/** Only this user may read it; SQLite gives its -wal and -shm the same rights. What fails here, SQLite reports better. */
function makePrivateFile(file: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    closeSync(openSync(file, 'a', 0o600));
  } catch {
    // Opening the database fails in the same way, or the file is there and can be read.
  }
}

/** On Node 22 the module warns that it is experimental. It says so of its interface, which our tests hold on 22, 24, 26. */
function loadSqlite(): typeof Sqlite {
  // oxlint-disable-next-line typescript/unbound-method -- put back below, as it was
  const { emitWarning } = process;
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (String(warning).includes('SQLite is an experimental feature')) return;
    Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
  try {
    return process.getBuiltinModule('node:sqlite');
  } finally {
    process.emitWarning = emitWarning;
  }
}

const codes = {
  perm: 3,
  busy: 5,
  locked: 6,
  readOnly: 8,
  corrupt: 11,
  full: 13,
  cantOpen: 14,
  notDatabase: 26,
};

/** True when another connection holds the lock: trying again later may help. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === codes.busy || code === codes.locked;
}

/** True when the file or its folder may not be written. */
function isReadOnly(error: unknown): boolean {
  return resultCode(error) === codes.readOnly;
}

/** The error as `store-failed`, naming the file and what to do about it. One that is explained already stays as it is. */
export function storeFailed(file: string, error: unknown): LeporelloError {
  if (LeporelloError.isInstance(error)) return error;
  const said = error instanceof Error ? error.message : String(error);
  return new LeporelloError(
    'store-failed',
    `The store ${file} failed: ${said}. ${remedy(resultCode(error))}`,
    {
      cause: error,
    },
  );
}

function remedy(code: number | undefined): string {
  switch (code) {
    case codes.busy:
    case codes.locked:
      return 'Another process keeps it locked: end that process, or give each its own file.';
    case codes.readOnly:
    case codes.perm:
      return 'Give this user the right to write the file and its folder, or choose another file.';
    case codes.cantOpen:
      return 'Check that its folder exists and that this user may write there, or choose another file.';
    case codes.full:
      return 'The disk is full: make room.';
    case codes.corrupt:
    case codes.notDatabase:
      return 'It is damaged or not a store: move it away (a new one is made), or restore it from a backup.';
    case undefined:
    default:
      return 'Check the disk and the rights on the file and its folder.';
  }
}

/** The primary code; SQLite keeps details in the higher bits. */
function resultCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('errcode' in error)) return undefined;
  return typeof error.errcode === 'number' ? error.errcode & 0xff : undefined;
}
