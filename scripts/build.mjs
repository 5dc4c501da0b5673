/**
 * Builds dist/ from nothing, so that the package holds no file that src no longer has. The compiler writes the declarations, and rolldown the code: it joins
 * modules that are always loaded together, because each file costs a program about half a millisecond. Copies the files that the code reads (pages)
 * beside the code, but not those that only tests read. For each entry point it writes a CommonJS file that requires the ES module,
 * for programs that call `require` and for compilers that read no `exports` (decision 51). Run it with `npm run build`.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { isBuiltin } from 'node:module';
import { basename, resolve } from 'node:path';
import { dirname, relative } from 'node:path/posix';
import { rolldown } from 'rolldown';

const manifest = /** @type {Readonly<Record<string, object>>} */ (
  JSON.parse(readFileSync('package.json', 'utf8'))
);
rmSync('dist', { recursive: true, force: true });
const tsc = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json', '--emitDeclarationOnly'];
const { status } = spawnSync(process.execPath, tsc, { stdio: 'inherit' });
await writeCode();
cpSync('src', 'dist/src', { recursive: true, filter: isReadByCode });
if (existsSync('dist/src/cli/main.js')) chmodSync('dist/src/cli/main.js', 0o755);
writeCommonJs();
process.exitCode = status ?? 1;

/**
 * Writes the modules: each entry point at the place of its source, and the code that they share in `dist/src/chunks`. The library is one file, and so is
 * the engine that it loads with the first request. A module that looks for files beside itself stays at its place.
 */
async function writeCode() {
  const { files } = /** @type {{ files: string[] }} */ (
    JSON.parse(readFileSync('tsconfig.build.json', 'utf8'))
  );
  const packages = ['dependencies', 'optionalDependencies', 'peerDependencies'].flatMap((key) =>
    Object.keys(manifest[key] ?? {}),
  );
  /** @type {Map<string, readonly string[]>} */
  const imports = new Map();
  /** @type {Set<string>} */
  const placed = new Set();
  const loadedWith = (/** @type {string} */ file) => {
    const all = new Set([resolve(file)]);
    for (const id of all) for (const other of imports.get(id) ?? []) all.add(other);
    return all;
  };
  const bundle = await rolldown({
    input: Object.fromEntries(files.map((file) => [nameOf(resolve(file)), resolve(file)])),
    platform: 'node',
    external: (id) => isBuiltin(id) || packages.some((name) => id === name || id.startsWith(`${name}/`)),
    preserveEntrySignatures: 'allow-extension',
    transform: { target: 'es2024' },
    logLevel: 'warn',
    plugins: [
      {
        name: 'modules',
        moduleParsed({ id, code, isEntry, importedIds }) {
          if (id.includes('node_modules'))
            throw new Error(`${id} would be in our package: add it to dependencies.`);
          imports.set(id, importedIds);
          if (!isEntry && code?.includes('import.meta')) placed.add(id);
        },
      },
    ],
  });
  const groups = [
    { test: (/** @type {string} */ id) => loadedWith('src/index.ts').has(id), name: 'library' },
    {
      test: (/** @type {string} */ id) => loadedWith('src/library/default-engine.ts').has(id),
      name: 'engine',
    },
  ];
  await bundle.write({
    dir: 'dist',
    entryFileNames: '[name].js',
    chunkFileNames({ moduleIds }) {
      const [own, other] = moduleIds.filter((id) => placed.has(id));
      if (other)
        throw new Error(`${own} and ${other} are in one file, so one of them finds no file beside itself.`);
      return own ? `${nameOf(own)}.js` : 'src/chunks/[name].js';
    },
    codeSplitting: { groups, includeDependenciesRecursively: false },
  });
  await bundle.close();
}

/**
 * Returns the path of a module below this folder, without its ending.
 * @param {string} id
 */
function nameOf(id) {
  return relative(resolve('.'), id).replace(/\.ts$/, '');
}

/** Writes the CommonJS files that package.json names, each with its declaration. */
function writeCommonJs() {
  /** @typedef {{ readonly types: string, readonly default: string }} Target */
  const targets = /** @type {(string | { require: Target, default: Target })[]} */ (
    Object.values(manifest['exports'] ?? {})
  );
  for (const target of targets) {
    if (typeof target === 'string') continue;
    const file = target.require.default;
    const module = relative(dirname(file), target.default.default);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `'use strict';\nmodule.exports = require('${module}');\n`);
    writeFileSync(target.require.types, `export * from '${module}';\n`);
  }
}

/** @param {string} path */
function isReadByCode(path) {
  return statSync(path).isDirectory() ? basename(path) !== 'fixtures' : !/\.(?:ts|json)$/.test(path);
}
