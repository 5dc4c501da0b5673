/** Tests savings on session files as each client writes them, and compares its estimate with the replay's own figures. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { testTerminal } from '../../../test/support/test-terminal.ts';
import { enginePolicy, fullContext } from '../../replay/policies.ts';
import { figuresOf } from '../../replay/figures.ts';
import { readRecording } from '../../replay/recording.ts';
import { replay } from '../../replay/replay.ts';
import { loadExactCounter } from '../../tokens/load-counter.ts';
import { loadConfig } from '../config/load-config.ts';
import { gatewaySettings } from '../config/to-settings.ts';
import { conversationBody } from '../replay/conversation-body.ts';
import { chat } from '../replay/sources.ts';
import { savings } from './savings.ts';

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'leporello-savings-'));
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

const now = Date.parse('2026-11-23T12:00:00Z');
const timestamp = '2026-11-23T10:00:00Z';

function write(file: string, ...records: readonly object[]): void {
  mkdirSync(dirname(join(home, file)), { recursive: true });
  writeFileSync(join(home, file), records.map((record) => `${JSON.stringify(record)}\n`).join(''));
}

async function run(args: { readonly days?: number; readonly json?: boolean; readonly env?: object } = {}) {
  const terminal = testTerminal({ cwd: home, env: { HOME: home, ...args.env } });
  const settings = { file: undefined, values: [] };
  const { days, json = true } = args;
  const code = await savings({ command: 'savings', days, all: true, settings, json }, terminal, {
    now: () => now,
    replayMs: 0,
  });
  return { code, out: terminal.written.out(), err: terminal.written.err() };
}

type Row = Readonly<Record<string, unknown>> & { readonly usd: number; readonly withLeporello: number };

async function rows(days?: number, env: object = {}) {
  const { out } = await run(days === undefined ? { env } : { days, env });
  return JSON.parse(out) as { readonly clients: readonly Row[]; readonly total: Row };
}

const claudeReply = (id: string, content: readonly object[], usage: object) => ({
  type: 'assistant',
  timestamp,
  message: { id, model: 'claude-sonnet-4-5', role: 'assistant', content, usage },
});

const claudeUser = (content: unknown) => ({ type: 'user', timestamp, message: { role: 'user', content } });

/** Two calls of a model in the files of each client: 1,000 and 1,200 tokens in, of these 900 from the cache, and 50 out. */
const fixtures: Readonly<Record<string, () => void>> = {
  claude() {
    const call = { type: 'tool_use', id: 't1', name: 'Read', input: { file: 'a' } };
    const first = { input_tokens: 100, cache_creation_input_tokens: 900, output_tokens: 40 };
    const second = { input_tokens: 300, cache_read_input_tokens: 900, output_tokens: 10 };
    write(
      '.claude/projects/-shop/1.jsonl',
      { type: 'queue-operation', timestamp },
      claudeUser('Read a.'),
      // The parts of a reply are lines of their own, each with the usage of all.
      claudeReply('m1', [{ type: 'text', text: 'I read it.' }], first),
      claudeReply('m1', [call], first),
      claudeUser([
        { type: 'tool_result', tool_use_id: 't1', content: [{ type: 'text', text: 'It says 7.' }] },
      ]),
      claudeReply('m2', [{ type: 'text', text: '7' }], second),
      { ...claudeReply('m3', [], second), isApiErrorMessage: true },
    );
    // A resumed session repeats what was said.
    write('.claude/projects/-shop/2.jsonl', claudeUser('Read a.'), claudeReply('m2', [], second));
  },
  codex() {
    const line = (type: string, payload: object) => ({ timestamp, type, payload });
    const usage = (input: number, cached: number, output: number) => ({
      input_tokens: input,
      cached_input_tokens: cached,
      output_tokens: output,
    });
    const counted = (last: object, total: object) =>
      line('event_msg', { type: 'token_count', info: { last_token_usage: last, total_token_usage: total } });
    write(
      '.codex/sessions/2026/11/23/rollout-1.jsonl',
      line('session_meta', { id: 's' }),
      line('turn_context', { model: 'gpt-5' }),
      line('response_item', {
        type: 'message',
        role: 'user',
        content: [{ type: 'input_text', text: 'Read a.' }],
      }),
      line('event_msg', { type: 'token_count', info: null }),
      line('response_item', {
        type: 'function_call',
        call_id: 'c1',
        name: 'read',
        arguments: '{"file":"a"}',
      }),
      counted(usage(1_000, 0, 40), usage(1_000, 0, 40)),
      // Only the rate limits have changed.
      counted(usage(1_000, 0, 40), usage(1_000, 0, 40)),
      line('response_item', { type: 'function_call_output', call_id: 'c1', output: 'It says 7.' }),
      line('response_item', {
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text: '7' }],
      }),
      counted(usage(1_200, 900, 10), usage(2_200, 900, 50)),
    );
  },
  gemini() {
    const reply = { id: 'g1', timestamp, type: 'gemini', content: 'I read it.', model: 'gemini-2.5-pro' };
    const tokens = { input: 1_000, output: 30, cached: 0, thoughts: 10, tool: 0 };
    const result = [{ functionResponse: { id: 'f1', name: 'read', response: { output: 'It says 7.' } } }];
    write(
      '.gemini/tmp/shop/chats/session-1.jsonl',
      { sessionId: 's', startTime: timestamp },
      { $set: { messages: [{ id: 'u1', timestamp, type: 'user', content: [{ text: 'Read a.' }] }] } },
      { ...reply, tokens },
      // A repeated id replaces the message.
      { ...reply, tokens, toolCalls: [{ id: 'f1', name: 'read', args: { file: 'a' }, result }] },
      { id: 'u2', timestamp, type: 'user', content: result },
      {
        ...reply,
        id: 'g2',
        content: '7',
        tokens: { input: 1_200, output: 10, cached: 900, thoughts: 0, tool: 0 },
      },
    );
  },
  opencode() {
    mkdirSync(join(home, '.local/share/opencode'), { recursive: true });
    const database = new DatabaseSync(join(home, '.local/share/opencode/opencode.db'));
    database.exec(
      'CREATE TABLE message (id text, session_id text, time_created integer, data text); CREATE TABLE part (id text, message_id text, session_id text, time_created integer, data text)',
    );
    const created = Date.parse(timestamp);
    const put = (id: string, data: object, ...parts: readonly object[]) => {
      database.prepare('INSERT INTO message VALUES (?, ?, ?, ?)').run(id, 's', created, JSON.stringify(data));
      for (const [at, part] of parts.entries()) {
        database
          .prepare('INSERT INTO part VALUES (?, ?, ?, ?, ?)')
          .run(`${id}-${at}`, id, 's', created, JSON.stringify(part));
      }
    };
    const reply = { role: 'assistant', modelID: 'claude-sonnet-4-5', time: { created } };
    put('1', { role: 'user', time: { created } }, { type: 'text', text: 'Read a.' });
    put(
      '2',
      { ...reply, tokens: { input: 100, output: 30, reasoning: 10, cache: { read: 0, write: 900 } } },
      { type: 'tool', callID: 'c', tool: 'read', state: { input: { file: 'a' }, output: 'It says 7.' } },
    );
    put(
      '3',
      { ...reply, tokens: { input: 300, output: 10, reasoning: 0, cache: { read: 900, write: 0 } } },
      { type: 'text', text: '7' },
    );
    database.close();
  },
  pi() {
    const line = (id: string, parentId: string | null, message: object) => ({
      type: 'message',
      id,
      parentId,
      timestamp,
      message,
    });
    const reply = { role: 'assistant', model: 'claude-sonnet-4-5' };
    const call = { type: 'toolCall', id: 'c', name: 'read', arguments: { file: 'a' } };
    write(
      '.pi/agent/sessions/--shop--/1.jsonl',
      { type: 'session', version: 3, id: 's', timestamp },
      line('a', null, { role: 'user', content: [{ type: 'text', text: 'Read a.' }] }),
      line('b', 'a', {
        ...reply,
        content: [call],
        usage: { input: 100, output: 40, cacheRead: 0, cacheWrite: 900 },
      }),
      line('c', 'b', {
        role: 'toolResult',
        toolCallId: 'c',
        content: [{ type: 'text', text: 'It says 7.' }],
      }),
      line('d', 'c', {
        ...reply,
        content: [{ type: 'text', text: '7' }],
        usage: { input: 300, output: 10, cacheRead: 900, cacheWrite: 0 },
      }),
    );
  },
  qwen() {
    const usage = (input: number, cached: number, output: number) => ({
      promptTokenCount: input,
      cachedContentTokenCount: cached,
      candidatesTokenCount: output,
      thoughtsTokenCount: 0,
    });
    const line = (uuid: string, type: string, message: object, more: object = {}) => ({
      uuid,
      timestamp,
      type,
      message,
      ...more,
    });
    const model = 'qwen3-max';
    write(
      '.qwen/projects/-shop/chats/1.jsonl',
      line('1', 'user', { role: 'user', parts: [{ text: 'Read a.' }] }),
      line(
        '2',
        'assistant',
        { role: 'model', parts: [{ functionCall: { id: 'c', name: 'read', args: { file: 'a' } } }] },
        { model, usageMetadata: usage(1_000, 0, 40) },
      ),
      line('3', 'tool_result', {
        role: 'user',
        parts: [{ functionResponse: { id: 'c', name: 'read', response: { output: 'It says 7.' } } }],
      }),
      line(
        '4',
        'assistant',
        { role: 'model', parts: [{ text: '7' }] },
        { model, usageMetadata: usage(1_200, 900, 10) },
      ),
    );
  },
};

/** Returns all files below the home folder, with their contents and times. */
function filesIn(): readonly string[] {
  return readdirSync(home, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => `${file} ${statSync(file).mtimeMs} ${readFileSync(file, 'latin1')}`);
}

describe('leporello savings', () => {
  it.each(Object.keys(fixtures))('reads the files of %s, alone, and changes none', async (client) => {
    fixtures[client]!();
    const before = filesIn();
    const { clients, total } = await rows();
    expect(clients).toEqual([{ ...total, client }]);
    expect(total).toMatchObject({
      sessions: 1,
      requests: 2,
      usage: { input: 2_200, cacheRead: 900, output: 50 },
    });
    expect(filesIn()).toEqual(before);
  });

  it('computes what the sessions cost, at list prices', async () => {
    fixtures['claude']!();
    // 400 tokens at $3, 900 read at $0.30, 900 written at $3.75 and 50 written by the model at $15, for a million each.
    const usd = (400 * 3 + 900 * 0.3 + 900 * 3.75 + 50 * 15) / 1e6;
    expect((await rows()).total).toMatchObject({ usd: Math.round(usd * 1e6) / 1e6, unpriced: 0 });
  });

  it('adds up several clients', async () => {
    for (const fixture of Object.values(fixtures)) fixture();
    const { clients, total } = await rows();
    expect(clients.map(({ client }) => client)).toEqual([
      'claude',
      'codex',
      'gemini',
      'pi',
      'qwen',
      'opencode',
    ]);
    expect(total).toMatchObject({ sessions: 6, requests: 12, usage: { input: 13_200, cacheRead: 5_400 } });
    const { code, out } = await run({ json: false });
    expect(code).toBe(0);
    expect(out).toMatch(
      /^Sessions of the last 7 days, at list prices\n\n.*\nClaude Code +1 +2 +2,200 +40\.9 % +50 /,
    );
    expect(out).toMatch(/\ntotal +6 +12 +13,200 /);
  });

  it('counts only calls of the given days', async () => {
    fixtures['claude']!();
    const old = {
      ...claudeReply('m0', [], { input_tokens: 9, output_tokens: 9 }),
      timestamp: '2026-11-01T00:00:00Z',
    };
    write('.claude/projects/-shop/3.jsonl', old);
    expect((await rows()).total).toMatchObject({ requests: 2 });
    expect((await rows(60)).total).toMatchObject({ requests: 3 });
  });

  it('says that there are no sessions', async () => {
    expect(await run()).toEqual({
      code: 1,
      out: '',
      err: `leporello: no session of Claude Code, Codex, Gemini CLI, opencode, pi, Qwen Code in the last 7 days was found. These folders were searched:
  ${home}/.claude/projects
  ${home}/.codex/sessions
  ${home}/.codex/archived_sessions
  ${home}/.gemini/tmp
  ${home}/.pi/agent/sessions
  ${home}/.qwen/projects
  ${home}/.local/share/opencode
With --days 28 it looks further back.
`,
    });
  });

  it('estimates what the replay says', async () => {
    const turns = 40;
    const size = 5_000;
    const text = (at: number) => `row ${at} of the log, ${(at * 7919) % 997} checked; `.repeat(size / 25);
    const line = (at: number) => [
      claudeReply(
        `m${at}`,
        [{ type: 'tool_use', id: `t${at}`, name: 'Read', input: { file: `file-${at}.log` } }],
        { input_tokens: 20_000 + at * 2_000, output_tokens: 40 },
      ),
      claudeUser([{ type: 'tool_result', tool_use_id: `t${at}`, content: text(at) }]),
    ];
    const task = 'Read all log files.';
    write(
      '.claude/projects/-shop/1.jsonl',
      claudeUser(task),
      ...Array.from({ length: turns }, (_, at) => line(at)).flat(),
    );
    const env = {
      HOME: home,
      LEPORELLO_TRIGGERS_TOKEN_BUDGET_TRIGGER_TOKENS: '40000',
      LEPORELLO_TRIGGERS_TOKEN_BUDGET_TARGET_TOKENS: '25000',
    };
    const { total } = await rows(undefined, env);
    const messages = [
      { role: 'user', content: task },
      ...Array.from({ length: turns }, (_, at) => [
        {
          role: 'assistant',
          content: '',
          tool_calls: [
            {
              id: `t${at}`,
              type: 'function',
              function: { name: 'Read', arguments: JSON.stringify({ file: `file-${at}.log` }) },
            },
          ],
        },
        { role: 'tool', tool_call_id: `t${at}`, content: text(at) },
      ]).flat(),
    ];
    const counter = await loadExactCounter('o200k_base');
    const body = conversationBody({ messages }, 20_000 - counter.count(task), counter);
    const recording = readRecording({ id: 'one', source: 'test', format: chat, body }, counter);
    const terminal = testTerminal({ cwd: home, env });
    const { config } = await loadConfig({ file: undefined, values: [] }, terminal);
    const price = { input: 3, cacheRead: 0.3, cacheWrite: 3.75, cacheWriteLong: 6, output: 15 };
    const settings = { ...gatewaySettings(config), usdPerMillionTokens: { replayed: price } };
    const policies = [fullContext, enginePolicy({ name: 'Leporello', settings, window: 200_000, counter })];
    const played = await replay(recording, policies, { window: 200_000 });
    const [figures] = figuresOf([played], { list: { read: 0.1, write: 1.25, output: 5 } });
    const ratio = figures!.policies[1]!.cost['list']!;
    expect(ratio).toBeLessThan(0.95);
    expect(total.withLeporello / total.usd).toBeCloseTo(ratio, 4);
  });
});
