/**
 * Notices that the npm which ran us is gone. `npm start` is npm, then a shell, then us: npm passes a signal to the shell,
 * which dies of it and tells nobody. Polling is all that is left to us; it reads two numbers.
 */
import { readFileSync } from 'node:fs';

const atStart = lineage();

/**
 * Calls `gone` once when the shell or the npm above us has ended. Does nothing where no npm ran us: a process that was
 * started by hand may outlive its terminal.
 * @param {() => void} gone
 * @returns {() => void} stops watching
 */
export function watchNpm(gone) {
  if (process.env.npm_lifecycle_event === undefined) return () => {};
  const timer = setInterval(() => {
    if (lineage() === atStart) return;
    clearInterval(timer);
    gone();
  }, 500);
  timer.unref();
  return () => clearInterval(timer);
}

/** The shell and, where the system tells (Linux), the npm that started it. */
function lineage() {
  const parent = process.ppid;
  try {
    // The name in the second field may hold anything; the parent is the second number behind its last parenthesis.
    const fields = readFileSync(`/proc/${parent}/stat`, 'utf8').replace(/^.*\)/s, '').trim().split(' ');
    return `${parent} ${fields[1]}`;
  } catch {
    return `${parent}`;
  }
}
