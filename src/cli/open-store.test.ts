/** Tests the commands with a store in a service of the user's own. */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { memoryServer } from '../../examples/memory-server.ts';
import { testTerminal } from '../../test/support/test-terminal.ts';
import { run } from './run.ts';

const sample = readFileSync('src/cli/samples/missing-invoices.json', 'utf8');

describe('memory in a service of the user', () => {
  let folder: string;
  let server: Server;
  let url: string;
  let env: Readonly<Record<string, string>>;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'leporello-http-cli-'));
    server = memoryServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    env = {
      HOME: folder,
      LEPORELLO_SECRET: 'a secret that two gateways share',
      LEPORELLO_MODELS: '{"*":{"windowTokens":8000}}',
      LEPORELLO_MEMORY_HTTP_URL: url,
      LEPORELLO_MEMORY_HTTP_TOKEN: 'hush',
      LEPORELLO_MEMORY_HTTP_TIMEOUT_MS: '60000',
      LEPORELLO_LIMITS_STORE_DEADLINE_MS: '60000',
    };
  });

  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    if (server.listening) await once(server, 'close');
    rmSync(folder, { recursive: true, force: true });
  });

  it('is used by compact and recall, without a data folder', async () => {
    const shared = { ...env, LEPORELLO_DATA: '/dev/null/nowhere' };
    const terminal = testTerminal({ cwd: folder, env: shared, input: [sample] });
    expect(await run(['compact', '-'], terminal)).toBe(0);
    const [id] = /mem_\w{16}/.exec(terminal.written.out())!;
    const reader = testTerminal({ cwd: folder, env: shared });
    expect(await run(['recall', id, '--raw'], reader)).toBe(0);
    expect(sample).toContain(reader.written.out().slice(1, 100));

    const stranger = { ...shared, LEPORELLO_SECRET: 'a secret that nobody shares with us' };
    const other = testTerminal({ cwd: folder, env: stranger });
    expect(await run(['recall', id], other)).toBe(1);
    expect(other.written.err()).toBe(
      `leporello: There is no original ${id} in the service at ${url}. It may have expired, or belong to another secret.\n`,
    );
  });

  it('is named by serve, without the token', async () => {
    const terminal = testTerminal({ cwd: folder, env });
    const ended = run(['serve', '--port', '0'], terminal);
    await terminal.shows(`store: the service at ${url}\n`);
    terminal.stop();
    expect(await ended).toBe(0);
    expect(terminal.written.out() + terminal.written.err()).not.toContain('hush');
  });

  it('makes serve warn if another secret has written it', async () => {
    const warnings: string[] = [];
    for (const secret of ['the secret of the first gateway ever', 'a secret that somebody made later']) {
      const terminal = testTerminal({ cwd: folder, env: { ...env, LEPORELLO_SECRET: secret } });
      const ended = run(['serve', '--port', '0', '--set', 'logLevel=warn'], terminal);
      await terminal.shows('Leporello listens');
      terminal.stop();
      expect(await ended).toBe(0);
      warnings.push(terminal.written.err().replace(/"time":"[^"]+",/, ''));
    }
    expect(warnings).toEqual([
      '',
      '{"level":"warn","variable":"LEPORELLO_SECRET","msg":"the store was written with another secret, so what it holds from then cannot be read: set LEPORELLO_SECRET to that secret or restore the file secret in the data folder"}\n',
    ]);
  });

  it('cannot be configured beside Redis', async () => {
    const both = { ...env, LEPORELLO_MEMORY_REDIS: 'true' };
    const terminal = testTerminal({ cwd: folder, env: both, input: [sample] });
    expect(await run(['compact', '-'], terminal)).not.toBe(0);
    expect(terminal.written.err()).toBe(
      'leporello: memory.redis and memory.http are both set: remove one of them.\n',
    );
  });
});
