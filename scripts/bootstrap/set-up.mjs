/**
 * Brings a checkout to where a script can run: dependencies as the lockfile says, and a Node that runs TypeScript.
 * When all is there it costs one hash of the lockfile. Prints one line while it works, and errors in full.
 */
import { createHash } from 'node:crypto';
import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { notInstalled, thisMachine } from './installed.mjs';
import { runNpm } from './npm.mjs';
import { oneAtATime } from './one-at-a-time.mjs';
import {
  dropToolchain,
  fetchedToolchain,
  fetchToolchain,
  installedToolchain,
  linkToolchain,
  platformPackage,
  runsTypeScript,
  versionOf,
} from './toolchain.mjs';

/**
 * @typedef {import('./child.mjs').End & { output: string }} Told  how a command ended and what it printed
 * @typedef {{ status: 'ready', path: string } | { status: 'failed', signal: NodeJS.Signals | null }} SetUp
 */

/**
 * The Node to run with, or that there is none; what went wrong has been printed by then.
 * @param {string} root  the checkout
 * @returns {Promise<SetUp>}
 */
export async function setUp(root) {
  const stamp = stampOf(root);
  const ready = () => (isStamped(root, stamp) ? usableNode(root) : undefined);
  const path = ready();
  if (path !== undefined) return { status: 'ready', path };
  return oneAtATime(join(root, '.toolchain/lock'), async () => {
    const meanwhile = ready();
    if (meanwhile !== undefined) return { status: 'ready', path: meanwhile };
    const failure = await install(root);
    if (failure !== undefined) return { status: 'failed', signal: failure.signal };
    writeFileSync(stampFile(root), stamp);
    return { status: 'ready', path: usableNode(root) ?? process.execPath };
  });
}

/**
 * Undefined when all is well, else how it ended.
 * @param {string} root
 */
async function install(root) {
  const lock = readLock(join(root, 'package-lock.json'));
  const version = lock.packages['node_modules/node']?.version ?? '';
  const inPlace = isInstalled(root, lock);
  if (inPlace && hasToolchain(root, version)) return undefined;

  let binary = fetchedToolchain(root, version);
  if (binary === undefined && !ownNodeWillDo(root)) {
    const fetched = await step(`fetching Node ${version}`, () => fetchToolchain(root, version));
    if (fetched.code !== 0) return explain(fetched, noToolchain(version));
    binary = fetchedToolchain(root, version);
    if (binary === undefined)
      return explain(fetched, `${noToolchain(version)} It was fetched, but does not run.`);
  }
  if (!inPlace) {
    const args = ['ci', '--include=dev', '--include=optional'];
    const done = await step('installing dependencies', () => runNpm(binary ?? process.execPath, root, args));
    if (done.code !== 0)
      return explain(done, 'npm ci failed; its output is above. Mend what it says and run this again.');
  }
  if (binary === undefined) dropToolchain(root);
  else linkToolchain(root, binary);
  return undefined;
}

/**
 * @param {string} root
 * @param {string} version
 */
function hasToolchain(root, version) {
  const path = installedToolchain(root);
  return path === undefined ? runsTypeScript(process.version) : versionOf(path) === version;
}

/**
 * Our own Node runs the install, too, so it must not lie in the folder that npm empties first.
 * @param {string} root
 */
function ownNodeWillDo(root) {
  return (
    runsTypeScript(process.version) && !process.execPath.startsWith(join(realpathSync(root), 'node_modules'))
  );
}

/** @param {string} root */
function usableNode(root) {
  return installedToolchain(root) ?? (runsTypeScript(process.version) ? process.execPath : undefined);
}

/**
 * @param {string} root
 * @param {import('./installed.mjs').Lock} lock
 */
function isInstalled(root, lock) {
  try {
    const installed = readLock(join(root, 'node_modules/.package-lock.json'));
    return notInstalled(lock, installed, thisMachine()).length === 0;
  } catch {
    return false;
  }
}

/** @param {string} root */
function stampOf(root) {
  const hash = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  return `${process.platform} ${process.arch} ${hash}\n`;
}

/**
 * @param {string} root
 * @param {string} stamp
 */
function isStamped(root, stamp) {
  try {
    return readFileSync(stampFile(root), 'utf8') === stamp;
  } catch {
    return false;
  }
}

/** @param {string} root */
function stampFile(root) {
  return join(root, 'node_modules/.leporello-set-up');
}

/**
 * @param {string} path
 * @returns {import('./installed.mjs').Lock}
 */
function readLock(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}

/**
 * @param {string} name
 * @param {() => Promise<Told>} work
 */
async function step(name, work) {
  process.stderr.write(`Setting up, once: ${name} ... `);
  const start = Date.now();
  const end = await work();
  process.stderr.write(end.code === 0 ? `${((Date.now() - start) / 1000).toFixed(1)} s\n` : 'failed\n');
  return end;
}

/**
 * @param {Told} end
 * @param {string} what
 */
function explain(end, what) {
  // Interrupted: whoever pressed Ctrl-C knows why.
  if (end.signal === null) process.stderr.write(`${end.output}\n${what}\n`);
  return end;
}

/** @param {string} version */
function noToolchain(version) {
  return (
    `This Node is ${process.version}; Leporello needs 22.18 or newer. Node ${version} could not be had as the npm package ` +
    `${platformPackage()}. Install Node 22.18 or newer yourself and run this again.`
  );
}
