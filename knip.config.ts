/** Dead exports, files and dependencies. What the package exports and the command are roots; package.json is the one list of them. */
import { readFileSync } from 'node:fs';
import type { KnipConfig } from 'knip';
import { sourceOf } from './test/architecture/exports.ts';

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  bin: Record<string, string>;
  exports: Record<string, string | { default: string }>;
};

const published = [
  ...Object.values(manifest.bin),
  ...Object.values(manifest.exports).flatMap((target) => (typeof target === 'string' ? [] : target.default)),
].map(sourceOf);

const config: KnipConfig = {
  entry: [...published, 'bench/*.ts', 'examples/*.ts', 'scripts/*.mjs', 'scripts/bootstrap/leash.mjs'],
  project: ['src/**/*.ts', 'test/**/*.ts', 'bench/**/*.ts', 'examples/**/*.ts', 'scripts/**/*.mjs'],
  ignore: ['test/fixtures/**'],
  // Run by scripts/check.mjs, by path.
  ignoreDependencies: ['@biomejs/biome', 'oxlint', 'oxlint-tsgolint'],
  // A type that is named in its own file's signatures is exported for readers.
  ignoreExportsUsedInFile: { interface: true, type: true },
};

export default config;
