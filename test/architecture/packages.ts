/** Published code imports only packages that whoever installs us gets too, or is told to bring. */
import { importsOf } from './imports.ts';
import type { SourceFile } from './source-file.ts';

export type Manifest = {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
};

export function packageProblems(files: readonly SourceFile[], manifest: Manifest): readonly string[] {
  const had = { ...manifest.dependencies, ...manifest.peerDependencies };
  return files.flatMap((source) =>
    importsOf(source)
      .filter(({ specifier, file }) => file === undefined && !specifier.startsWith('node:'))
      .map(({ specifier }) => packageOf(specifier))
      .filter((name) => !(name in had))
      .map((name) => `${source.path} imports ${name}, which is neither a dependency nor a peer of ours`),
  );
}

/** `@scope/name/sub/path` is of the package `@scope/name`. */
function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}
