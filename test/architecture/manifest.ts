/** Reads package.json for the rules: the published entry points and the packages that they may import. */
import { readFileSync } from 'node:fs';

export type Manifest = {
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
};

export function readManifest(): Manifest {
  return JSON.parse(readFileSync('package.json', 'utf8')) as Manifest;
}

/** Returns the source files of the package's commands and subpaths. */
export function publishedSources({ bin, exports }: Pick<Manifest, 'bin' | 'exports'>): readonly string[] {
  return [...Object.values(bin), ...subpathsOf({ exports }).map((subpath) => subpath.default)].map(sourceOf);
}

export type Subpath = { readonly subpath: string; readonly types: string; readonly default: string };

/** Returns the subpaths that are modules; `./package.json` is not one. */
export function subpathsOf({ exports }: Pick<Manifest, 'exports'>): readonly Subpath[] {
  return Object.entries(exports).flatMap(([subpath, target]) =>
    typeof target === 'string' ? [] : [{ subpath, ...target }],
  );
}

/** Returns the source file of an entry: `./dist/src/index.js` is built from `src/index.ts`. */
export function sourceOf(target: string): string {
  return target.replace(/^\.\/dist\//, '').replace(/(\.d\.ts|\.js)$/, '.ts');
}
