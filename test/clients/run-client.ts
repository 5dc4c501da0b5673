/** Runs a CLI once, headless, in its own home folder, until it ends or its time limit is reached. */
import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Setup } from './client.ts';
import { path } from './install.ts';

export type ClientRun = {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly ms: number;
};

const timeLimitMs = 120_000;

/** The client's environment, without keys, proxies and settings of ours. */
const baseEnvironment = {
  CI: 'true',
  NO_COLOR: '1',
  TERM: 'dumb',
  LANG: 'C.UTF-8',
  DO_NOT_TRACK: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_AUTOUPDATER: '1',
  DISABLE_ERROR_REPORTING: '1',
};

export async function runClient(
  command: string,
  setup: Setup,
  places: { readonly home: string; readonly folder: string },
): Promise<ClientRun> {
  const { home, folder } = places;
  for (const [name, content] of Object.entries(setup.files ?? {})) {
    await mkdir(dirname(join(home, name)), { recursive: true });
    await writeFile(join(home, name), content);
  }
  const started = performance.now();
  const child = spawn(command, setup.args, {
    cwd: folder,
    env: { PATH: path, HOME: home, TMPDIR: home, ...baseEnvironment, ...setup.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // It gets its own process group, so that its child processes end with it.
    detached: true,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const kill = () => endGroup(child.pid);
  const timer = setTimeout(kill, timeLimitMs);
  process.once('exit', kill);
  try {
    const { code, signal } = await new Promise<Pick<ClientRun, 'code' | 'signal'>>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (exit, by) => resolve({ code: exit, signal: by }));
    });
    return { code, signal, stdout, stderr, ms: performance.now() - started };
  } finally {
    clearTimeout(timer);
    process.off('exit', kill);
    kill();
  }
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group has already ended.
  }
}
