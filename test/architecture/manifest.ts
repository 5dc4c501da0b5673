/** package.json as the rules read it: what we publish, and which packages it may use. */
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

/** The source files behind the commands and subpaths of the package. */
export function publishedSources({ bin, exports }: Pick<Manifest, 'bin' | 'exports'>): readonly string[] {
  return [...Object.values(bin), ...subpathsOf({ exports }).map((subpath) => subpath.default)].map(sourceOf);
}

export type Subpath = { readonly subpath: string; readonly types: string; readonly default: string };

/** The subpaths that lead to modules; `./package.json` does not. */
export function subpathsOf({ exports }: Pick<Manifest, 'exports'>): readonly Subpath[] {
  return Object.entries(exports).flatMap(([subpath, target]) =>
    typeof target === 'string' ? [] : [{ subpath, ...target }],
  );
}

/** Where an entry is written: `./dist/src/index.js` is built from `src/index.ts`. */
export function sourceOf(target: string): string {
  return target.replace(/^\.\/dist\//, '').replace(/(\.d\.ts|\.js)$/, '.ts');
}
