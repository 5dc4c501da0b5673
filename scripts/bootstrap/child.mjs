/**
 * Child processes that end with us and whose end is ours: signals go down, the exit code or signal comes back up.
 */
import { spawn } from 'node:child_process';
import { delimiter, dirname } from 'node:path';
import { watchNpm } from './lineage.mjs';
import { holdSignals, passSignals } from './signals.mjs';

/** @typedef {{ code: number | null, signal: NodeJS.Signals | null, error?: Error }} End  how a child ended */

/**
 * Runs a script on the terminal we were given, with `node` first in its PATH. The leash (a channel that breaks when this
 * process dies, even by SIGKILL) ends the script with us.
 * @param {string} node
 * @param {readonly string[]} args
 */
export function runLeashed(node, args) {
  const leash = new URL('leash.mjs', import.meta.url).href;
  const release = holdSignals();
  const child = spawn(node, ['--import', leash, ...args], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...pathFirst(dirname(node)), LEPORELLO_LEASH: String(process.pid) },
  });
  const end = endOf(child, watchNpm);
  release();
  return end;
}

/**
 * Runs a command quietly. Resolves with its end and everything it printed, in the order it came.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ cwd?: string, env: NodeJS.ProcessEnv, shell?: boolean }} options
 * @returns {Promise<End & { output: string }>}
 */
export async function runQuietly(command, args, { cwd, env, shell = false }) {
  const child = spawn(command, args, { cwd, env, shell, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (output += chunk));
  const end = await endOf(child);
  return { ...end, output: end.error === undefined ? output : `${output}${end.error.message}\n` };
}

/**
 * Ends this process as the child ended: by the same signal, else with the same code.
 * @param {End} end
 */
export function endLike({ code, signal, error }) {
  if (error !== undefined) process.stderr.write(`${error.message}\n`);
  if (signal) process.kill(process.pid, signal);
  else process.exitCode = code ?? 1;
}

/**
 * The environment with `folder` first in PATH (spelled `Path` on Windows).
 * @param {string} folder
 * @returns {NodeJS.ProcessEnv}
 */
export function pathFirst(folder) {
  const name = Object.keys(process.env).find((key) => key.toUpperCase() === 'PATH') ?? 'PATH';
  return { ...process.env, [name]: [folder, process.env[name]].filter(Boolean).join(delimiter) };
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @param {(gone: () => void) => () => void} [watch]  calls when the child is to end; returns how to stop watching
 * @returns {Promise<End>}
 */
function endOf(child, watch = () => () => {}) {
  const signals = passSignals(child);
  const stopWatching = watch(signals.end);
  return new Promise((resolve) => {
    /** @param {End} end */
    const finish = (end) => {
      signals.stop();
      stopWatching();
      resolve(end);
    };
    child.once('error', (error) => finish({ code: 1, signal: null, error }));
    child.once('close', (code, signal) => finish({ code, signal }));
  });
}
