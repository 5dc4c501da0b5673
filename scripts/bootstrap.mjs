/**
 * The newcomer's path: `npm start` and `npm test` run this first. It installs what is missing, makes sure of a Node that can
 * run TypeScript, and then runs the given script with it. Plain JavaScript for Node 18 and up; needs no dependency.
 * Usage: node scripts/bootstrap.mjs SCRIPT [ARGUMENT...]
 */
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endLike, runLeashed } from './bootstrap/child.mjs';
import { setUp } from './bootstrap/set-up.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const [script, ...args] = process.argv.slice(2);

if (script === undefined) {
  process.stderr.write('Usage: node scripts/bootstrap.mjs SCRIPT [ARGUMENT...]\n');
  process.exitCode = 2;
} else {
  const node = await setUp(root);
  endLike(
    node.status === 'ready'
      ? await runLeashed(node.path, [resolve(root, script), ...args])
      : { code: 1, signal: node.signal },
  );
}
