/**
 * Runs the test suite under other versions of Node, each fetched from npm once. The versions we promise are the default.
 * Usage: npm run test:nodes [-- VERSION...], where a version is one that npm knows: 22.18.0, 26.
 */
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { endLike, runLeashed } from './bootstrap/child.mjs';
import { runNpm } from './bootstrap/npm.mjs';
import { platformPackage, versionOf } from './bootstrap/toolchain.mjs';

const promised = ['22.18.0', '24', '26'];
const versions = process.argv.length > 2 ? process.argv.slice(2) : promised;

for (const version of versions) {
  const node = await fetchNode(version);
  if (node === undefined) process.exitCode = 1;
  else await test(node);
}

/** @param {string} node */
async function test(node) {
  console.log(`\nNode ${versionOf(node)}`);
  const end = await runLeashed(node, ['node_modules/vitest/vitest.mjs', 'run', '--reporter=dot']);
  if (end.code !== 0) endLike(end);
}

/** @param {string} version */
async function fetchNode(version) {
  const folder = resolve('.toolchain/others', version);
  const path = resolve(folder, 'node_modules', platformPackage(), 'bin/node');
  if (versionOf(path) !== undefined) return path;
  mkdirSync(folder, { recursive: true });
  const what = `${platformPackage()}@${version}`;
  const end = await runNpm(process.execPath, folder, ['install', '--prefix', folder, '--no-save', what]);
  if (versionOf(path) !== undefined) return path;
  console.error(`${end.output}\nNode ${version} could not be had as ${what}.`);
  return undefined;
}
