/** Tests that savings does not count sessions twice that already ran through a gateway. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startFakeProvider } from '../../../test/support/fake-provider/fake-provider.ts';
import { testTerminal } from '../../../test/support/test-terminal.ts';
import { run } from '../run.ts';
import { savings } from './savings.ts';

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'leporello-served-'));
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

const model = 'gpt-5.1';

/** Sends one request through `leporello serve`; the provider reports `input` tokens for it. */
async function serveOne(input: number): Promise<void> {
  const provider = await startFakeProvider({
    script: [{ type: 'turn', parts: [{ type: 'text', text: 'Hello.' }], usage: { input, output: 7 } }],
  });
  const env = { HOME: home, LEPORELLO_OPENAI_URL: `${provider.url}/v1` };
  const terminal = testTerminal({ cwd: home, env });
  const ended = run(['serve', '--port', '0', '--json'], terminal);
  await terminal.shows('\n');
  const { url } = JSON.parse(terminal.written.out()) as { readonly url: string };
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer key' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] }),
  });
  expect(response.status).toBe(200);
  await response.text();
  terminal.stop();
  expect(await ended).toBe(0);
  await provider.close();
}

/** Writes a session of Claude Code with one call of `input` tokens. */
function writeSession(name: string, input: number): void {
  const file = join(home, '.claude/projects/-shop', `${name}.jsonl`);
  mkdirSync(dirname(file), { recursive: true });
  const timestamp = new Date().toISOString();
  const records = [
    { type: 'user', timestamp, message: { role: 'user', content: 'Hi' } },
    {
      type: 'assistant',
      timestamp,
      message: {
        id: `msg_${name}`,
        model,
        role: 'assistant',
        content: [{ type: 'text', text: 'Hello.' }],
        usage: { input_tokens: input, output_tokens: 7 },
      },
    },
  ];
  writeFileSync(file, records.map((record) => `${JSON.stringify(record)}\n`).join(''));
}

it('counts a session that a gateway served as it is, and replays the others', async () => {
  await serveOne(4_321);
  writeSession('served', 4_321);
  writeSession('direct', 1_234);
  const terminal = testTerminal({ cwd: home, env: { HOME: home } });
  const settings = { file: undefined, values: [] };
  const args = { command: 'savings', days: 7, all: true, settings } as const;
  expect(await savings({ ...args, json: true }, terminal)).toBe(0);
  const { total } = JSON.parse(terminal.written.out()) as {
    readonly total: Readonly<Record<string, number>>;
  };
  // $1.25 for a million tokens of input, $10 for a million of output.
  const cost = (input: number, calls = 1) => Math.round(input * 1.25 + calls * 7 * 10) / 1e6;
  expect(total).toMatchObject({
    sessions: 2,
    usd: cost(4_321 + 1_234, 2),
    replayedUsd: cost(1_234),
    servedSessions: 1,
    servedUsd: cost(4_321),
  });

  const shown = testTerminal({ cwd: home, env: { HOME: home } });
  expect(await savings({ ...args, json: false }, shown)).toBe(0);
  expect(shown.written.out()).toContain(
    '\n1 session ($0.0055) already ran through Leporello, so it counts unchanged: the receipts of its gateway say what it saved there.\n',
  );
});
