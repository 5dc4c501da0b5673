/** Runs the npm of this machine. It never runs an install script of a dependency. */
import { spawn } from 'node:child_process';
import { delimiter, dirname } from 'node:path';

const signals = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);

/**
 * Runs npm and rejects with everything that it printed when it fails. A signal ends npm first and this process after it, so that no
 * npm goes on writing into a folder that nobody guards.
 * @param {string} node  the Node to run npm with
 * @param {string} cwd
 * @param {readonly string[]} args
 * @returns {Promise<void>}
 */
export function runNpm(node, cwd, args) {
  const cli = process.env['npm_execpath'];
  const isScript = cli?.endsWith('npm-cli.js') === true;
  const command = isScript ? node : 'npm';
  const options = [...args, '--ignore-scripts', '--no-audit', '--no-fund', '--no-progress'];
  const child = spawn(command, isScript ? [cli, ...options] : options, {
    cwd,
    env: pathFirst(dirname(node)),
    shell: !isScript && process.platform === 'win32',
    stdio: ['ignore', 'pipe', 'pipe'],
  });

  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (output += chunk));
  /** @type {NodeJS.Signals | undefined} */
  let interruption;
  const interrupt = (/** @type {NodeJS.Signals} */ signal) => {
    interruption = signal;
    child.kill(signal);
  };
  for (const signal of signals) process.on(signal, interrupt);

  return new Promise((resolve, reject) => {
    child.once('error', (error) => (output += `${error.message}\n`));
    child.once('close', (code) => {
      for (const signal of signals) process.off(signal, interrupt);
      if (interruption !== undefined) process.kill(process.pid, interruption);
      else if (code === 0) resolve();
      else
        reject(
          new Error(
            `${output}\nnpm ${args[0]} failed; its output is above. Fix what it names and run this again.`,
          ),
        );
    });
  });
}

/**
 * Returns the environment with `folder` first in PATH, which Windows spells `Path`.
 * @param {string} folder
 * @returns {NodeJS.ProcessEnv}
 */
export function pathFirst(folder) {
  const name = Object.keys(process.env).find((key) => key.toUpperCase() === 'PATH') ?? 'PATH';
  return { ...process.env, [name]: `${folder}${delimiter}${process.env[name] ?? ''}` };
}
