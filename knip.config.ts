/** Dead exports, files and dependencies. What the package exports and the command are roots; package.json is the one list of them. */
import type { KnipConfig } from 'knip';
import { publishedSources, readManifest } from './test/architecture/manifest.ts';

const config: KnipConfig = {
  entry: [
    ...publishedSources(readManifest()),
    'bench/*.ts',
    'bench/peers/install.ts',
    'examples/*.ts',
    'examples/recipes/*.ts',
    'test/clients/run.ts',
    'test/clients/measure.ts',
    // Loaded by pi.
    'src/cli/wrap/pi-extension.ts',
    // Started by clients.
    'test/clients/many-tools-server.ts',
    // Bundled for other runtimes.
    'test/clients/runtimes/program.ts',
    'test/clients/runtimes/adapters-program.ts',
    'test/fuzz/run.ts',
    'scripts/*.mjs',
    'scripts/bootstrap/end-with-parent.mjs',
  ],
  project: ['src/**/*.ts', 'test/**/*.ts', 'bench/**/*.ts', 'examples/**/*.ts', 'scripts/**/*.mjs'],
  ignore: ['test/fixtures/**', 'test/consumer/**'],
  // Run by scripts/check.mjs, by path.
  ignoreDependencies: ['@biomejs/biome', 'oxlint', 'oxlint-tsgolint'],
  ignoreBinaries: ['mkfifo', 'openssl', 'unshare', 'ip', 'mount'],
  // A type that is named in its own file's signatures is exported for readers.
  ignoreExportsUsedInFile: { interface: true, type: true },
};

export default config;
