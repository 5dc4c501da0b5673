/** Each test breaks one thing in a set-up that is otherwise in order, and shows what `leporello doctor` says of it. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ownCommand } from '../home.ts';
import { freePort as findFreePort } from '../../../test/support/free-port.ts';
import { testTerminal } from '../../../test/support/test-terminal.ts';
import { isOfOtherSecret } from '../../store/secret.ts';
import { sqliteStore } from '../../store/sqlite/sqlite.ts';
import { doctor } from './doctor.ts';
import type { DoctorDeps, Finding } from './setup-checks.ts';

let home: string;
let freePort: number;
const servers: Server[] = [];

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'leporello-doctor-'));
  freePort = await findFreePort();
});

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  rmSync(home, { recursive: true, force: true });
});

/** Starts a program that is not Leporello. */
async function listening(answer: string): Promise<{ server: Server; port: number }> {
  const server = createServer((_, response) => response.end(answer)).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

function write(file: string, text: string): void {
  mkdirSync(dirname(join(home, file)), { recursive: true });
  writeFileSync(join(home, file), text);
}

const inOrder: DoctorDeps = {
  nodeVersion: '24.1.0',
  reach: () => Promise.resolve(),
  now: () => 0,
  deadlineMs: 60_000,
};

type Setup = {
  readonly env?: Readonly<Record<string, string>>;
  readonly set?: Readonly<Record<string, string>>;
  readonly deps?: Partial<DoctorDeps>;
};

/** Runs the doctor, and returns its exit code and what it found that is not in order. */
async function examined({ env = {}, set = {}, deps = {} }: Setup = {}) {
  const variables = { HOME: home, LEPORELLO_PORT: String(freePort), ...env };
  const terminal = testTerminal({ cwd: home, env: variables });
  const values = Object.entries(set).map(([key, text]) => ({ flag: '--set', key, text }));
  const settings = { file: undefined, values };
  const code = await doctor({ command: 'doctor', settings, json: true }, terminal, { ...inOrder, ...deps });
  const { findings } = JSON.parse(terminal.written.out()) as { readonly findings: readonly Finding[] };
  return { code, found: findings.filter(({ level }) => level !== 'ok') };
}

/** Replaces the parts of a text that differ from run to run. */
function neutral(finding: Finding): Finding {
  return JSON.parse(neutralText(JSON.stringify(finding))) as Finding;
}

function neutralText(text: string): string {
  const names = { [ownCommand]: 'leporello', [home]: 'HOME', [freePort]: 'PORT' };
  return Object.entries(names).reduce((now, [word, name]) => now.replaceAll(word, name), text);
}

const failing =
  (code: string): DoctorDeps['reach'] =>
  async (url) => {
    if (url.includes('anthropic')) throw Object.assign(new Error(`it failed: ${code}`), { code });
  };

describe('leporello doctor', () => {
  it('finds nothing in a set-up that is in order, says what it looked at, and writes nothing', async () => {
    expect(await examined()).toEqual({ code: 0, found: [] });
    const terminal = testTerminal({ cwd: home, env: { HOME: home, LEPORELLO_PORT: String(freePort) } });
    const command = { command: 'doctor', settings: { file: undefined, values: [] }, json: false } as const;
    expect(await doctor(command, terminal, inOrder)).toBe(0);
    expect(neutralText(terminal.written.out())).toBe(
      `ok       Node 24.1.0.
ok       The configuration is valid.
ok       The data folder HOME/.leporello can be used. It holds no store yet.
ok       The secret is created at the first start.
ok       https://api.openai.com/v1 can be reached.
ok       https://api.anthropic.com can be reached.
ok       https://generativelanguage.googleapis.com can be reached.
ok       No gateway runs on http://127.0.0.1:PORT now.
         fix: leporello serve --port PORT, or leporello wrap claude --port PORT, which starts one.
ok       No base URL is set in this shell or in a settings file of a client.
         fix: leporello wrap claude --port PORT, or docs/clients.md for a permanent setting.

9 checks: 0 failures, 0 warnings.
`,
    );
    expect(readdirSync(home)).toEqual([]);
  });

  const broken: readonly (readonly [string, 1 | 2, () => Setup | Promise<Setup>, Finding])[] = [
    [
      'an old Node',
      2,
      () => ({ deps: { nodeVersion: '20.11.0' } }),
      {
        check: 'node',
        level: 'failure',
        says: 'Node 20.11.0 is too old: the commands of Leporello need 22.18 or newer.',
        fix: 'Install a newer Node (https://nodejs.org), or start with npm start, which brings its own.',
      },
    ],
    [
      'an invalid option',
      2,
      () => ({ set: { port: 'high' } }),
      {
        check: 'configuration',
        level: 'failure',
        says: 'port is "high" (from --set), but must be a whole number from 0 to 65535.',
        fix: 'Correct it; the other checks need the configuration. All options: docs/configuration.md.',
      },
    ],
    [
      'an unknown variable',
      1,
      () => ({ env: { LEPORELLO_SERVICE_HOST: '10.0.0.1' } }),
      {
        check: 'configuration',
        level: 'warning',
        says: 'Unknown variables are ignored: LEPORELLO_SERVICE_HOST.',
        fix: 'unset LEPORELLO_SERVICE_HOST',
      },
    ],
    [
      'a data folder that cannot be created',
      2,
      () => {
        write('file', '');
        return { env: { LEPORELLO_DATA: join(home, 'file', 'data') } };
      },
      {
        check: 'data',
        level: 'failure',
        says: 'The data folder HOME/file/data cannot be used: HOME/file/data cannot be reached (ENOTDIR). Originals are lost when the gateway ends.',
        fix: 'Let this user write there (chown, chmod), or set another folder with LEPORELLO_DATA.',
      },
    ],
    [
      'a damaged store',
      2,
      () => {
        write('.leporello/memory.sqlite', 'this is no database');
        write('.leporello/secret', 's'.repeat(43));
        return {};
      },
      {
        check: 'data',
        level: 'failure',
        says: 'The store HOME/.leporello/memory.sqlite is damaged: it is not an SQLite database.',
        fix: 'Move it away; the gateway creates a new one: mv HOME/.leporello/memory.sqlite HOME/.leporello/memory.sqlite.damaged',
      },
    ],
    [
      'a store without its secret',
      2,
      () => {
        write('.leporello/memory.sqlite', 'SQLite format 3\u0000');
        return {};
      },
      {
        check: 'secret',
        level: 'failure',
        says: 'There is no secret (HOME/.leporello/secret), so nothing that was stored before can be read.',
        fix: 'Restore the file, or set LEPORELLO_SECRET to the secret of the other gateways.',
      },
    ],
    [
      'a short secret',
      2,
      () => ({ env: { LEPORELLO_SECRET: 'short' } }),
      {
        check: 'secret',
        level: 'failure',
        says: 'LEPORELLO_SECRET has 5 characters; it needs at least 32. Set a longer one, or unset the variable: then a secret is created in the data folder.',
        fix: 'Restore the secret: HOME/.leporello/secret, or LEPORELLO_SECRET.',
      },
    ],
    [
      'an upstream whose name is unknown',
      1,
      () => ({ deps: { reach: failing('ENOTFOUND') } }),
      {
        check: 'upstream',
        level: 'warning',
        says: 'https://api.anthropic.com (anthropicUrl) cannot be reached: the name api.anthropic.com has no address (ENOTFOUND).',
        fix: 'Check anthropicUrl, the network and DNS.',
      },
    ],
    [
      'a configured upstream with a certificate that is not trusted',
      2,
      () => ({
        set: { anthropicUrl: 'https://anthropic.example' },
        deps: { reach: failing('DEPTH_ZERO_SELF_SIGNED_CERT') },
      }),
      {
        check: 'upstream',
        level: 'failure',
        says: 'https://anthropic.example (anthropicUrl) cannot be reached: its certificate is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT).',
        fix: 'Set NODE_EXTRA_CA_CERTS to the file of your certificate authority before you start the gateway.',
      },
    ],
    [
      'a proxy',
      1,
      () => ({ env: { HTTPS_PROXY: 'http://proxy.example:3128', NO_PROXY: '127.0.0.1' } }),
      {
        check: 'proxy',
        level: 'warning',
        says: 'HTTPS_PROXY is set, but the gateway connects to providers directly.',
        fix: 'Allow direct connections to the providers, or set the URL of a relay as upstream (LEPORELLO_ANTHROPIC_URL ...).',
      },
    ],
    [
      'another program on the port',
      2,
      async () => ({ env: { LEPORELLO_PORT: String((freePort = (await listening('hello')).port)) } }),
      {
        check: 'gateway',
        level: 'failure',
        says: 'Port PORT is used by another program, not by Leporello.',
        fix: expect.stringMatching(/^Stop it, or use another port: leporello serve --port \d+$/) as string,
      },
    ],
    [
      'a base URL in this shell that leads nowhere',
      2,
      () => ({
        env: { ANTHROPIC_BASE_URL: `http://127.0.0.1:${freePort}`, ENABLE_TOOL_SEARCH: 'true' },
      }),
      {
        check: 'base-url',
        level: 'failure',
        says: 'The base URL in ANTHROPIC_BASE_URL is http://127.0.0.1:PORT, but nothing listens there: clients that use it fail.',
        fix: 'leporello serve --port PORT, or remove it from ANTHROPIC_BASE_URL.',
      },
    ],
    [
      'a base URL in a settings file that leads nowhere',
      2,
      () => {
        write('.codex/config.toml', `openai_base_url = "http://127.0.0.1:${freePort}/v1"\n`);
        return {};
      },
      {
        check: 'base-url',
        level: 'failure',
        says: 'The base URL in HOME/.codex/config.toml is http://127.0.0.1:PORT/v1, but nothing listens there: clients that use it fail.',
        fix: 'leporello serve --port PORT, or remove it from HOME/.codex/config.toml.',
      },
    ],
    [
      'a base URL that is no URL',
      2,
      () => ({ env: { GOOGLE_GEMINI_BASE_URL: '127.0.0.1:8787' } }),
      {
        check: 'base-url',
        level: 'failure',
        says: 'The base URL in GOOGLE_GEMINI_BASE_URL is not a URL: 127.0.0.1:8787.',
        fix: 'Set it to http://127.0.0.1:8787 (see docs/clients.md), or remove it.',
      },
    ],
    [
      'a store that was written with another secret',
      2,
      async () => {
        const store = await sqliteStore({ file: join(home, '.leporello', 'memory.sqlite') });
        await isOfOtherSecret(store, new TextEncoder().encode('the secret of an earlier gateway'));
        await store.close();
        write('.leporello/secret', 's'.repeat(40));
        return {};
      },
      {
        check: 'secret',
        level: 'failure',
        says: 'The store HOME/.leporello/memory.sqlite was first used with another secret, so what it holds from then cannot be read.',
        fix: 'Restore HOME/.leporello/secret, or set LEPORELLO_SECRET to that secret. If it is lost, move the store away: mv HOME/.leporello/memory.sqlite HOME/.leporello/memory.sqlite.unreadable',
      },
    ],
    [
      'a base URL of Claude Code without tool search',
      1,
      () => {
        write('.claude/settings.json', '{"env": {"ANTHROPIC_BASE_URL": "https://proxy.example"}}');
        return {};
      },
      {
        check: 'tool-search',
        level: 'warning',
        says: 'Claude Code has a base URL (HOME/.claude/settings.json) without ENABLE_TOOL_SEARCH=true, so some versions send all tool definitions in every request.',
        fix: 'Add "ENABLE_TOOL_SEARCH": "true" to "env" in HOME/.claude/settings.json.',
      },
    ],
    [
      'a variable that Codex ignores',
      1,
      () => {
        write('.codex/config.toml', 'model = "gpt-5"\n');
        return { env: { OPENAI_BASE_URL: 'https://proxy.example/v1' } };
      },
      {
        check: 'codex',
        level: 'warning',
        says: 'Codex ignores OPENAI_BASE_URL, so its requests do not go there.',
        fix: 'leporello wrap codex, or openai_base_url = "https://proxy.example/v1" in ~/.codex/config.toml.',
      },
    ],
    [
      'a login that no gateway can fold',
      1,
      () => {
        write('.gemini/settings.json', '{"security": {"auth": {"selectedType": "oauth-personal"}}}');
        return {};
      },
      {
        check: 'login',
        level: 'warning',
        says: 'Gemini CLI is logged in with oauth-personal, whose requests do not use a base URL (with an API key they do).',
        fix: 'Log in with an API key to have its requests folded.',
      },
    ],
    [
      'a login whose token rotates, with a tenant for each credential',
      1,
      () => {
        write('.claude/.credentials.json', '{"claudeAiOauth": {"accessToken": "t"}}');
        return { set: { tenant: 'credential' } };
      },
      {
        check: 'tenant',
        level: 'warning',
        says: "Each credential is a tenant of its own, but the token of Claude Code's login is renewed: what was stored under an older token cannot be read with a newer one.",
        fix: 'Set tenant to local, to a header or to a claim (LEPORELLO_TENANT, docs/tenants.md).',
      },
    ],
  ];

  it.each(broken)('finds %s', async (_, code, setup, finding) => {
    const result = await examined(await setup());
    expect({ code: result.code, found: result.found.map(neutral) }).toEqual({ code, found: [finding] });
  });

  it('finds Redis down', async () => {
    const set = { 'memory.redis.port': String(freePort) };
    const { code, found } = await examined({ env: { LEPORELLO_SECRET: 's'.repeat(40) }, set });
    expect({ code, found: found.map(neutral) }).toEqual({
      code: 2,
      found: [
        {
          check: 'store',
          level: 'failure',
          says: expect.stringMatching(/^Redis at 127\.0\.0\.1:PORT cannot be used: /),
          fix: 'Start the server, or correct the options of memory.redis.',
        },
      ],
    });
  });

  it('finds a base URL of an earlier wrap', async () => {
    const url = `http://127.0.0.1:${freePort}/_leporello/wraps/1`;
    const { code, found } = await examined({ env: { ANTHROPIC_BASE_URL: url, ENABLE_TOOL_SEARCH: 'true' } });
    expect({ code, found: found.map(neutral) }).toEqual({
      code: 2,
      found: [
        {
          check: 'base-url',
          level: 'failure',
          says: 'The base URL in ANTHROPIC_BASE_URL is one that leporello wrap gave to a single run: http://127.0.0.1:PORT/_leporello/wraps/1.',
          fix: 'Remove the base URL from ANTHROPIC_BASE_URL.',
        },
      ],
    });
  });

  it('finds a folder that this user may not write, unless it is the administrator', async () => {
    mkdirSync(join(home, 'locked'), { mode: 0o500 });
    const { found } = await examined({ env: { LEPORELLO_DATA: join(home, 'locked', 'data') } });
    const says = expect.stringMatching(/user (\d+) cannot write HOME.locked .+; the user \1 owns it, /);
    expect(found).toMatchObject(process.getuid?.() === 0 ? [] : [{ check: 'data', says }]);
  });
});
