/**
 * What SQLite's result codes mean to the person who runs Leporello. Pure: errors in, errors out.
 * Codes: https://www.sqlite.org/rescode.html
 */
import { LeporelloError } from '../errors.ts';

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
export function isReadOnly(error: unknown): boolean {
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
