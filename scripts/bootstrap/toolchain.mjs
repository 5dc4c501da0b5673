/**
 * The Node that the lockfile names (devDependency `node`), for machines whose own Node is too old to run TypeScript.
 * Its npm package fetches the real binary in an install script, which npm may refuse to run; so we fetch it ourselves,
 * once per checkout, into .toolchain/, and link it to where the package would have put it.
 */
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { runNpm } from './npm.mjs';

const exe = process.platform === 'win32' ? 'node.exe' : 'node';

/**
 * True when a Node of this version runs our TypeScript as it is (types are stripped without a flag).
 * @param {string} version
 */
export function runsTypeScript(version) {
  const [major = 0, minor = 0] = version
    .replace(/^v/, '')
    .split('.')
    .map((part) => Number(part));
  return major > 23 || (major === 23 && minor >= 6) || (major === 22 && minor >= 18);
}

/**
 * Where the binary belongs in node_modules; undefined when it is not there (a stub file does not count).
 * @param {string} root
 */
export function installedToolchain(root) {
  const path = join(root, 'node_modules/node/bin', exe);
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 1_000_000 ? path : undefined;
}

/**
 * The fetched binary of this version; undefined when it is not there or does not run.
 * @param {string} root
 * @param {string} version
 */
export function fetchedToolchain(root, version) {
  const path = join(folderOf(root, version), 'node_modules', platformPackage(), 'bin', exe);
  return versionOf(path) === version ? path : undefined;
}

/**
 * Fetches the binary through npm. Resolves to npm's end, with everything it printed.
 * @param {string} root
 * @param {string} version
 */
export async function fetchToolchain(root, version) {
  const cache = join(root, '.toolchain');
  const old = existsSync(cache) ? readdirSync(cache).filter((name) => name.startsWith('node-')) : [];
  for (const name of old) rmSync(join(cache, name), { recursive: true, force: true });
  const folder = folderOf(root, version);
  mkdirSync(folder, { recursive: true });
  const what = `${platformPackage()}@${version}`;
  return runNpm(process.execPath, folder, [
    'install',
    '--prefix',
    folder,
    '--no-save',
    '--no-package-lock',
    what,
  ]);
}

/**
 * Puts a fetched binary where `npx` and editors look for it: node_modules/node/bin and node_modules/.bin.
 * @param {string} root
 * @param {string} binary
 */
export function linkToolchain(root, binary) {
  const target = join(root, 'node_modules/node/bin', exe);
  mkdirSync(dirname(target), { recursive: true });
  rmSync(target, { force: true });
  try {
    linkSync(binary, target);
  } catch {
    copyFileSync(binary, target);
  }
  if (process.platform === 'win32') return;
  const onPath = join(root, 'node_modules/.bin/node');
  rmSync(onPath, { force: true });
  symlinkSync('../node/bin/node', onPath);
}

/**
 * Takes a binary away that is of no use here, so that the machine's own Node is found.
 * @param {string} root
 */
export function dropToolchain(root) {
  rmSync(join(root, 'node_modules/node/bin', exe), { force: true });
}

/**
 * The version a binary tells, without the `v`; undefined when it does not run.
 * @param {string} path
 */
export function versionOf(path) {
  if (!existsSync(path)) return undefined;
  try {
    return execFileSync(path, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
      .trim()
      .slice(1);
  } catch {
    return undefined;
  }
}

/**
 * The npm package that holds the binary for this machine.
 * @param {string} platform
 * @param {string} arch
 */
export function platformPackage(platform = process.platform, arch = process.arch) {
  const prefix = platform === 'darwin' && arch === 'arm64' ? 'node-bin' : 'node';
  return `${prefix}-${platform === 'win32' ? 'win' : platform}-${arch}`;
}

/**
 * @param {string} root
 * @param {string} version
 */
function folderOf(root, version) {
  return join(root, '.toolchain', `node-${version}`);
}
