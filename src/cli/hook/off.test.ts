import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { testTerminal } from '../../../test/support/test-terminal.ts';
import { run } from '../run.ts';
import { hookContracts, hookedClients } from './contracts.ts';

let home: string;
let port: number;
let server: Server;
// A program that is no gateway has the port, so that none of another test can have it.
beforeAll(async () => {
  server = createServer((_, response) => response.writeHead(404).end());
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => void server.close());
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'leporello-off-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function write(file: string, text: string): void {
  const path = join(home, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

const read = (file: string): string => readFileSync(join(home, file), 'utf8');

async function turnedOff(flags: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  const terminal = testTerminal({ cwd: join(home), env: { HOME: home, ...env } });
  const code = await run(['off', '--port', String(port), '--json', ...flags], terminal);
  return { code, ...(JSON.parse(terminal.written.out()) as { removed: string[]; left: string[] }) };
}

const pretty = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

describe('leporello off', () => {
  it('finds nothing where nothing is', async () => {
    expect(await turnedOff()).toEqual({ code: 0, removed: [], left: [] });
  });

  it('removes the entries of hooks, and leaves files that only they were in', async () => {
    const command = 'command -v leporello >/dev/null || exit 0; leporello hook';
    for (const client of hookedClients) {
      const { file, entry } = hookContracts[client];
      write(file('', {}), pretty(entry(`${command} ${client}`)));
    }
    const { code, removed } = await turnedOff();
    expect({ code, count: removed.length }).toEqual({ code: 0, count: hookedClients.length });
    for (const client of hookedClients) expect(existsSync(hookContracts[client].file(home, {}))).toBe(false);
  });

  it('leaves everything else in a file as it is, byte for byte', async () => {
    const others = {
      theme: 'dark',
      hooks: { PostToolUse: [{ hooks: [{ type: 'command', command: 'lint' }] }], Stop: [] },
    };
    const ours = { matcher: 'Bash', hooks: [{ type: 'command', command: 'leporello hook claude' }] };
    const { PostToolUse } = others.hooks;
    write(
      '.claude/settings.json',
      pretty({ ...others, hooks: { ...others.hooks, PostToolUse: [...PostToolUse, ours] } }),
    );
    await turnedOff();
    expect(read('.claude/settings.json')).toBe(pretty(others));
  });

  it('leaves the spelling of a file: its numbers, its lists on one line, and its line ends', async () => {
    const rest =
      '{\r\n  "id": 12345678901234567890, "é": ["a", "b"],\r\n\t"mcpServers": { "x": {"command": "x"}#} }\r\n';
    const ours = ',\r\n    "it": {"command": "leporello", "args": ["mcp"]}';
    write('.mcp.json', rest.replace('#', ours));
    await turnedOff();
    expect(read('.mcp.json')).toBe(rest.replace('#', ''));
  });

  it('removes base URLs of the gateway, and MCP servers that run Leporello', async () => {
    const url = `http://127.0.0.1:${port}`;
    write(
      '.claude/settings.json',
      pretty({ env: { ANTHROPIC_BASE_URL: url, ENABLE_TOOL_SEARCH: 'true', A: 'b' } }),
    );
    write(
      '.config/opencode/opencode.json',
      pretty({ provider: { anthropic: { options: { baseURL: `${url}/v1` } } }, share: 'disabled' }),
    );
    write(
      '.claude.json',
      pretty({ mcpServers: { leporello: { command: 'leporello', args: ['mcp'] }, other: { command: 'x' } } }),
    );
    write(
      '.codex/config.toml',
      `openai_base_url = "${url}/v1"\nmodel = "a" # leporello mcp\n\n[mcp_servers.leporello]\ncommand = "leporello"\nargs = ["mcp"]\n\n[tui]\na = 1\n`,
    );
    expect((await turnedOff()).left).toEqual([]);
    expect(read('.claude/settings.json')).toBe(pretty({ env: { A: 'b' } }));
    expect(read('.config/opencode/opencode.json')).toBe(pretty({ share: 'disabled' }));
    expect(read('.claude.json')).toBe(pretty({ mcpServers: { other: { command: 'x' } } }));
    expect(read('.codex/config.toml')).toBe('model = "a" # leporello mcp\n\n[tui]\na = 1\n');
  });

  it.each([
    ['npx', ['-y', 'leporello@0.1.0', 'mcp', '--data', 'd']],
    ['/home/ada/my checkout/bin/leporello', ['mcp']],
    ['node', ['/home/ada/leporello/scripts/bootstrap.mjs', '--production', 'src/cli/main.ts', 'mcp']],
    ['node', ['/usr/lib/node_modules/leporello/dist/src/cli/main.js', 'mcp']],
  ])('removes an MCP server that runs it with %s %j', async (command, args) => {
    write('.mcp.json', pretty({ mcpServers: { it: { command, args } } }));
    expect((await turnedOff()).removed).toEqual([`an MCP server in ${join(home, '.mcp.json')}`]);
    expect(existsSync(join(home, '.mcp.json'))).toBe(false);
  });

  it.each([
    ['node', ['/opt/foo/dist/cli/main.js', 'mcp']],
    ['python', ['/home/me/leporello-notes/server.py', '--mcp']],
    ['leporello-mcp', []],
    ['cat', ['/home/ada/leporello', 'mcp-notes']],
  ])('leaves an MCP server of others, %s %j', async (command, args) => {
    const text = pretty({ mcpServers: { other: { command, args } } });
    write('.mcp.json', text);
    const toml = `[mcp_servers.other]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)} # leporello mcp\n`;
    write('.codex/config.toml', toml);
    expect(await turnedOff()).toEqual({ code: 0, removed: [], left: [] });
    expect([read('.mcp.json'), read('.codex/config.toml')]).toEqual([text, toml]);
  });

  it('removes an MCP server of Codex with its inner tables, and leaves the comments of the next one', async () => {
    write(
      '.codex/config.toml',
      'model = "a"\n\n[mcp_servers."leporello".env]\nA = "b"\n\n[mcp_servers.leporello]\ncommand = "leporello"\n# Ours.\nargs = [\n  "mcp",\n]\n\n# My own.\n# It is good.\n\n[mcp_servers.leporello-notes]\ncommand = "o"\n',
    );
    expect((await turnedOff()).removed).toEqual([`an MCP server in ${join(home, '.codex/config.toml')}`]);
    expect(read('.codex/config.toml')).toBe(
      'model = "a"\n\n# My own.\n# It is good.\n\n[mcp_servers.leporello-notes]\ncommand = "o"\n',
    );
  });

  it('leaves base URLs of others, and entries that only name Leporello', async () => {
    const text = pretty({
      env: { ANTHROPIC_BASE_URL: `http://127.0.0.1:${port + 1}`, ENABLE_TOOL_SEARCH: 'true' },
      hooks: { Stop: [{ hooks: [{ type: 'command', command: 'say leporello ends' }] }] },
    });
    write('.claude/settings.json', text);
    expect(await turnedOff()).toEqual({ code: 0, removed: [], left: [] });
    expect(read('.claude/settings.json')).toBe(text);
  });

  it('names an entry in a file with comments, and variables of this shell, for the user to remove', async () => {
    const text =
      '{\n  // mine\n  "hooks": {"PostToolUse": [{"hooks": [{"command": "leporello hook claude"}]}]}\n}\n';
    write('.claude/settings.json', text);
    const { code, left } = await turnedOff([], { OPENAI_BASE_URL: `http://localhost:${port}/v1` });
    expect({ code, left }).toEqual({
      code: 1,
      left: [
        `Remove a hook in ${join(home, '.claude/settings.json')} yourself: the file has comments, which would be lost.`,
        'This shell sets OPENAI_BASE_URL to the gateway: unset OPENAI_BASE_URL',
      ],
    });
    expect(read('.claude/settings.json')).toBe(text);
  });

  it('tells in words what it removed and kept', async () => {
    write('.leporello/secret', 'x');
    write(
      '.qwen/settings.json',
      pretty({ security: { auth: { baseUrl: `http://127.0.0.1:${port}/v1` } }, a: 1 }),
    );
    const terminal = testTerminal({ cwd: home, env: { HOME: home } });
    expect(await run(['off', '--port', String(port), '--dry-run'], terminal)).toBe(0);
    expect(terminal.written.out()).toBe(
      `Would be removed:\n  a base URL in ${join(home, '.qwen/settings.json')}\n` +
        `Kept: the originals in ${join(home, '.leporello')}. --originals deletes them too.\n`,
    );
  });

  it('keeps the originals unless it is told to delete them, and then only its own files', async () => {
    for (const file of ['memory.sqlite', 'secret', 'mine.txt']) write(`.leporello/${file}`, 'x');
    write('.cache/leporello/code/a', 'x');
    const env = { XDG_CACHE_HOME: join(home, '.cache') };
    const dry = await turnedOff(['--dry-run', '--originals'], env);
    expect(dry.removed.length).toBe(2);
    await turnedOff([], env);
    expect(existsSync(join(home, '.cache/leporello'))).toBe(false);
    expect(existsSync(join(home, '.leporello/secret'))).toBe(true);
    await turnedOff(['--originals'], env);
    expect(
      existsSync(join(home, '.leporello/memory.sqlite')) || existsSync(join(home, '.leporello/secret')),
    ).toBe(false);
    expect(read('.leporello/mine.txt')).toBe('x');
  });
});
