/** Tests the commands with a store in Redis. Their own tests use a data folder. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../test/support/eventually.ts';
import { type FakeProvider, startFakeProvider } from '../../test/support/fake-provider/fake-provider.ts';
import { isRedisMissing, type RedisProcess, startRedis } from '../../test/support/redis-server.ts';
import { run } from './run.ts';
import { type TestTerminal, testTerminal } from '../../test/support/test-terminal.ts';

const sample = readFileSync('src/cli/samples/missing-invoices.json', 'utf8');

describe.skipIf(isRedisMissing)('memory in Redis', () => {
  let folder: string;
  let provider: FakeProvider;
  let redis: RedisProcess;
  let env: Readonly<Record<string, string>>;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'leporello-redis-cli-'));
    provider = await startFakeProvider({
      script: () => ({ type: 'turn', parts: [{ type: 'text', text: 'Hello' }] }),
    });
    redis = await startRedis('--requirepass', 'hush hush', '--appendonly', 'yes', '--appendfsync', 'always');
    env = {
      HOME: folder,
      LEPORELLO_OPENAI_URL: `${provider.url}/v1`,
      LEPORELLO_MODELS: '{"*":{"windowTokens":8000}}',
      LEPORELLO_MEMORY_REDIS_PORT: String(redis.port),
      LEPORELLO_MEMORY_REDIS_PASSWORD: 'hush hush',
    };
  });

  afterEach(async () => {
    await provider.close();
    await redis[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  async function serve(variables = env, argv: readonly string[] = ['--json']) {
    const terminal = testTerminal({ cwd: folder, env: variables });
    const ended = run(['serve', '--port', '0', ...argv], terminal);
    await terminal.shows('\n');
    const url = /http:\/\/[\d.]+:\d+/.exec(terminal.written.out())![0];
    return {
      terminal,
      async outcome() {
        const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body: sample });
        expect(response.status).toBe(200);
        return response.headers.get('x-leporello-outcome');
      },
      async stop() {
        terminal.stop();
        expect(await ended).toBe(0);
      },
    };
  }

  const everythingSaid = ({ written }: TestTerminal) => written.out() + written.err();

  it('is used by serve and recall, and needs no data folder when the secret is given', async () => {
    const shared = {
      ...env,
      LEPORELLO_DATA: '/dev/null/nowhere',
      LEPORELLO_SECRET: 'a secret that two gateways share',
    };
    const gateway = await serve(shared);
    expect(JSON.parse(gateway.terminal.written.out())).toMatchObject({ store: 'redis', data: null });
    expect(await gateway.outcome()).toBe('compacted');
    await gateway.stop();
    expect(everythingSaid(gateway.terminal)).not.toContain('hush');

    const [id] = /mem_\w{16}/.exec(new TextDecoder().decode(provider.requests[0]!.body))!;
    const reader = testTerminal({ cwd: folder, env: shared });
    expect(await run(['recall', id, '--raw'], reader)).toBe(0);
    expect(sample).toContain(reader.written.out().slice(1, 100));

    const stranger = { ...shared, LEPORELLO_SECRET: 'a secret that nobody shares with us' };
    const other = testTerminal({ cwd: folder, env: stranger });
    expect(await run(['recall', id], other)).toBe(1);
    expect(other.written.err()).toBe(
      `leporello: There is no original ${id} in Redis at 127.0.0.1:${redis.port}. It may have expired, or belong to another secret.\n`,
    );
  });

  it('is named in the text for a terminal', async () => {
    const gateway = await serve(env, []);
    expect(gateway.terminal.written.out()).toContain(`   store: Redis at 127.0.0.1:${redis.port}\n`);
    await gateway.stop();
  });

  it('may be down at the start: until it is back, requests are folded only to fit the window', async () => {
    await redis.kill();
    const gateway = await serve();
    await gateway.terminal.shows('until it can');
    expect(JSON.parse(gateway.terminal.written.err().split('\n')[0]!)).toEqual({
      level: 'warn',
      time: expect.any(String),
      reason: `The Redis store at 127.0.0.1:${redis.port} failed: connect ECONNREFUSED 127.0.0.1:${redis.port}. Start the server, or check host and port.`,
      msg: 'the store cannot be used now: until it can, requests are folded only when they would not fit the window',
    });
    expect(await gateway.outcome()).toBe('compacted');
    const reason = 'the request was sent without a new fold, or its fold could not be stored';
    const problems = () => gateway.terminal.written.err().split(reason).length - 1;
    expect(problems()).toBe(1);
    await redis.restart();
    await eventually(async () => {
      const before = problems();
      await gateway.outcome();
      expect(problems()).toBe(before);
    });
    await gateway.stop();
  });

  it('that refuses the login is reported without the password', async () => {
    const gateway = await serve({ ...env, LEPORELLO_MEMORY_REDIS_PASSWORD: 'hush' });
    expect(await gateway.outcome()).toBe('compacted');
    await gateway.stop();
    expect(everythingSaid(gateway.terminal)).toContain('WRONGPASS');
    expect(everythingSaid(gateway.terminal)).not.toContain('hush');
  });

  it('stores the originals of compact, and compact fails without it', async () => {
    const terminal = testTerminal({ cwd: folder, env, input: [sample] });
    expect(await run(['compact', '-'], terminal)).toBe(0);
    const [id] = /mem_\w{16}/.exec(terminal.written.out())!;
    expect(await run(['recall', id], testTerminal({ cwd: folder, env }))).toBe(0);

    await redis.kill();
    const refused = testTerminal({ cwd: folder, env, input: [sample] });
    expect(await run(['compact', '-'], refused)).toBe(1);
    expect(refused.written.out()).toBe('');
    expect(refused.written.err()).toMatch(/^leporello: The Redis store at .* failed: connect ECONNREFUSED/);
  });
});
