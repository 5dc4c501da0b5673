/**
 * Builds dist/ from nothing, so that the package holds no file that src no longer has. Copies the files that the code reads (samples,
 * pages) beside the compiled code, but not those that only tests read. Run it with `npm run build`.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, rmSync, statSync } from 'node:fs';
import { basename } from 'node:path';

rmSync('dist', { recursive: true, force: true });
const tsc = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'];
const { status } = spawnSync(process.execPath, tsc, { stdio: 'inherit' });
cpSync('src', 'dist/src', { recursive: true, filter: isReadByCode });
if (existsSync('dist/src/cli/main.js')) chmodSync('dist/src/cli/main.js', 0o755);
process.exitCode = status ?? 1;

/** @param {string} path */
function isReadByCode(path) {
  return statSync(path).isDirectory() ? basename(path) !== 'fixtures' : !path.endsWith('.ts');
}
