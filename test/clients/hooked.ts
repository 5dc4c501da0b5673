/**
 * Plays clients that have `leporello hook` as their post-tool hook and no gateway: the model runs a command with a long output, reads a
 * file, and recalls the output by the command that the hook names. Once more with a data folder that cannot be used.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { run } from '../../src/cli/run.ts';
import { startFakeProvider } from '../support/fake-provider/fake-provider.ts';
import type { ScriptRequest, Turn } from '../support/fake-provider/script.ts';
import { testTerminal } from '../support/test-terminal.ts';
import { type Client, dummyKey, type Setup } from './client.ts';
import { claudeCode } from './clis/claude-code.ts';
import { codex, codexSettings } from './clis/codex.ts';
import { geminiCli, geminiSettings } from './clis/gemini-cli.ts';
import { clientsFolder, install } from './install.ts';
import { offeredTools } from './offered-tools.ts';
import { runClient } from './run-client.ts';
import { contentOf, secretIn, secretOf } from './secret-files.ts';

type HookedCli = {
  readonly client: Client;
  /** The name for `leporello hook`. */
  readonly name: string;
  /** The file of the entry, in the home folder. */
  readonly file: string;
  /** The other settings in that file. */
  readonly settings?: object;
  readonly setup: (url: string) => Setup;
};

const task = 'Build it.';

const hookedClis: readonly HookedCli[] = [
  {
    client: claudeCode,
    name: 'claude',
    file: '.claude/settings.json',
    setup: (url) => ({
      args: ['--print', task, '--model', 'claude-sonnet-4-6', '--allowedTools', 'Bash'],
      env: {
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_API_KEY: dummyKey,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      },
    }),
  },
  {
    client: codex,
    name: 'codex',
    file: '.codex/hooks.json',
    setup: (url) =>
      codexSettings(
        ['--dangerously-bypass-hook-trust', '--model', 'gpt-5.6', task],
        `model_provider = "own"
[model_providers.own]
name = "own"
base_url = "${url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
`,
      ),
  },
  {
    client: geminiCli,
    name: 'gemini',
    file: '.gemini/settings.json',
    settings: geminiSettings,
    // In its default mode it asks for approval of each command, so the test allows all of them.
    setup: (url) => ({
      args: ['--model', 'gemini-2.5-pro', '--allowed-tools', 'run_shell_command', '--prompt', task],
      env: { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: dummyKey, GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    }),
  },
];

export type HookedCheck = { readonly check: string; readonly problems: readonly string[] };

/** Plays the clients with these names, or all, one after the other. */
export async function playHooks(names: readonly string[]): Promise<readonly HookedCheck[]> {
  const checks: HookedCheck[] = [];
  for (const one of hookedClis) {
    if (names.length > 0 && !names.includes(one.client.name)) continue;
    const command = await install(one.client);
    checks.push({ check: `${one.client.name}, hook`, problems: await played(one, command, true) });
    checks.push({
      check: `${one.client.name}, broken data folder`,
      problems: await played(one, command, false),
    });
  }
  return checks;
}

const log = 'output.log';

async function played(one: HookedCli, command: string, isUsable: boolean): Promise<readonly string[]> {
  await mkdir(clientsFolder, { recursive: true });
  const home = await mkdtemp(join(clientsFolder, 'hooked-'));
  const folder = join(home, 'project');
  const data = isUsable ? join(home, 'data') : '/dev/null/data';
  await mkdir(folder);
  const output = contentOf(log, 3_000);
  await writeFile(join(folder, log), output);
  await writeFile(join(folder, 'build.sh'), `while read -r line; do echo "$line"; done < ${log}\n`);
  const asked: ScriptRequest[] = [];
  const provider = await startFakeProvider({ script: (request) => turnFor(request, asked) });
  try {
    const entry = await entryOf(one.name, data);
    const setup = one.setup(provider.url);
    const files = { ...setup.files, [one.file]: JSON.stringify({ ...one.settings, ...entry }) };
    const end = await runClient(command, { ...setup, files }, { home, folder });
    const [, built = '', read = '', recalled = ''] = asked.map((request) => lastResult(request));
    const isShort = built.includes('[Shortened from ') && !built.includes(output.slice(0, 4_000));
    const problems = [
      ...(end.code === 0 && asked.length === 4
        ? []
        : [`exit code ${end.code}, ${asked.length} requests: ${end.stderr.slice(-800)}`]),
      ...(isShort === isUsable
        ? []
        : [
            `the output ${isUsable ? 'was not' : 'was'} shortened: ${built.slice(0, 300)} ${end.stderr.match(/^.*hook.*$/gm)?.join('\n')}`,
          ]),
      ...(built.startsWith('{') ? [`the result was marked as failed: ${built.slice(0, 300)}`] : []),
      ...(isShort || secretIn(log, built) === secretOf(log) ? [] : ['the original did not reach the model']),
      ...(read.includes(output.slice(0, 4_000))
        ? []
        : [`the file that was read has changed: ${read.slice(0, 300)}`]),
      ...(secretIn(log, recalled) === secretOf(log) ? [] : [`the recall gave ${recalled.slice(0, 300)}`]),
    ];
    const id = /mem_[a-z0-9]{16}/.exec(built)?.[0];
    return !isUsable || id === undefined || (await recall(id, data)) === output.trimEnd()
      ? problems
      : [...problems, 'leporello recall does not print the output exactly'];
  } finally {
    await provider.close();
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The model: builds, prints the log, runs the command of the note (or builds again without one), and ends. */
function turnFor(request: ScriptRequest, asked: ScriptRequest[]): Turn {
  const shell = offeredTools(request.body).find(({ name }) =>
    ['Bash', 'exec_command', 'run_shell_command'].includes(name),
  );
  if (!shell) return { type: 'turn', parts: [{ type: 'text', text: 'Build' }] };
  asked.push(request);
  const noted = /run (.{1,400}? recall .{0,200}?mem_[a-z0-9]{16})/.exec(lastResult(asked[1] ?? request))?.[1];
  const commands = ['sh build.sh', `cat ${log}`, noted ?? 'sh build.sh'];
  const command = commands[asked.length - 1];
  if (command === undefined) return { type: 'turn', parts: [{ type: 'text', text: 'Done.' }] };
  const given =
    shell.name === 'exec_command'
      ? { cmd: command, max_output_tokens: 20_000 }
      : { command, description: 'Work' };
  return { type: 'turn', parts: [{ type: 'tool-call', name: shell.name, arguments: given }] };
}

/** Returns the text of the newest tool result in a request. */
function lastResult({ body }: ScriptRequest): string {
  const texts: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const { type, output, content, functionResponse } = value as Readonly<Record<string, unknown>>;
    if (functionResponse !== undefined) texts.push(textOfResponse(functionResponse));
    else if (type === 'function_call_output') texts.push(String(output));
    else if (type === 'tool_result')
      texts.push(typeof content === 'string' ? content : JSON.stringify(content));
    else for (const inner of Object.values(value)) visit(inner);
  };
  visit(body['input'] ?? body['messages'] ?? body['contents']);
  return texts.at(-1) ?? '';
}

/** Returns the output of a function response of Gemini; a response that reports a failure is shown as it is. */
function textOfResponse(value: unknown): string {
  const { response } = value as { readonly response?: { readonly output?: unknown } };
  return typeof response?.output === 'string' ? response.output : JSON.stringify(response);
}

/** Returns the entry as `leporello hook --print` prints it. */
async function entryOf(name: string, data: string): Promise<object> {
  const terminal = testTerminal({ cwd: resolve('.'), env: { HOME: '/' } });
  await run(['hook', name, '--print', '--json', '--data', data], terminal);
  return (JSON.parse(terminal.written.out()) as { readonly entry: object }).entry;
}

async function recall(id: string, data: string): Promise<string> {
  const terminal = testTerminal({ env: { HOME: '/' } });
  await run(['recall', id, '--data', data], terminal);
  return terminal.written.out().trimEnd();
}
