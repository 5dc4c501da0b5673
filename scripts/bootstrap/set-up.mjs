/**
 * Installs the dependencies of the lockfile and, where this machine's Node cannot run TypeScript, the Node that the lockfile names.
 * A stamp in node_modules says what is installed: it is removed before an install and written after it, so that an install that was
 * interrupted is done again. When the stamp is right, the set-up costs one hash of the lockfile.
 */
import { createHash } from 'node:crypto';
import { accessSync, constants, lstatSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runNpm } from './npm.mjs';
import { oneAtATime } from './one-at-a-time.mjs';
import {
  fetchedToolchain,
  fetchToolchain,
  installedToolchain,
  linkToolchain,
  runsTypeScript,
} from './toolchain.mjs';

/**
 * Returns the path of the Node to run with. Returns undefined when there is none; the reason has been printed by then.
 * @param {string} root  the checkout
 * @param {{ isProduction?: boolean, nodeVersion?: string }} [options]  nodeVersion: the version of the Node that runs this
 */
export async function setUp(root, { isProduction = false, nodeVersion = process.version } = {}) {
  const lockfile = readFileSync(join(root, 'package-lock.json'), 'utf8');
  const stampFile = join(root, 'node_modules/.leporello-set-up');
  const stamp = `${process.platform} ${process.arch} ${createHash('sha256').update(lockfile).digest('hex')}`;

  const readyNode = () => {
    const found = textOf(stampFile);
    const isInstalled = found === `${stamp} all` || (isProduction && found === `${stamp} production`);
    if (!isInstalled) return undefined;
    return runsTypeScript(nodeVersion) ? process.execPath : installedToolchain(root);
  };

  const node = readyNode();
  if (node !== undefined) return node;
  const modules = join(root, 'node_modules');
  if (lstatSync(modules, { throwIfNoEntry: false })?.isSymbolicLink()) {
    process.stderr.write(
      `${modules} is a link to ${realpathSync(modules)}, which the installation would empty. Remove the link, or set up the checkout that it points into, and run this again.\n`,
    );
    return undefined;
  }
  if (!isWritable(root)) {
    process.stderr.write(
      `This checkout must be set up, but this user may not write ${root}. Run npm start there once as its owner, then run this again.\n`,
    );
    return undefined;
  }
  return oneAtATime(join(root, '.toolchain/lock'), async () => {
    // Another process may have installed everything while this one waited.
    const installedMeanwhile = readyNode();
    if (installedMeanwhile !== undefined) return installedMeanwhile;
    // A checkout that has the tools for tests keeps them.
    const hasTools = textOf(stampFile)?.endsWith(' all');
    const isSmall = isProduction && hasTools !== true;
    rmSync(stampFile, { force: true });
    const toolchain = JSON.parse(lockfile).packages['node_modules/node'].version;
    const start = Date.now();
    try {
      await install(root, { isProduction: isSmall, nodeVersion, toolchain });
    } catch (error) {
      process.stderr.write(`failed\n${error instanceof Error ? error.message : String(error)}\n`);
      return undefined;
    }
    writeFileSync(stampFile, `${stamp} ${isSmall ? 'production' : 'all'}`);
    process.stderr.write(`${((Date.now() - start) / 1000).toFixed(1)} s\n`);
    return readyNode();
  });
}

/**
 * Tools are installed by a Node that can run them: an npm run by an old Node leaves out their native packages without a word.
 * Production dependencies have no native packages, so they are installed while the toolchain is fetched.
 * @param {string} root
 * @param {{ isProduction: boolean, nodeVersion: string, toolchain: string }} options
 */
async function install(root, { isProduction, nodeVersion, toolchain }) {
  // npm empties node_modules, so a Node inside it cannot run npm.
  const isInside = process.execPath.startsWith(join(realpathSync(root), 'node_modules'));
  const needsToolchain = !runsTypeScript(nodeVersion) || isInside;
  const folder = join(root, '.toolchain/node');
  const isFetched = fetchedToolchain(folder, toolchain) !== undefined;
  const what = isProduction ? 'production dependencies' : 'all dependencies';
  const andNode = needsToolchain && !isFetched ? ` and Node ${toolchain}` : '';
  process.stderr.write(`Setting up, once: installing ${what}${andNode} ... `);

  const fetching = needsToolchain ? fetchToolchain(folder, toolchain) : undefined;
  const npmNode = isProduction && !isInside ? process.execPath : ((await fetching) ?? process.execPath);
  const include = isProduction ? '--omit=dev' : '--include=dev';
  const results = await Promise.allSettled([
    fetching,
    runNpm(npmNode, root, ['ci', include, '--include=optional']),
  ]);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
  linkToolchain(root, await fetching);
}

/** @param {string} folder */
function isWritable(folder) {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** @param {string} path */
function textOf(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
