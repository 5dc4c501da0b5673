/**
 * Two terminals, one checkout: the second set-up waits for the first instead of deleting what it installs.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs `work` while this process alone holds the file. A file left by a process that is gone is taken over.
 * @template T
 * @param {string} file
 * @param {() => Promise<T>} work
 */
export async function oneAtATime(file, work) {
  mkdirSync(dirname(file), { recursive: true });
  while (!take(file)) {
    if (isGone(holderOf(file))) rmSync(file, { force: true });
    else await sleep(200);
  }
  try {
    return await work();
  } finally {
    rmSync(file, { force: true });
  }
}

/** @param {string} file */
function take(file) {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** @param {string} file */
function holderOf(file) {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

/** @param {number | undefined} pid */
function isGone(pid) {
  // Zero: the holder has made the file and not yet written its number.
  if (pid === undefined || pid === 0) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return codeOf(error) === 'ESRCH';
  }
}

/** @param {unknown} error */
function codeOf(error) {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
