/** Runs `leporello wrap` as a process, with a small program in the place of each agent CLI. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ownCommand } from '../home.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { type FakeProvider, startFakeProvider } from '../../../test/support/fake-provider/fake-provider.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { portUser } from '../running-gateway.ts';

/** A client: it asks once for each `ask`, waits until a file exists for each other word, and ends with 7. */
const clientSource = `#!/usr/bin/env node
import { existsSync, writeFileSync } from 'node:fs';
const body = JSON.stringify({ model: 'claude-sonnet-4-5', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] });
const headers = { 'x-api-key': 'k', 'content-type': 'application/json' };
const pause = () => new Promise((resolve) => setTimeout(resolve, 20));
writeFileSync('started-' + process.argv.at(-1), String(process.pid));
for (const word of process.argv.slice(2)) {
  if (word === 'ask') {
    for (;;) {
      const response = await fetch(process.env.ANTHROPIC_BASE_URL + '/v1/messages', { method: 'POST', headers, body }).catch(() => undefined);
      if (response) { console.log(response.status, process.env.ENABLE_TOOL_SEARCH); await response.text(); break; }
      await pause();
    }
  } else if (word === 'stdin') {
    for await (const chunk of process.stdin) console.log(String(chunk));
  } else while (!existsSync(word)) await pause();
}
process.exit(7);
`;

let folder: string;
let provider: FakeProvider;
let port: number;
const running = new Set<ChildProcess>();

beforeAll(async () => {
  provider = await startFakeProvider({
    script: () => ({ type: 'turn', parts: [{ type: 'text', text: 'Hello' }] }),
  });
});

afterAll(() => provider.close());

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'leporello-wrap-'));
  mkdirSync(join(folder, 'bin'));
  mkdirSync(join(folder, 'home', '.claude'), { recursive: true });
  writeFileSync(join(folder, 'home', '.claude', 'settings.json'), '{"theme": "dark"}\n');
  writeFileSync(join(folder, 'bin', 'package.json'), '{"type": "module"}');
  writeFileSync(join(folder, 'bin', 'claude'), clientSource);
  chmodSync(join(folder, 'bin', 'claude'), 0o755);
  port = await freePort();
});

afterEach(async () => {
  // A gateway ends with the clients, which wait for these files.
  for (const name of ['go', 'go-on', 'end']) writeFileSync(join(folder, name), '');
  for (const child of running) child.kill('SIGKILL');
  running.clear();
  await eventually(async () => expect(await user()).toBe('nobody'));
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}, 240_000);

async function user(): Promise<string> {
  return (await portUser({ host: '127.0.0.1', port }, undefined, 10_000)).kind;
}

/** Starts a wrap. Resolves `ended` with its exit code and output. */
function wraps(...argv: readonly string[]) {
  return wrapsWith({}, ...argv);
}

/** Does the same with more variables. */
function wrapsWith(variables: Readonly<Record<string, string>>, ...argv: readonly string[]) {
  const child = spawn(process.execPath, [resolve('src/cli/main.ts'), 'wrap', ...argv], {
    cwd: folder,
    env: {
      PATH: [join(folder, 'bin'), dirname(process.execPath)].join(delimiter),
      HOME: join(folder, 'home'),
      LEPORELLO_PORT: String(port),
      LEPORELLO_ANTHROPIC_URL: provider.url,
      ...variables,
    },
    stdio: 'pipe',
  });
  running.add(child);
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, out, err }));
  return { child, ended };
}

/** Resolves when the client whose last argument is this has started. */
async function started(word: string): Promise<number> {
  const file = join(folder, `started-${word}`);
  await eventually(() => expect(readFileSync(file, 'utf8')).not.toBe(''));
  return Number(readFileSync(file, 'utf8'));
}

const touch = (name: string): void => writeFileSync(join(folder, name), '');

/** Lists the files of a folder with their contents and times, without those of Leporello. */
function filesIn(path: string): readonly string[] {
  return readdirSync(path, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !/\/\.(?:leporello|cache)\/|\/Library\//.test(file))
    .map((file) => `${file} ${statSync(file).mtimeMs} ${readFileSync(file, 'utf8')}`);
}

const oneRequest = /^leporello: 1 request, \d+ tokens, net \$0\.00 \(estimate\)\n$/;

describe('leporello wrap', () => {
  it('connects a client, passes on its input, output and exit code, and writes none of its files', async () => {
    const before = filesIn(join(folder, 'home'));
    const { child, ended } = wraps('claude', '--', 'stdin', 'ask');
    child.stdin.end('typed by the user');
    const { code, out, err } = await ended;
    expect({ code, out }).toEqual({ code: 7, out: 'typed by the user\n200 true\n' });
    expect(err).toMatch(oneRequest);
    expect(filesIn(join(folder, 'home'))).toEqual(before);
    await eventually(async () => expect(await user()).toBe('nobody'));
  });

  it('shares a gateway, which ends with the last wrap', async () => {
    const first = wraps('claude', '--', 'go', 'ask');
    await started('ask');
    const second = wraps('claude', '--', 'go-on', 'ask', 'end');
    await started('end');
    touch('go');
    const { err } = await first.ended;
    expect(err).toMatch(/^leporello: 1 request, .*; page: http:\/\/127\.0\.0\.1:\d+\/\n$/);
    touch('go-on');
    touch('end');
    expect(await second.ended).toMatchObject({ code: 7, err: expect.stringMatching(oneRequest) });
    await eventually(async () => expect(await user()).toBe('nobody'));
  });

  it('leaves a client that works, and nothing that stays, when it is killed', async () => {
    const { child } = wraps('claude', '--', 'go', 'ask', 'end');
    const client = await started('end');
    const asked = provider.requests.length;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    touch('go');
    await eventually(() => expect(provider.requests.length).toBe(asked + 1));
    expect(await user()).toBe('leporello');
    const later = wraps('claude', '--', 'ask');
    expect(await later.ended).toMatchObject({ code: 7, out: '200 true\n' });
    process.kill(client, 'SIGKILL');
    await eventually(async () => expect(await user()).toBe('nobody'));
  });

  it('starts another gateway on the port when the gateway is killed', async () => {
    const { ended } = wraps('claude', '--', 'go', 'ask');
    await started('ask');
    const found = await portUser({ host: '127.0.0.1', port }, undefined, 10_000);
    // Without a process id, the signal would reach the tests themselves.
    if (found.kind !== 'leporello') throw new Error(`The program on the port is ${found.kind}.`);
    process.kill(found.state.pid, 'SIGKILL');
    await eventually(async () => expect(await user()).toBe('leporello'));
    touch('go');
    expect(await ended).toMatchObject({ code: 7, out: '200 true\n' });
  });

  it('passes a signal on to the client', async () => {
    const { child, ended } = wraps('claude', '--', 'never');
    await started('never');
    child.kill('SIGTERM');
    expect((await ended).code).toBe(128 + 15);
  });

  it('takes another port when the usual one belongs to another program, but not when the user names one', async () => {
    const taken = createServer((_, response) => response.end('{}')).listen(port, '127.0.0.1');
    await once(taken, 'listening');
    const { code, out, err } = await wraps('claude', '--', 'ask').ended;
    expect({ code, out }).toEqual({ code: 7, out: '200 true\n' });
    expect(err.split('\n')[0]).toMatch(
      /^leporello: Port \d+ is used by another program, not by Leporello\. So this wrap has a gateway of its own, on port \d+\.$/,
    );
    expect(await wraps('claude', '--port', String(port), '--', 'ask').ended).toEqual({
      code: 2,
      out: '',
      err: `leporello: Port ${port} is used by another program, not by Leporello. Use another port: ${ownCommand} wrap --port ${port === 65_535 ? port - 1 : port + 1} ... (0 uses any free port).\n`,
    });
    taken.close();
    taken.closeAllConnections();
    await once(taken, 'close');
  });

  it('says what its gateway warns of: nobody sees the log of that process', async () => {
    mkdirSync(join(folder, 'data'));
    writeFileSync(join(folder, 'data', 'memory.sqlite'), 'no database, but more than a header of one');
    const { code, err } = await wrapsWith({ LEPORELLO_TRIGERS: '1' }, 'claude', '--data', 'data', '--', 'ask')
      .ended;
    const file = join(folder, 'data', 'memory.sqlite');
    expect({ code, lines: err.split('\n').slice(0, -2) }).toEqual({
      code: 7,
      lines: [
        `leporello: the data folder cannot be used: originals and folds are kept in memory and lost when this process ends: The store ${file} failed: file is not a database. It is damaged or not a store: move it away (then a new one is created), or restore it from a backup.`,
        'leporello: unknown variables are ignored: LEPORELLO_TRIGERS',
      ],
    });
  });

  it('says at its end how many requests had a problem, and names the newest', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const { out, err } = await wrapsWith({ LEPORELLO_ANTHROPIC_URL: url }, 'claude', '--', 'ask', 'ask')
      .ended;
    expect({ out, err }).toEqual({
      out: '502 true\n502 true\n',
      err: `leporello: 2 requests; 2 with a problem, the newest: ${url} could not be reached, or the connection broke (ECONNREFUSED). Check that it is up and its URL is right. The option anthropicUrl (LEPORELLO_ANTHROPIC_URL) sets this URL; leporello doctor checks it.\n`,
    });
  });

  it('says that a client is not installed, or cannot be connected', async () => {
    expect(await wraps('codex').ended).toEqual({
      code: 2,
      out: '',
      err: 'leporello: Codex is not installed: there is no codex on the PATH. Install it with npm install -g @openai/codex.\n',
    });
    writeFileSync(join(folder, 'bin', 'gemini'), '#!/bin/sh\necho "$@"\n', { mode: 0o755 });
    mkdirSync(join(folder, 'home', '.gemini'));
    const login = '{"security": {"auth": {"selectedType": "oauth-personal"}}}';
    writeFileSync(join(folder, 'home', '.gemini', 'settings.json'), login);
    expect(await wraps('gemini', '--', '--prompt', 'go').ended).toEqual({
      code: 0,
      out: '--prompt go\n',
      err: 'leporello: Gemini CLI is logged in with oauth-personal, whose requests do not use a base URL (with an API key they do). It starts unchanged, and nothing is folded.\n',
    });
  });

  it('prints the command line for editors', async () => {
    const none = `leporello: no Leporello listens on http://127.0.0.1:${port} now. Start it with ${ownCommand} serve.\n`;
    expect(await wraps('claude', '--print', '--', '-p', "it's").ended).toEqual({
      code: 0,
      out: `ANTHROPIC_BASE_URL=http://127.0.0.1:${port} ENABLE_TOOL_SEARCH=true claude -p 'it'\\''s'\n`,
      err: none,
    });
    const { out } = await wraps('codex', '--print', '--json').ended;
    expect(JSON.parse(out)).toEqual({
      command: 'codex',
      env: {},
      args: ['-c', `openai_base_url="http://127.0.0.1:${port}/v1"`],
    });
  });
});
