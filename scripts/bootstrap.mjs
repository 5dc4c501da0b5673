/**
 * `npm start`, `npm test` and the other npm scripts run through this file. It installs what is missing, makes sure of a Node that
 * runs TypeScript, and runs the given script. It is plain JavaScript for Node 18 and up and needs no dependency.
 * Usage: node scripts/bootstrap.mjs [--production] SCRIPT [ARGUMENT...]
 * With --production it installs only what the gateway needs, and not the tools for tests and checks.
 */
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { keepCompiledCode, run } from './bootstrap/run.mjs';
import { setUp } from './bootstrap/set-up.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const isProduction = process.argv[2] === '--production';
const [script, ...args] = process.argv.slice(isProduction ? 3 : 2);

if (script === undefined) {
  process.stderr.write('Usage: node scripts/bootstrap.mjs [--production] SCRIPT [ARGUMENT...]\n');
  process.exitCode = 2;
} else {
  const node = await setUp(root, { isProduction });
  if (node === undefined) process.exitCode = 1;
  else {
    if (isProduction) keepCompiledCode(root);
    await run(node, resolve(root, script), args);
  }
}
