/**
 * Installs the gateways that bench/gateway.ts compares with, from npm and PyPI, into a folder below the system's temporary folder (1.6 GB). Run
 * `npm run bench bench/peers/install.ts`. It needs npm, and python3 with venv for two of them; what cannot be installed is named and left out.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { folderOf, isInstalled, peers } from './peers.ts';

for (const peer of peers) {
  const folder = folderOf(peer);
  mkdirSync(folder, { recursive: true });
  const failed =
    !isInstalled(peer) &&
    peer.install(folder).find(([command = '', ...args]) => {
      return spawnSync(command, args, { stdio: 'inherit' }).status !== 0;
    });
  if (failed) console.log(`${peer.name} ${peer.version} is not installed: ${failed.join(' ')} failed.`);
  else {
    writeFileSync(join(folder, 'installed'), '');
    console.log(`${peer.name} ${peer.version} is installed.`);
  }
}
