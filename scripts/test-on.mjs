/**
 * Runs the tests under other versions of Node, each fetched from npm once. Without arguments it takes the versions that we support.
 * Usage: npm run test:nodes [-- VERSION...], where a version is one that npm knows, such as 22.18.0 or 26.
 */
import { spawnSync } from 'node:child_process';
import { dirname, resolve } from 'node:path';
import { pathFirst } from './bootstrap/npm.mjs';
import { fetchToolchain } from './bootstrap/toolchain.mjs';

const supported = ['22.18.0', '24', '26'];
const versions = process.argv.length > 2 ? process.argv.slice(2) : supported;

for (const version of versions) {
  const node = await fetchToolchain(resolve('.toolchain/others', version), version);
  console.log(`\nNode ${version}`);
  const { status } = spawnSync(node, ['node_modules/vitest/vitest.mjs', 'run', '--reporter=dot'], {
    stdio: 'inherit',
    env: pathFirst(dirname(node)),
  });
  if (status !== 0) process.exitCode = 1;
}
