/** Checks that published code imports only packages that are installed with it, or that users install as peers. */
import { importsOf } from './imports.ts';
import type { Manifest } from './manifest.ts';
import type { SourceFile } from './source-file.ts';

export function packageProblems(
  files: readonly SourceFile[],
  manifest: Pick<Manifest, 'dependencies' | 'optionalDependencies' | 'peerDependencies'>,
): readonly string[] {
  const installed = {
    ...manifest.dependencies,
    ...manifest.optionalDependencies,
    ...manifest.peerDependencies,
  };
  return files.flatMap((source) =>
    importsOf(source)
      .filter(({ specifier, file }) => file === undefined && !specifier.startsWith('node:'))
      .map(({ specifier }) => packageOf(specifier))
      .filter((name) => !(name in installed))
      .map(
        (name) =>
          `${source.path} imports ${name}, which package.json lists neither as a dependency nor as a peer`,
      ),
  );
}

/** The list of caches, and the store whose entries are no cache. Any other cache would escape the memory budget. */
const cacheFiles = ['src/caches.ts', 'src/store/in-memory.ts'];

export function cacheProblems(files: readonly SourceFile[]): readonly string[] {
  return files
    .filter((source) => !cacheFiles.includes(source.path))
    .filter(({ text }) => text.includes('new BoundedMap'))
    .map(({ path }) => `${path} makes a BoundedMap: open a cache of src/caches.ts instead`);
}

/** Returns the package of an import: `@scope/name` for `@scope/name/sub/path`. */
function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}
