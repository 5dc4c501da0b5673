/**
 * Installs the gateways that bench/gateway.ts compares with, from npm and PyPI, into a folder below the system's temporary folder (1.6 GB). Run
 * `npm run bench bench/peers/install.ts`. It needs npm, and python3 with venv for two of them; what cannot be installed is named and left out.
 */
import { installPeer, peers } from './peers.ts';

for (const peer of peers) {
  const failed = installPeer(peer);
  if (failed === undefined) console.log(`${peer.name} ${peer.version} is installed.`);
  else console.log(`${peer.name} ${peer.version} is not installed: ${failed} failed.`);
}
