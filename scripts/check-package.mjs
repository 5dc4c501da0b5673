/**
 * Checks the package as users get it: builds and packs it, has publint and attw ("are the types wrong?") read the archive, loads every entry point with
 * `require`, and starts the gateway from the archive with npx, as somebody does who tries it without installing it. Run it with
 * `npm run check -- package`. npx needs the npm registry, or npm's cache.
 */
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';

/** Milliseconds that npx may take to fetch the dependencies and to start the gateway. */
const npxMs = 120_000;

const folder = mkdtempSync(join(tmpdir(), 'leporello-package-'));
try {
  const { bytes, file } = pack();
  const problems = [
    ...(await lint(bytes)),
    ...(await typeProblems(bytes)),
    ...requireProblems(),
    ...(await npxProblems(file)),
  ];
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Builds and packs the package. */
function pack() {
  run(process.execPath, ['scripts/build.mjs']);
  run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder, '--loglevel=error']);
  const file = join(folder, readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '');
  return { file, bytes: readFileSync(file) };
}

/**
 * @param {string} command
 * @param {readonly string[]} args
 */
function run(command, args) {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}: ${stdout}${stderr}`);
  return stdout;
}

/**
 * Returns what publint finds, suggestions too.
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
async function lint(bytes) {
  const { messages, pkg } = await publint({
    pack: { tarball: bytes.buffer },
    level: 'suggestion',
    strict: true,
  });
  return messages.map(
    (message) => `publint: ${formatMessage(message, pkg, { color: false }) ?? message.code}`,
  );
}

/**
 * Returns what attw finds.
 * @param {Uint8Array} bytes
 */
async function typeProblems(bytes) {
  const checked = await checkPackage(createPackageFromTarballData(bytes));
  if (!checked.types) return ['attw: the package has no types.'];
  return checked.problems.map((problem) => {
    const resolution = 'resolutionKind' in problem ? `, resolved as ${problem.resolutionKind}` : '';
    const entry = 'entrypoint' in problem ? ` in ${problem.entrypoint}` : '';
    return `attw: ${problem.kind}${entry}${resolution}`;
  });
}

/** Returns the entry points that a CommonJS program cannot load. This checkout has the packages of all adapters. */
function requireProblems() {
  const manifest = /** @type {{ readonly exports: Readonly<Record<string, unknown>> }} */ (
    JSON.parse(readFileSync('package.json', 'utf8'))
  );
  return Object.keys(manifest.exports).flatMap((entry) => {
    const name = `leporello${entry.slice(1)}`;
    // vitest itself refuses `require`.
    if (name === 'leporello/testing') return [];
    const { status, stderr } = spawnSync(process.execPath, ['-e', `require('${name}')`], {
      encoding: 'utf8',
    });
    return status === 0 ? [] : [`require('${name}') failed: ${stderr}`];
  });
}

/**
 * Starts the gateway with npx in an empty home, asks it for its health and a page, and stops it.
 * @param {string} file
 */
async function npxProblems(file) {
  const home = join(folder, 'home');
  mkdirSync(home);
  writeFileSync(join(home, 'package.json'), '{ "private": true }');
  const cache = run('npm', ['config', 'get', 'cache']).trim();
  const command = ['--yes', '--prefer-offline', `--package=${file}`, 'leporello', 'serve', '--port', '0'];
  const child = spawn('npx', command, {
    cwd: home,
    env: { ...process.env, HOME: home, npm_config_cache: cache },
    stdio: ['ignore', 'pipe', 'pipe'],
    // npx starts the gateway in a shell; all of them are in one group.
    detached: true,
  });
  let output = '';
  /** @type {Promise<string | undefined>} */
  const started = new Promise((resolve) => {
    const read = (/** @type {Buffer} */ chunk) => {
      output += chunk.toString();
      const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(output) ?? [];
      if (url !== undefined) resolve(url);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('close', () => resolve(undefined));
    setTimeout(() => resolve(undefined), npxMs).unref();
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  try {
    const url = await started;
    if (url === undefined) return [`npx did not start the gateway within ${npxMs} ms: ${output}`];
    /** @type {string[]} */
    const problems = [];
    // The pages are loaded on demand, and read files beside their code.
    for (const path of ['/healthz', '/_leporello/', '/_leporello/page.js']) {
      const { status } = await fetch(url + path, { signal: AbortSignal.timeout(npxMs) });
      if (status !== 200)
        problems.push(`The gateway that npx started answers ${path} with ${status}: ${output}`);
    }
    return problems;
  } finally {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGTERM');
    await ended;
  }
}
