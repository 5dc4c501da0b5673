/**
 * The Node that the lockfile names (devDependency `node`), for machines whose own Node is too old to run TypeScript. The npm package
 * `node` fetches the real binary in an install script, which npm may refuse to run, and it is a development dependency, which
 * `npm start` does not install. So the set-up fetches the platform's package itself, once per checkout, into .toolchain/, and links
 * the binary to where the package `node` would have put it.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, linkSync, mkdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runNpm } from './npm.mjs';

const executable = process.platform === 'win32' ? 'node.exe' : 'node';

/**
 * True when a Node of this version runs TypeScript as it is, that is, strips types without a flag.
 * @param {string} version
 */
export function runsTypeScript(version) {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  return major > 23 || (major === 23 && minor >= 6) || (major === 22 && minor >= 18);
}

/**
 * Returns the path of the binary in node_modules. Returns undefined when it is missing, or a placeholder of the package `node`.
 * @param {string} root
 */
export function installedToolchain(root) {
  const path = join(root, 'node_modules/node/bin', executable);
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 1_000_000 ? path : undefined;
}

/**
 * Returns the path of a binary that was fetched before. Returns undefined when it is missing, of another version, or does not run.
 * @param {string} folder
 * @param {string} version  such as 24.21.0 or 24
 */
export function fetchedToolchain(folder, version) {
  const path = join(folder, 'node_modules', platformPackage(), 'bin', executable);
  try {
    const printed = execFileSync(path, ['--version'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return `${printed.trim()}.`.startsWith(`v${version}.`) ? path : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Fetches the binary of this version through npm into a folder, unless it is there, and returns its path.
 * @param {string} folder
 * @param {string} version
 */
export async function fetchToolchain(folder, version) {
  const found = fetchedToolchain(folder, version);
  if (found !== undefined) return found;
  const name = `${platformPackage()}@${version}`;
  const advice = `This Node is ${process.version}. Leporello needs Node 22.18 or newer and could not get one as the npm package ${name}. Install Node 22.18 or newer and run this again.`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  try {
    const prefix = ['--prefix', folder];
    await runNpm(process.execPath, folder, ['install', ...prefix, '--no-save', '--no-package-lock', name]);
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${advice}`, { cause: error });
  }
  const fetched = fetchedToolchain(folder, version);
  if (fetched === undefined) throw new Error(`${advice} The package is here, but its binary does not run.`);
  return fetched;
}

/**
 * Links a binary to where npm scripts, `npx` and editors look for Node: node_modules/node/bin and node_modules/.bin. Without a
 * binary it removes the placeholder of the package `node`, so that the machine's own Node is found.
 * @param {string} root
 * @param {string | undefined} binary
 */
export function linkToolchain(root, binary) {
  const target = join(root, 'node_modules/node/bin', executable);
  rmSync(target, { force: true });
  if (binary === undefined) return;
  mkdirSync(dirname(target), { recursive: true });
  try {
    linkSync(binary, target);
  } catch {
    copyFileSync(binary, target);
  }
  if (process.platform === 'win32') return;
  const onPath = join(root, 'node_modules/.bin/node');
  mkdirSync(dirname(onPath), { recursive: true });
  rmSync(onPath, { force: true });
  symlinkSync('../node/bin/node', onPath);
}

/**
 * Returns the name of the npm package that holds the binary for a machine.
 * @param {string} platform
 * @param {string} arch
 */
export function platformPackage(platform = process.platform, arch = process.arch) {
  const prefix = platform === 'darwin' && arch === 'arm64' ? 'node-bin' : 'node';
  return `${prefix}-${platform === 'win32' ? 'win' : platform}-${arch}`;
}
