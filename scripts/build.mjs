/** Builds dist/ from nothing: what is published holds no file that src no longer has. Run with `npm run build`. */
import { chmodSync, existsSync, rmSync } from 'node:fs';
import { endLike, runLeashed } from './bootstrap/child.mjs';

rmSync('dist', { recursive: true, force: true });
const end = await runLeashed(process.execPath, [
  'node_modules/typescript/bin/tsc',
  '-p',
  'tsconfig.build.json',
]);
if (existsSync('dist/cli/main.js')) chmodSync('dist/cli/main.js', 0o755);
endLike(end);
