/** Reads package.json for the rules: the published entry points and the packages that they may import. */
import { readFileSync } from 'node:fs';

export type Manifest = {
  readonly bin: Readonly<Record<string, string>>;
  readonly main: string;
  readonly types: string;
  readonly typesVersions: { readonly '*': Readonly<Record<string, readonly string[]>> };
  readonly exports: Readonly<Record<string, string | { readonly require: Target; readonly default: Target }>>;
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

type Target = { readonly types: string; readonly default: string };

/** A module, and the CommonJS file that requires it. */
export type Subpath = Target & { readonly subpath: string; readonly require: Target };

/** Returns the subpaths that are modules; `./package.json` is not one. */
export function subpathsOf({ exports }: Pick<Manifest, 'exports'>): readonly Subpath[] {
  return Object.entries(exports).flatMap(([subpath, target]) =>
    typeof target === 'string' ? [] : [{ subpath, require: target.require, ...target.default }],
  );
}

/** Returns the source file of an entry: `./dist/src/index.js` is built from `src/index.ts`. */
export function sourceOf(target: string): string {
  return target.replace(/^\.\/dist\//, '').replace(/(\.d\.ts|\.js)$/, '.ts');
}
