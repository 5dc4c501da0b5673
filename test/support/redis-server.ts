/**
 * Starts a real Redis or Valkey server for tests: an empty one on a free port of the loopback, in a folder of its own. If none is
 * installed, tests that need one are skipped and a line says so; in CI, which sets REQUIRE_REDIS, they fail.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';

const binary = ['redis-server', 'valkey-server'].find(
  (name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).error === undefined,
);

/** True if the tests are to be skipped, for `describe.skipIf`. */
export const isRedisMissing: boolean = binary === undefined && process.env['REQUIRE_REDIS'] === undefined;

if (isRedisMissing)
  process.stdout.write(
    'Skipped: tests that need a Redis. Neither redis-server nor valkey-server is here; install one of them.\n',
  );

export type RedisProcess = AsyncDisposable & {
  readonly port: number;
  /** Ends the server with SIGKILL. */
  kill(): Promise<void>;
  /** Starts the server again on the same port, with the data in its folder. */
  restart(): Promise<void>;
  /** Stops the server from answering; its connections stay open. */
  freeze(): void;
  thaw(): void;
};

/**
 * Starts a server. `settings` are those of redis.conf, as flags: `'--appendonly', 'yes'`; `PORT` in one is replaced by the server's port. By
 * default it stores nothing on disk.
 */
export async function startRedis(...settings: readonly string[]): Promise<RedisProcess> {
  if (binary === undefined)
    throw new Error('REQUIRE_REDIS is set, but neither redis-server nor valkey-server is here: install one.');
  const folder = await mkdtemp(join(tmpdir(), 'leporello-redis-'));
  const port = await freePort();
  const own = ['--port', 'PORT', '--bind', '127.0.0.1', '--dir', folder, '--save', ''];
  const flags = [...own, ...settings].map((flag) => flag.replace('PORT', String(port)));
  let running = await launch(binary, flags);
  const killWithUs = (): void => void running.kill('SIGKILL');
  process.once('exit', killWithUs);

  async function kill(): Promise<void> {
    if (running.exitCode !== null || running.signalCode !== null) return;
    running.kill('SIGKILL');
    await once(running, 'exit');
  }

  return {
    port,
    kill,
    async restart() {
      await kill();
      running = await launch(binary, flags);
    },
    freeze: () => void running.kill('SIGSTOP'),
    thaw: () => void running.kill('SIGCONT'),
    async [Symbol.asyncDispose]() {
      await kill();
      process.off('exit', killWithUs);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function launch(program: string, flags: readonly string[]): Promise<ChildProcess> {
  const child = spawn(program, flags, { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  await new Promise<void>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (said.includes('eady to accept connections')) return;
      said += text;
      if (said.includes('eady to accept connections')) resolve();
    });
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`${program} ${flags.join(' ')} ended: ${said}`)));
  });
  return child;
}
