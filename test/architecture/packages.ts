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

/** Returns the package of an import: `@scope/name` for `@scope/name/sub/path`. */
function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}
