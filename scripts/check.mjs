/**
 * Runs every check that is not a test. The list below is the only one: .ci/run counts its steps by it.
 * Usage: npm run check [-- NAME...], or `-- --list` for the names. The first failure does not stop the rest.
 */
import { spawnSync } from 'node:child_process';

/** @param {string} path */
const bin = (path) => [process.execPath, `node_modules/${path}`];

/** @type {Readonly<Record<string, readonly string[]>>} */
const checks = {
  types: [...bin('typescript/bin/tsc'), '--noEmit'],
  lint: [...bin('oxlint/bin/oxlint'), '--type-aware', '--deny-warnings'],
  format: [...bin('@biomejs/biome/bin/biome'), 'format'],
  'dead-code': [...bin('knip/bin/knip.js'), '--no-progress'],
  package: [process.execPath, 'scripts/check-package.mjs'],
  figures: [process.execPath, 'bench/publish.ts', '--check'],
  speed: [process.execPath, 'bench/speed.ts', '--check'],
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => name !== '--list' && !(name in checks));

if (unknown.length > 0) {
  console.error(`There is no check ${unknown.join(', ')}. The checks are ${Object.keys(checks).join(', ')}.`);
  process.exitCode = 2;
} else if (wanted.includes('--list')) {
  console.log(Object.keys(checks).join('\n'));
} else {
  for (const name of wanted.length > 0 ? wanted : Object.keys(checks)) check(name);
}

/** @param {string} name */
function check(name) {
  const [command = '', ...args] = checks[name] ?? [];
  const start = Date.now();
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  const seconds = ((Date.now() - start) / 1000).toFixed(1);
  console.log(`${status === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`);
  if (status === 0) return;
  process.exitCode = 1;
  console.log(`${stdout}${stderr}`.trimEnd(), '\n');
}
