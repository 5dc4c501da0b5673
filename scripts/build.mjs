/**
 * Builds dist/ from nothing, so that the package holds no file that src no longer has. Copies the files that the code reads (samples,
 * pages) beside the compiled code, but not those that only tests read. For each entry point it writes a CommonJS file that requires the ES module,
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
import { basename } from 'node:path';
import { dirname, relative } from 'node:path/posix';

rmSync('dist', { recursive: true, force: true });
const tsc = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'];
const { status } = spawnSync(process.execPath, tsc, { stdio: 'inherit' });
cpSync('src', 'dist/src', { recursive: true, filter: isReadByCode });
if (existsSync('dist/src/cli/main.js')) chmodSync('dist/src/cli/main.js', 0o755);
writeCommonJs();
process.exitCode = status ?? 1;

/** Writes the CommonJS files that package.json names, each with its declaration. */
function writeCommonJs() {
  /** @typedef {{ readonly types: string, readonly default: string }} Target */
  const { exports } =
    /** @type {{ exports: Record<string, string | { require: Target, default: Target }> }} */ (
      JSON.parse(readFileSync('package.json', 'utf8'))
    );
  for (const target of Object.values(exports)) {
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
  return statSync(path).isDirectory() ? basename(path) !== 'fixtures' : !path.endsWith('.ts');
}
