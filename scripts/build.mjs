/**
 * Builds dist/ from nothing, so that what is published holds no file that src no longer has. Beside the compiled code go
 * the files it reads (samples, pages), but not what only tests read. Run with `npm run build`.
 */
import { chmodSync, cpSync, existsSync, rmSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { endLike, runLeashed } from './bootstrap/child.mjs';

rmSync('dist', { recursive: true, force: true });
const end = await runLeashed(process.execPath, [
  'node_modules/typescript/bin/tsc',
  '-p',
  'tsconfig.build.json',
]);
cpSync('src', 'dist/src', { recursive: true, filter: isReadByCode });
if (existsSync('dist/src/cli/main.js')) chmodSync('dist/src/cli/main.js', 0o755);
endLike(end);

/** @param {string} path */
function isReadByCode(path) {
  return statSync(path).isDirectory() ? basename(path) !== 'fixtures' : !path.endsWith('.ts');
}
