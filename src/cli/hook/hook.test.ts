import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, it } from 'vitest';
import { testTerminal } from '../../../test/support/test-terminal.ts';
import { run } from '../run.ts';
import { ownCommand } from '../home.ts';
import { hookContracts, hookedClients } from './contracts.ts';

const home = mkdtempSync(join(tmpdir(), 'leporello-hook-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const buildLog = Array.from(
  { length: 120 },
  (_, at) => `2026-01-01T00:00:00Z INFO worker step ${at} of the build ended and all is well`,
).join('\n');

const bash = (command: string, stdout = buildLog, more: object = {}) => ({
  hook_event_name: 'PostToolUse',
  tool_name: 'Bash',
  tool_input: { command },
  tool_response: { stdout, stderr: '', interrupted: false, isImage: false, ...more },
});

async function replyTo(client: string, payload: unknown, flags: readonly string[] = []) {
  const input = typeof payload === 'string' ? payload : JSON.stringify(payload);
  const terminal = testTerminal({ cwd: home, env: { HOME: home }, input: [input] });
  const code = await run(['hook', client, ...flags], terminal);
  const out = terminal.written.out();
  return { code, reply: out === '' ? undefined : (JSON.parse(out) as object), err: terminal.written.err() };
}

async function recalled(id: string): Promise<string> {
  const terminal = testTerminal({ cwd: home, env: { HOME: home } });
  expect(await run(['recall', id], terminal)).toBe(0);
  return terminal.written.out();
}

const idIn = (reply: unknown): string => /mem_[a-z0-9]{16}/.exec(JSON.stringify(reply))![0];

describe('leporello hook', () => {
  it('replaces the output of a command of Claude Code in its own shape, and keeps the original', async () => {
    const { code, reply, err } = await replyTo('claude', bash('sh build.sh', buildLog, { stderr: 'note' }));
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const note = new RegExp(
      String.raw`\n\[Shortened from ${buildLog.length} characters\. To read it again run .* recall mem_[a-z0-9]{16}, or call read_memory with \{"id":"mem_[a-z0-9]{16}"\} if you have that tool\.\]$`,
    );
    expect(reply).toEqual({
      hookSpecificOutput: {
        hookEventName: 'PostToolUse',
        updatedToolOutput: {
          stdout: expect.stringMatching(note) as string,
          stderr: 'note',
          interrupted: false,
          isImage: false,
        },
      },
    });
    expect(JSON.stringify(reply).length).toBeLessThan(buildLog.length / 2);
    expect(await recalled(idIn(reply))).toBe(buildLog);
  });

  it('keeps the original as long as the configuration says', async () => {
    const data = join(home, 'data');
    const config = join(home, 'year.json');
    writeFileSync(config, JSON.stringify({ data, memory: { ttlDays: 365 } }));
    await replyTo('claude', bash('make'), ['--config', config]);
    const database = new DatabaseSync(join(data, 'memory.sqlite'), { readOnly: true });
    const [kept] = database.prepare("select expires_at from entries where key like 'memory/%'").all();
    database.close();
    const days = (Number(kept?.['expires_at']) - Date.now()) / (24 * 60 * 60 * 1_000);
    expect(Math.round(days)).toBe(365);
  });

  it('keeps a result beside values that are nested very deeply', async () => {
    const deep = `${'{"content":'.repeat(50_000)}1${'}'.repeat(50_000)}`;
    const payload = JSON.stringify(bash('sh build.sh', buildLog, { more: 0 }));
    for (const text of [
      payload.replace('"more":0', `"more":${deep}`),
      payload.replace('"command":"sh build.sh"', `"command":${deep}`),
      JSON.stringify({ ...bash('make'), tool_name: 'mcp__a__b', tool_response: 0 }).replace(
        '"tool_response":0',
        `"tool_response":${deep}`,
      ),
    ])
      expect(await replyTo('claude', text)).toEqual({ code: 0, reply: {}, err: '' });
  });

  it('replaces the result of Codex as the reason of a block, also of an MCP tool', async () => {
    const event = { hook_event_name: 'PostToolUse', tool_input: { command: 'sh build.sh' } };
    const fromShell = await replyTo('codex', { ...event, tool_name: 'Bash', tool_response: buildLog });
    expect(fromShell.reply).toEqual({
      decision: 'block',
      reason: expect.stringContaining('[Shortened') as string,
    });
    const content = [{ type: 'text', text: buildLog }];
    const fromMcp = await replyTo('codex', {
      ...event,
      tool_name: 'mcp__ci__run',
      tool_response: { content },
    });
    expect(fromMcp.reply).toEqual(fromShell.reply);
  });

  it('replaces results of MCP tools in Cursor, and no others', async () => {
    const event = { hook_event_name: 'postToolUse', tool_input: {}, cursor_version: '2026.09.18' };
    const content = [{ type: 'text', text: buildLog }];
    const fromMcp = await replyTo('cursor', {
      ...event,
      tool_name: 'MCP:run',
      tool_output: JSON.stringify({ content }),
    });
    expect(fromMcp.reply).toEqual({
      updated_mcp_tool_output: {
        content: [{ type: 'text', text: expect.stringContaining('[Shortened') as string }],
      },
    });
    const output = JSON.stringify({ output: buildLog, exitCode: 0 });
    expect((await replyTo('cursor', { ...event, tool_name: 'Shell', tool_output: output })).reply).toEqual(
      {},
    );
  });

  const project = join(home, 'project');
  const transcript = join(home, '.gemini', 'tmp', 'project', 'chats', 'session-1.jsonl');
  const framed = (text: string) =>
    `<untrusted_context>\nOutput: ${text}\nProcess Group PGID: 42\n</untrusted_context>`;
  const gemini = (more: object = {}, llmContent: unknown = framed(buildLog)) => ({
    hook_event_name: 'AfterTool',
    cwd: project,
    transcript_path: transcript,
    tool_name: 'run_shell_command',
    tool_input: { command: 'sh build.sh' },
    tool_response: { llmContent, returnDisplay: buildLog },
    ...more,
  });
  const shownFile = (reply: unknown): string =>
    (
      reply as {
        hookSpecificOutput: { tailToolCallRequest: { name: 'read_file'; args: { file_path: string } } };
      }
    ).hookSpecificOutput.tailToolCallRequest.args.file_path;

  it('lets Gemini CLI read the shorter text of a command in place of its result, in the same frame', async () => {
    const { code, reply, err } = await replyTo('gemini', gemini());
    const path = join(home, '.gemini', 'tmp', 'project', 'leporello', `${idIn(reply)}.txt`);
    expect({ code, err, reply }).toEqual({
      code: 0,
      err: '',
      reply: {
        hookSpecificOutput: {
          hookEventName: 'AfterTool',
          tailToolCallRequest: { name: 'read_file', args: { file_path: path } },
        },
      },
    });
    const text = readFileSync(path, 'utf8');
    expect(text).toMatch(
      /^<untrusted_context>\nOutput: 2026[^]*\n\[Shortened from [^]*\]\nProcess Group PGID: 42\n<\/untrusted_context>$/,
    );
    expect(text.length).toBeLessThan(buildLog.length / 2);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await recalled(idIn(reply))).toBe(buildLog);
  });

  it('lets Gemini CLI read the shorter text of an MCP tool, and removes texts that it has read', async () => {
    const old = join(home, '.gemini', 'tmp', 'project', 'leporello', 'mem_0000000000000000.txt');
    mkdirSync(join(old, '..'), { recursive: true });
    writeFileSync(old, 'read long ago');
    utimesSync(old, 1, 1);
    const content = [{ text: `<untrusted_context>\n${buildLog}\n</untrusted_context>` }];
    const { reply } = await replyTo('gemini', gemini({ tool_name: 'mcp_ci_run' }, content));
    expect(readFileSync(shownFile(reply), 'utf8')).toMatch(/^<untrusted_context>\n2026[^]*\[Shortened/);
    expect(readdirSync(join(old, '..'))).toEqual([`${idIn(reply)}.txt`]);
  });

  it.each([
    ['a failed command', gemini({}, framed(`${buildLog}\nExit Code: 1`))],
    ['a failed tool', gemini({ tool_response: { llmContent: framed(buildLog), error: { message: 'no' } } })],
    ['the result of another call in its place', gemini({ original_request_name: 'run_shell_command' })],
    ['a result without a transcript', gemini({ transcript_path: '' })],
    ['a transcript elsewhere', gemini({ transcript_path: join(home, 'session.jsonl') })],
    ['a project with ignore files that may hide the text', gemini({ cwd: home })],
    ['two texts', gemini({}, [{ text: buildLog }, { text: buildLog }])],
    ['a recall', gemini({ tool_input: { command: 'leporello recall mem_5h8v0c2k9qtz31ax' } })],
    ['a text with a line that would be cut', gemini({}, framed(`${'x y '.repeat(800)}\n${buildLog}`))],
    ['another event', gemini({ hook_event_name: 'BeforeTool' })],
  ])('leaves to Gemini CLI %s', async (_, payload) => {
    expect(await replyTo('gemini', payload)).toEqual({ code: 0, reply: {}, err: '' });
  });

  it.each([
    ['the user', join(home, '.gemini'), { tools: { exclude: ['read_file'] } }],
    ['the project', join(project, '.gemini'), { tools: { core: ['run_shell_command'] } }],
  ])(
    'leaves a result where the settings of %s take read_file from Gemini CLI',
    async (_, folder, settings) => {
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, 'settings.json'), JSON.stringify(settings));
      expect((await replyTo('gemini', gemini())).reply).toEqual({});
      rmSync(join(folder, 'settings.json'));
      expect((await replyTo('gemini', gemini())).reply).not.toEqual({});
    },
  );

  it.each([
    ['a file that was read', bash('cat src/build.log')],
    ['a search', bash('rg -n worker .')],
    ['a file in a loop', bash('cd src && sed -n 1,200p a.ts')],
    ['a recall', bash('leporello  recall mem_5h8v0c2k9qtz31ax')],
    ['a failure', bash('npm test', `${buildLog}\nError: 2 tests failed`)],
    ['a small result', bash('sh build.sh', buildLog.slice(0, 1_000))],
    ['an interrupted command', bash('sh build.sh', buildLog, { interrupted: true })],
    [
      'an output that Claude Code keeps in a file',
      bash('sh build.sh', buildLog, { persistedOutputPath: 'a.txt' }),
    ],
    ['a tool that reads', { ...bash(''), tool_name: 'mcp__files__read_file', tool_response: buildLog }],
    ['our own tool', { ...bash(''), tool_name: 'mcp__leporello__list_folds', tool_response: buildLog }],
    [
      'an MCP failure',
      { ...bash(''), tool_name: 'mcp__ci__run', tool_response: { isError: true, content: buildLog } },
    ],
    [
      'a result with an image',
      {
        ...bash(''),
        tool_name: 'mcp__ci__run',
        tool_response: [{ type: 'text', text: buildLog }, { type: 'image' }],
      },
    ],
    ['another event', { ...bash('sh build.sh'), hook_event_name: 'PostToolUseFailure' }],
    ['a hook of Claude Code that Cursor runs', { ...bash('sh build.sh'), cursor_version: '2026.09.18' }],
    [
      'text that cannot be made smaller',
      bash('sh build.sh', 'Lorem ipsum dolor sit amet. '.repeat(3) + buildLog.replaceAll(/\d|\n/g, '')),
    ],
  ])('leaves %s as it is', async (_, payload) => {
    expect(await replyTo('claude', payload)).toEqual({ code: 0, reply: {}, err: '' });
  });

  it('leaves a result that was shortened before', async () => {
    const { reply } = await replyTo('codex', { ...bash('sh build.sh'), tool_response: buildLog });
    const { reason } = reply as { readonly reason: string };
    expect(
      (await replyTo('codex', { ...bash('sh build.sh'), tool_response: `${reason}\n`.repeat(9) })).reply,
    ).toEqual({});
  });

  it('ends with 1, and prints no reply, whatever is wrong', async () => {
    for (const [client, payload, flags] of [
      ['claude', 'no JSON', []],
      ['claude', '[]', []],
      ['claud', bash('sh build.sh'), []],
      ['aider', bash('sh build.sh'), []],
      ['claude', bash('sh build.sh'), ['--bad']],
      ['claude', bash('sh build.sh'), ['--config', 'missing.json']],
      ['claude', bash('sh build.sh'), ['--data', '/dev/null/x']],
    ] as const) {
      const { code, reply, err } = await replyTo(client, payload, flags);
      expect({ code, reply, err }).toEqual({
        code: 1,
        reply: undefined,
        err: expect.stringMatching(/^leporello: /) as string,
      });
    }
  });

  it('leaves everything when shrinks are off', async () => {
    const terminal = testTerminal({
      env: { HOME: home, LEPORELLO_SHRINKS: 'false' },
      input: [JSON.stringify(bash('sh build.sh'))],
    });
    expect(await run(['hook', 'claude'], terminal)).toBe(0);
    expect(terminal.written.out()).toBe('{}\n');
  });

  it('names the file in the folder that a variable of the client names', async () => {
    for (const [client, name, file] of [
      ['claude', 'CLAUDE_CONFIG_DIR', 'settings.json'],
      ['codex', 'CODEX_HOME', 'hooks.json'],
      ['gemini', 'GEMINI_CLI_HOME', join('.gemini', 'settings.json')],
    ] as const) {
      const terminal = testTerminal({ cwd: home, env: { HOME: home, [name]: join(home, 'elsewhere') } });
      expect(await run(['hook', client, '--print', '--json'], terminal)).toBe(0);
      expect(JSON.parse(terminal.written.out())).toMatchObject({ file: join(home, 'elsewhere', file) });
    }
  });

  it('prints an entry that does nothing where Leporello is not installed', async () => {
    for (const client of hookedClients) {
      const { reply } = await replyTo(client, '', ['--print', '--json']);
      const { file, entry } = reply as { readonly file: string; readonly entry: object };
      expect(file).toBe(hookContracts[client].file(home, {}));
      const command = /"command":("(?:[^"\\]|\\.)*")/.exec(JSON.stringify(entry))![1]!;
      const text = (JSON.parse(command) as string).replaceAll(ownCommand, 'no-such-program');
      const end = spawnSync('sh', ['-c', text], { encoding: 'utf8' });
      expect({ status: end.status, out: end.stdout + end.stderr }).toEqual({ status: 0, out: '' });
    }
  });
});
