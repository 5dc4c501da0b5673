/** A lock file, so that a second set-up of the same checkout waits for the first and does not delete what it installs. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs `work` while this process holds the lock file. Takes over a file whose process is gone.
 * @template T
 * @param {string} file
 * @param {() => Promise<T>} work
 */
export async function oneAtATime(file, work) {
  mkdirSync(dirname(file), { recursive: true });
  while (!tryToHold(file)) {
    if (isHolderGone(file)) rmSync(file, { force: true });
    else await sleep(200);
  }
  try {
    return await work();
  } finally {
    rmSync(file, { force: true });
  }
}

/** @param {string} file */
function tryToHold(file) {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (isErrorWithCode(error, 'EEXIST')) return false;
    throw error;
  }
}

/** @param {string} file */
function isHolderGone(file) {
  try {
    const pid = Number(readFileSync(file, 'utf8'));
    // The file is empty for a moment, before its holder has written the number. Signal 0 only asks if the process exists.
    if (pid > 0) process.kill(pid, 0);
    return false;
  } catch (error) {
    return isErrorWithCode(error, 'ESRCH');
  }
}

/**
 * @param {unknown} error
 * @param {string} code
 */
function isErrorWithCode(error, code) {
  return error instanceof Error && 'code' in error && error.code === code;
}
