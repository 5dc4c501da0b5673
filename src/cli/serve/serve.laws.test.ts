import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/support/eventually.ts';
import { type FakeProvider, startFakeProvider } from '../../../test/support/fake-provider/fake-provider.ts';
import type { Reply, Script } from '../../../test/support/fake-provider/script.ts';
import { parseArgs } from '../args.ts';
import type { ServeArgs } from '../command-args.ts';
import { run } from '../run.ts';
import { serve } from './serve.ts';
import { ownCommand } from '../home.ts';
import { clientHelp } from '../wrap/clients.ts';
import {
  testTerminal,
  type TestTerminal,
  type TestTerminalOptions,
} from '../../../test/support/test-terminal.ts';

const sample = readFileSync('src/cli/samples/missing-invoices.json', 'utf8');
const hello: Reply = { type: 'turn', parts: [{ type: 'text', text: 'Hello' }] };

let folder: string;
let provider: FakeProvider | undefined;
const children: ChildProcessWithoutNullStreams[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leporello-serve-'));
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await provider?.close();
  provider = undefined;
  rmSync(folder, { recursive: true, force: true });
});

type Started = {
  readonly url: string;
  readonly told: Readonly<Record<string, unknown>>;
  readonly terminal: TestTerminal;
  readonly ended: Promise<number>;
};

async function start(
  argv: readonly string[] = [],
  options: TestTerminalOptions & { readonly script?: Script } = {},
): Promise<Started> {
  provider = await startFakeProvider({ script: options.script ?? [hello, hello] });
  const env = { HOME: folder, LEPORELLO_OPENAI_URL: `${provider.url}/v1`, ...options.env };
  const terminal = testTerminal({ cwd: folder, ...options, env });
  const ended = run(['serve', '--port', '0', '--json', ...argv], terminal);
  await terminal.shows('\n');
  const told = JSON.parse(terminal.written.out()) as Record<string, unknown>;
  return { url: told['url'] as string, told, terminal, ended };
}

function ask(url: string, body: string): Promise<Response> {
  return fetch(`${url}/v1/chat/completions?key=in-the-query`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-secret' },
    body,
  });
}

const small = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'private words' }] });

describe('leporello serve', () => {
  it('serves, logs without content and keys, and ends with 0 when it is stopped', async () => {
    const { url, told, terminal, ended } = await start();
    expect(told).toEqual({
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      host: '127.0.0.1',
      port: expect.any(Number),
      store: 'sqlite',
      data: join(folder, '.leporello'),
    });
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    const response = await ask(url, small);
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: 'Hello' } }] });
    expect(new TextDecoder().decode(provider!.requests[0]!.body)).toBe(small);
    terminal.stop();
    expect(await ended).toBe(0);
    await expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed');
    const log = terminal.written
      .err()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
    expect(log).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        method: 'POST',
        path: '/v1/chat/completions',
        status: 200,
        outcome: 'untouched',
        tokensBefore: expect.any(Number),
        tokensAfter: expect.any(Number),
        receipt: response.headers.get('x-leporello-receipt'),
        ms: expect.any(Number),
        msg: 'request',
      },
      expect.objectContaining({ level: 'info', drainMs: 30_000 }),
    ]);
    expect(terminal.written.err()).not.toMatch(/private words|sk-secret|in-the-query/);
  });

  it('folds as configured, and keeps its store for the next start', async () => {
    writeFileSync(
      join(folder, 'config.json'),
      JSON.stringify({
        models: { 'demo-*': { windowTokens: 8_000 } },
        data: 'memory',
        adminToken: 'administrator-16',
      }),
    );
    const first = await start(['--config', 'config.json']);
    const response = await ask(first.url, sample);
    expect(response.headers.get('x-leporello-outcome')).toBe('compacted');
    const sent = new TextDecoder().decode(provider!.requests[0]!.body);
    first.terminal.stop();
    await first.ended;
    const id = /mem_\w{16}/.exec(sent)![0];
    await provider!.close();

    const second = await start(['--config', 'config.json']);
    const memory = await fetch(`${second.url}/_leporello/memory/${id}`, {
      headers: { authorization: 'Bearer administrator-16' },
    });
    expect(memory.status).toBe(200);
    expect(sample).toContain((await memory.text()).slice(1, 100));
    await ask(second.url, sample);
    expect(new TextDecoder().decode(provider!.requests[0]!.body)).toBe(sent);
    second.terminal.stop();
    expect(await second.ended).toBe(0);
  });

  it('has one tenant on a loopback host: a new token is the same user, and receipts need no token', async () => {
    const { url, terminal, ended } = await start();
    for (const token of ['token-a', 'token-b']) {
      await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: small,
      });
    }
    const receipts = (await (await fetch(`${url}/_leporello/receipts`)).json()) as { receipts: unknown[] };
    expect(receipts.receipts.length).toBe(2);
    terminal.stop();
    expect(await ended).toBe(0);
  });

  it('shows on its page what doctor finds, with its own port', async () => {
    provider = await startFakeProvider({ script: [] });
    const env = {
      HOME: folder,
      LEPORELLO_OPENAI_URL: provider.url,
      LEPORELLO_GEMINI_URL: provider.url,
      LEPORELLO_ANTHROPIC_URL: 'http://127.0.0.1:1',
    };
    const terminal = testTerminal({ cwd: folder, env });
    const args = parseArgs(['serve', '--port', '0', '--json']) as ServeArgs;
    const ended = serve(args, terminal, 600_000);
    await terminal.shows('\n');
    const { url } = JSON.parse(terminal.written.out()) as { readonly url: string };
    const page = await (await fetch(`${url}/_leporello/setup`)).text();
    expect(page).toContain(`A gateway runs on ${url} for `);
    expect(page).toMatch(
      /<strong class="alert">failure<\/strong> http:\/\/127\.0\.0\.1:1 \(anthropicUrl\) cannot be reached: .*?Fix: /,
    );
    expect(page).toMatch(/<\/html>\n$/);
    terminal.stop();
    expect(await ended).toBe(0);
  });

  it('prints how to connect clients, and short log lines, on a terminal', async () => {
    provider = await startFakeProvider({ script: [hello] });
    const terminal = testTerminal({
      cwd: folder,
      env: { HOME: folder, LEPORELLO_OPENAI_URL: `${provider.url}/v1` },
      isTty: { out: true, err: true },
    });
    const ended = run(['serve', '--port', '0'], terminal);
    await terminal.shows('/_leporello/receipts');
    const url = /http:\/\/[\d.:]+/.exec(terminal.written.out())![0];
    expect(terminal.written.out()).toBe(
      `Leporello listens on ${url}   store: ${join(folder, '.leporello')}\n\n${clientHelp(url, (words) => `${ownCommand} ${words} --port ${new URL(url).port}`)}\n`,
    );
    // With only a base URL, some versions send all tools in full.
    expect(terminal.written.out()).toContain(
      `\n  Claude Code     ANTHROPIC_BASE_URL=${url} ENABLE_TOOL_SEARCH=true claude\n`,
    );
    await ask(url, small);
    await fetch(`${url}/v1/models`);
    terminal.stop();
    await ended;
    const lines = terminal.written.err().split('\n');
    expect(lines[0]).toMatch(
      /^\d\d:\d\d:\d\d {2}POST \/v1\/chat\/completions {2}200 {2}untouched \d+ tokens {2}\d+ ms$/,
    );
    expect(lines[1]).toMatch(/^\d\d:\d\d:\d\d {2}GET \/v1\/models {2}404 {2}\d+ ms$/);
    expect(lines[2]).toMatch(
      /^\d\d:\d\d:\d\d {2}stopping: requests in progress may finish; send the signal again to cut them off {2}drainMs=30000$/,
    );
  });

  it('lets requests in progress finish when it is stopped, and accepts no new ones', async () => {
    const goesOn = Promise.withResolvers<void>();
    const slow: Reply = {
      type: 'turn',
      parts: [
        { type: 'text', text: 'one ' },
        { type: 'text', text: 'two' },
      ],
      pauseBeforePart: { 1: goesOn.promise },
    };
    const { url, terminal, ended } = await start([], { script: [slow] });
    const response = await ask(url, JSON.stringify({ ...JSON.parse(small), stream: true }));
    terminal.stop();
    await terminal.shows('stopping');
    await expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed');
    goesOn.resolve();
    const text = await response.text();
    expect(text).toContain('two');
    expect(text).toContain('[DONE]');
    expect(await ended).toBe(0);
  });

  it('waits for no summary when it is stopped', async () => {
    const settings = [
      'summaries={"kind":"model","deadlineMs":3600000}',
      'triggers.tokenBudget={"triggerTokens":4000,"targetTokens":1000,"bufferTokens":1}',
    ];
    const script: Script = ({ body }) =>
      JSON.stringify(body).includes('You write down') ? { type: 'hang' } : hello;
    const { url, terminal, ended } = await start(
      settings.flatMap((one) => ['--set', one]),
      { script },
    );
    const said = Array.from({ length: 16 }, (_, at) => ({
      role: at % 2 === 0 ? 'user' : 'assistant',
      content: `Letter ${at}. ${'And so it went on. '.repeat(36)}`,
    }));
    const messages = [...said, { role: 'user', content: 'Go on.' }];
    const tools = [{ type: 'function', function: { name: 'read', parameters: { type: 'object' } } }];
    expect((await ask(url, JSON.stringify({ model: 'gpt-4o', messages, tools }))).status).toBe(200);
    await eventually(() => expect(provider!.requests.length).toBe(2));
    terminal.stop();
    expect(await ended).toBe(0);
  });

  it('cuts requests when it is stopped twice', async () => {
    const { url, terminal, ended } = await start([], { script: [{ type: 'hang', afterEvents: 1 }] });
    const response = await ask(url, JSON.stringify({ ...JSON.parse(small), stream: true }));
    terminal.stop();
    terminal.stop();
    expect(await ended).toBe(0);
    await expect(response.text()).rejects.toThrow('terminated');
    expect(await provider!.requests[0]!.ended).toBe('broken-off');
  });
});

describe('leporello serve with a problem', () => {
  it('serves without a data folder, and says what is lost and why', async () => {
    writeFileSync(join(folder, 'file'), '');
    const { url, told, terminal, ended } = await start([
      '--data',
      'file/data',
      '--set',
      'models={"*":{"windowTokens":8000}}',
    ]);
    expect(told).toMatchObject({ store: 'in-memory', data: null });
    const response = await ask(url, sample);
    expect(response.status).toBe(200);
    expect(response.headers.get('x-leporello-outcome')).toBe('compacted');
    terminal.stop();
    expect(await ended).toBe(0);
    expect(JSON.parse(terminal.written.err().split('\n')[0]!)).toEqual({
      level: 'warn',
      time: expect.any(String),
      reason: expect.stringMatching(/^Cannot read or create the secret file .*file\/data\/secret: ENOTDIR/),
      msg: 'the data folder cannot be used: originals and folds are kept in memory and lost when this process ends',
    });
  });

  it('serves with a Redis that is away, and ends with 0 when it is stopped', async () => {
    const { url, told, terminal, ended } = await start(
      ['--set', 'memory.redis.host=127.0.0.1', '--set', 'memory.redis.port=1'],
      { env: { LEPORELLO_SECRET: 'a secret of more than 32 characters' } },
    );
    expect(told).toMatchObject({ store: 'redis' });
    expect((await ask(url, small)).status).toBe(200);
    terminal.stop();
    expect(await ended).toBe(0);
    expect(terminal.written.err()).toMatch(
      /"reason":"The Redis store at 127\.0\.0\.1:1 failed: connect ECONNREFUSED/,
    );
  });

  it('serves with a damaged store, too', async () => {
    mkdirSync(join(folder, 'data'));
    writeFileSync(
      join(folder, 'data', 'memory.sqlite'),
      'this is no database, whatever its name says'.repeat(50),
    );
    const { told, terminal, ended } = await start(['--data', 'data']);
    expect(told).toMatchObject({ store: 'in-memory' });
    terminal.stop();
    expect(await ended).toBe(0);
    expect(terminal.written.err()).toMatch(
      /"reason":"The store .*memory\.sqlite failed: file is not a database\./,
    );
    expect(readFileSync(join(folder, 'data', 'memory.sqlite'), 'utf8')).toMatch(/^this is no database/);
  });

  it('does not start with an invalid secret', async () => {
    const terminal = testTerminal({ cwd: folder, env: { HOME: folder, LEPORELLO_SECRET: 'short' } });
    expect(await run(['serve', '--port', '0'], terminal)).toBe(2);
    expect(terminal.written.err()).toMatch(
      /^leporello: LEPORELLO_SECRET has 5 characters; it needs at least 32\./,
    );
  });

  it('warns of addresses that others can reach, and of unknown variables', async () => {
    const { terminal, ended } = await start(['--host', '0.0.0.0'], {
      env: { LEPORELLO_SERVICE_HOST: '10.0.0.1' },
    });
    terminal.stop();
    await ended;
    const [host, variables] = terminal.written.err().split('\n');
    expect(JSON.parse(host!)).toMatchObject({
      level: 'warn',
      host: '0.0.0.0',
      msg: 'other machines can reach this address: anyone there can send requests through it, and keys are sent unencrypted; use a TLS proxy in front, or listen on 127.0.0.1',
    });
    expect(JSON.parse(variables!)).toMatchObject({ level: 'warn', variables: ['LEPORELLO_SERVICE_HOST'] });
  });

  it('says what to do when it cannot listen', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const said = async (...argv: readonly string[]): Promise<string> => {
      const terminal = testTerminal({ cwd: folder, env: { HOME: folder } });
      expect(await run(['serve', ...argv], terminal)).toBe(2);
      expect(terminal.written.out()).toBe('');
      return terminal.written.err();
    };
    expect(await said('--port', String(port))).toBe(
      `leporello: Port ${port} on 127.0.0.1 is in use by another program. Stop it, or use another port: ${ownCommand} serve --port ${port === 65_535 ? port - 1 : port + 1} (0 uses any free port).\n`,
    );
    taken.close();
    expect(await said('--port', '0', '--host', '192.0.2.1')).toBe(
      'leporello: 192.0.2.1 is not an address of this machine. Use 127.0.0.1, or 0.0.0.0 for all addresses (--host).\n',
    );
  });
});

describe('the process leporello serve', () => {
  async function spawned(...argv: readonly string[]) {
    const child = spawn(process.execPath, ['src/cli/main.ts', 'serve', '--port', '0', '--json', ...argv], {
      env: { ...process.env, HOME: folder },
    });
    children.push(child);
    const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
    return { child, url: (JSON.parse(line) as { readonly url: string }).url };
  }

  it('is not ready until it is warm, whatever the query of the probe', async () => {
    const { url } = await spawned();
    expect((await fetch(`${url}/readyz?probe=1`)).status).toBe(503);
    await eventually(async () => expect((await fetch(`${url}/readyz?probe=1`)).status).toBe(200));
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('ends with 0 after %s', async (signal) => {
    const { child, url } = await spawned();
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    await eventually(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200));
    child.kill(signal);
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('continues when its output is closed', async () => {
    const { child, url } = await spawned();
    child.stdout.destroy();
    child.stderr.destroy();
    expect((await fetch(`${url}/nowhere`)).status).toBe(404);
    expect((await fetch(`${url}/nowhere`)).status).toBe(404);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });
});
