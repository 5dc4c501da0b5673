/**
 * Runs the machine's npm under the Node of our choice: npm leaves out optional packages (the native half of most tools)
 * that do not name the Node it runs on. No dependency's install script is ever run.
 */
import { dirname } from 'node:path';
import { pathFirst, runQuietly } from './child.mjs';

const always = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-progress'];

/**
 * Resolves to npm's end, with everything it printed.
 * @param {string} node  the Node to run npm with
 * @param {string} cwd
 * @param {readonly string[]} args
 */
export function runNpm(node, cwd, args) {
  const env = pathFirst(dirname(node));
  const cli = process.env.npm_execpath;
  return cli?.endsWith('npm-cli.js')
    ? runQuietly(node, [cli, ...args, ...always], { cwd, env })
    : runQuietly('npm', [...args, ...always], { cwd, env, shell: process.platform === 'win32' });
}
