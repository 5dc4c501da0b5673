/** Runs the script that the user asked for, with a Node that runs TypeScript. */
import { spawn } from 'node:child_process';
import module from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { pathFirst } from './npm.mjs';

const signals = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);

/**
 * Makes Node keep compiled code, so that the next start is faster: a gateway starts in a third of the time. A Node without such a cache
 * ignores the variable.
 * @param {string} root  the checkout
 */
export function keepCompiledCode(root) {
  process.env['NODE_COMPILE_CACHE'] ??= join(root, 'node_modules/.cache/leporello');
  module.enableCompileCache?.();
}

/**
 * Runs the script in this process where it can. An old Node starts the right one as a child. That happens once, after the set-up:
 * from then on npm finds the right Node first in its PATH, in node_modules/.bin.
 * @param {string} node
 * @param {string} script
 * @param {readonly string[]} args
 */
export async function run(node, script, args) {
  endWithNpm();
  if (node !== process.execPath) return runChild(node, [script, ...args]);
  process.argv = [node, script, ...args];
  await import(pathToFileURL(script).href);
}

/**
 * @public Tests call it.
 *
 * Runs Node as a child and ends with the child's exit code or signal. The child has a process group of its own, so that a signal to
 * our whole group, such as Ctrl-C, reaches it only once, through us. It ends with us, even when we are killed.
 * @param {string} node
 * @param {readonly string[]} args
 * @returns {Promise<void>}
 */
export function runChild(node, args) {
  const child = spawn(node, ['--import', new URL('end-with-parent.mjs', import.meta.url).href, ...args], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    detached: process.platform !== 'win32',
    env: { ...pathFirst(dirname(node)), LEPORELLO_PARENT: String(process.pid) },
  });
  const pass = (/** @type {NodeJS.Signals} */ signal) => child.kill(signal);
  for (const signal of signals) process.on(signal, pass);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      for (const name of signals) process.off(name, pass);
      process.exitCode = code ?? 1;
      if (signal !== null) process.kill(process.pid, signal);
      resolve();
    });
  });
}

/**
 * Ends this process when the shell between it and npm is gone. A signal to npm ends that shell, which passes nothing on. A signal
 * that reached this process, too, is not sent to it a second time, because a second one means: do not wait for open requests.
 */
function endWithNpm() {
  if (process.env['npm_lifecycle_event'] === undefined) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, 'SIGTERM');
  }, 500).unref();
  const note = (/** @type {NodeJS.Signals} */ signal) => {
    clearInterval(timer);
    // Without this listener the signal would have ended the process, so it does.
    if (process.listenerCount(signal) > 1) return;
    process.off(signal, note);
    process.kill(process.pid, signal);
  };
  for (const signal of signals) process.on(signal, note);
}
