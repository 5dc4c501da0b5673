/** Lets the official MCP client read the memory of a gateway that has ended: over standard input and output, and over HTTP. */
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openMemory } from '../../src/adapters/mcp.ts';
import { openStore } from '../../src/cli/open-store.ts';
import { run } from '../../src/cli/run.ts';
import { receiptArchive } from '../../src/gateway/receipts/archive.ts';
import { testTerminal } from '../support/test-terminal.ts';
import { post, requestBody, shapes } from './bodies.ts';
import { startStack } from './stack.ts';

/** The window makes the third request fold. */
const settings = {
  tenant: 'local',
  models: { '*': { windowTokens: 200_000 } },
  triggers: {
    windowFraction: false,
    cacheRent: false,
    coldCache: false,
    tokenBudget: { triggerTokens: 6_000, targetTokens: 3_000 },
  },
  calibration: false,
  offerRecall: 'always',
} as const;

/** Returns 120 lines that all differ; one names the port of its service. */
function result(at: number): string {
  const lines = Array.from(
    { length: 120 },
    (_, line) => `service-${at}-${line} listens on ${7_000 + at * 200 + line}`,
  );
  return lines.join('\n');
}

function bodyOf(jobs: number): string {
  const { messages, user, job } = shapes.messages;
  const done = Array.from({ length: jobs }, (_, at) => job(`call_${at}`, result(at)));
  return requestBody('messages', { [messages]: [user('Run all jobs.'), ...done.flat()] });
}

let folder: string;
let data: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'leporello-mcp-'));
  data = join(folder, 'data');
  const memory = await openStore(data, {});
  const script = () => ({ type: 'turn', parts: [{ type: 'text', text: 'Done.' }] }) as const;
  await using stack = await startStack(script, settings, { ...memory, archive: receiptArchive() });
  for (const jobs of [2, 4, 6]) {
    const response = await post(stack.url, 'messages', bodyOf(jobs), { 'x-leporello-session': 'jobs' });
    await response.text();
  }
});

afterAll(() => rm(folder, { recursive: true }));

type ToolCaller = Pick<Client, 'callTool'>;

async function textOf(client: ToolCaller, name: string, args: Record<string, unknown>): Promise<string> {
  const { content } = await client.callTool({ name, arguments: args });
  const [part] = content as readonly { type: string; text: string }[];
  expect(part?.type).toBe('text');
  return part!.text;
}

async function readsAll(client: Client): Promise<void> {
  const { tools } = await client.listTools();
  expect(tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint])).toEqual([
    ['read_memory', true],
    ['search_memory', true],
    ['list_folds', true],
  ]);
  const folds = await textOf(client, 'list_folds', {});
  expect(folds).toMatch(
    /^\d{4}-\S+Z, model claude-sonnet-5, session jobs, [\d,]+ → [\d,]+ tokens \(prepared in /,
  );
  expect(folds).toContain('more than its token budget');
  const [, id] = /(mem_[a-z0-9]{16}) {2}result of run/.exec(folds)!;
  const whole = await textOf(client, 'read_memory', { id });
  expect([0, 1, 2, 3].map(result)).toContain(whole);
  expect(await textOf(client, 'read_memory', { id, lines: '2-3' })).toContain(
    whole.split('\n').slice(1, 3).join('\n'),
  );
  expect(await textOf(client, 'search_memory', { query: 'service-1-77' })).toContain(
    'service-1-77 listens on 7277',
  );
  expect(await textOf(client, 'read_memory', { query: 'service-0-5' })).toContain(
    'service-0-5 listens on 7005',
  );
  expect(await textOf(client, 'list_folds', { session: 'none' })).toBe(
    'No fold of the session none is recorded for the tenant local.',
  );
  expect(await textOf(client, 'read_memory', { id: 'mem_0000000000000000' })).toContain(
    'mem_0000000000000000',
  );
}

describe('an MCP client', () => {
  const info = { name: 'test', version: '1' };

  it('reads, searches and lists over standard input and output', async () => {
    const client = new Client(info);
    const args = [...process.execArgv, 'src/cli/main.ts', 'mcp', '--data', data];
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args, env: { HOME: folder } }),
    );
    try {
      await readsAll(client);
    } finally {
      await client.close();
    }
  });

  it('reads, searches and lists over HTTP; web pages of other hosts are refused', async () => {
    const terminal = testTerminal({ cwd: folder, env: { HOME: folder } });
    const ended = run(['mcp', '--data', data, '--port', '0', '--json'], terminal);
    await terminal.shows('\n');
    const { url } = JSON.parse(terminal.written.out()) as { url: string };
    const client = new Client(info);
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    await readsAll(client);
    const foreign = await fetch(url, {
      method: 'POST',
      headers: { origin: 'https://example.org' },
      body: '{}',
    });
    expect(foreign.status).toBe(403);
    expect((await fetch(new URL('/other', url))).status).toBe(404);
    await client.close();
    terminal.stop();
    expect(await ended).toBe(0);
  });

  it('reads over HTTP, or of a named tenant, only originals of that tenant; over standard input those of all', async () => {
    const memory = await openMemory({ data });
    const [, id] = /(mem_[a-z0-9]{16}) {2}result of run/.exec(await memory.listFolds())!;
    await memory.close();
    const none = `No memory with id "${id}" in this sqlite store, tenant another. It was never there, or has expired: by default, an original is kept for 30 days after its last use. Asking again will not help.`;
    const another = await openMemory({ data, tenant: 'another' });
    expect(await another.readMemory({ id })).toBe(none);
    await another.close();
    const terminal = testTerminal({ cwd: folder, env: { HOME: folder } });
    const ended = run(['mcp', '--data', data, '--port', '0', '--json', '--tenant', 'another'], terminal);
    await terminal.shows('\n');
    const { url } = JSON.parse(terminal.written.out()) as { url: string };
    const client = new Client(info);
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    expect(await textOf(client, 'read_memory', { id })).toBe(none);
    await client.close();
    terminal.stop();
    expect(await ended).toBe(0);
  });

  it('is told that there is no memory yet, and reads it once there is', async () => {
    const later = join(folder, 'later');
    const terminal = testTerminal();
    const ended = run(['mcp', '--data', later, '--port', '0', '--json'], terminal);
    await terminal.shows('/mcp');
    const missing = `The data folder ${later} contains no store. Set another data folder with --data.`;
    expect(terminal.written.err()).toBe(
      `leporello: ${missing} Or wait: a store is read as soon as there is one.\n`,
    );
    const { url } = JSON.parse(terminal.written.out()) as { readonly url: string };
    const client = new Client(info);
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    expect(await textOf(client, 'list_folds', {})).toBe(missing);
    expect(await textOf(client, 'read_memory', { id: 'mem_0000000000000000' })).toBe(missing);
    await cp(data, later, { recursive: true });
    await readsAll(client);
    await client.close();
    terminal.stop();
    expect(await ended).toBe(0);
  });
});

it('a program opens the memory of a data folder', async () => {
  const memory = await openMemory({ data });
  expect(await memory.searchMemory({ query: 'service-1-77' })).toContain('service-1-77 listens on 7277');
  await memory.close();
  await expect(openMemory({ data: folder })).rejects.toMatchObject({
    code: 'bad-config',
    message: `The data folder ${folder} contains no store. Set another data folder with --data.`,
  });
});
