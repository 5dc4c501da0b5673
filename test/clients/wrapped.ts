/**
 * Plays a client's loops under `leporello wrap`, as a user would run it: the wrap starts the gateway, the client has no base URL of its own,
 * and its settings files must stay as they are, byte for byte.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Receipt } from '../../src/receipts/receipt.ts';
import { openHold, portUser, wrapsPath } from '../../src/cli/running-gateway.ts';
import { type RecordedRequest, startFakeProvider } from '../support/fake-provider/fake-provider.ts';
import { type Client, dummyKey, type Setup } from './client.ts';
import { claudeCode } from './clis/claude-code.ts';
import { codex, codexSettings, codexWithLogin } from './clis/codex.ts';
import { geminiCli } from './clis/gemini-cli.ts';
import { opencode } from './clis/opencode.ts';
import { pi } from './clis/pi.ts';
import { qwenCode, qwenSettings } from './clis/qwen-code.ts';
import { clientsFolder, install, path } from './install.ts';
import { foldedLoop, type Loop, plainLoop, sizesOf, stepsOf } from './loops.ts';
import { runClient } from './run-client.ts';
import { scriptedModel } from './scripted-model.ts';
import { contentOf, secretOf } from './secret-files.ts';

type WrappedClient = {
  readonly client: Client;
  /** The name for `leporello wrap`. */
  readonly name: string;
  /** The name in the list of runs. Default: `name`. */
  readonly label?: string;
  /** The path of the scripted provider for the OpenAI formats. Default: none. */
  readonly openaiPath?: string;
  readonly setup: (task: string) => Setup;
};

// Settings as these clients leave them: they rewrite other spellings themselves, with and without a gateway.
const settledGemini = {
  security: { auth: { selectedType: 'gemini-api-key' } },
  general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
};
const settledOpencode = {
  $schema: 'https://opencode.ai/config.json',
  share: 'disabled',
  autoupdate: false,
};

/** The clients as a user has them: with a key, and without a base URL. */
export const wrappedClients: readonly WrappedClient[] = [
  {
    client: claudeCode,
    name: 'claude',
    setup: (task) => ({
      args: ['--print', task, '--model', 'claude-sonnet-4-6', '--allowedTools', 'Read'],
      env: { ANTHROPIC_API_KEY: dummyKey, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
      files: { '.claude/settings.json': '{"theme": "dark"}\n' },
    }),
  },
  {
    client: codex,
    name: 'codex',
    setup: (task) => codexSettings(['--model', 'gpt-6.1-sol', task], ''),
  },
  {
    client: codex,
    name: 'codex',
    label: 'codex-chatgpt',
    openaiPath: '/backend-api/codex',
    setup: (task) => codexWithLogin(['--model', 'gpt-6.1-sol', task]),
  },
  {
    client: geminiCli,
    name: 'gemini',
    setup: (task) => ({
      args: ['--approval-mode', 'yolo', '--prompt', task],
      env: { GEMINI_API_KEY: dummyKey, GEMINI_CLI_TRUST_WORKSPACE: 'true' },
      files: { '.gemini/settings.json': JSON.stringify(settledGemini, null, 2) },
    }),
  },
  {
    client: opencode,
    name: 'opencode',
    setup: (task) => ({
      args: ['run', '--pure', '--model', 'anthropic/claude-sonnet-4-6', task],
      env: {
        ANTHROPIC_API_KEY: dummyKey,
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      },
      files: { '.config/opencode/opencode.json': JSON.stringify(settledOpencode, null, 2) },
    }),
  },
  {
    client: pi,
    name: 'pi',
    setup: (task) => ({
      args: ['--print', '--provider', 'anthropic', '--model', 'claude-sonnet-4-6', '--tools', 'read', task],
      env: { ANTHROPIC_API_KEY: dummyKey, PI_OFFLINE: '1', PI_SKIP_VERSION_CHECK: '1', PI_TELEMETRY: '0' },
      files: { '.pi/agent/settings.json': '{"theme": "dark"}\n' },
    }),
  },
  {
    client: qwenCode,
    name: 'qwen',
    setup: (task) => ({
      args: ['--auth-type', 'openai', '--approval-mode', 'yolo', '--model', 'qwen3-coder-plus', task],
      env: { OPENAI_API_KEY: dummyKey, OPENAI_MODEL: 'qwen3-coder-plus' },
      files: { '.qwen/settings.json': JSON.stringify({ ...qwenSettings, $version: 4 }, null, 2) },
    }),
  },
];

/** Returns the name of a wrapped client in the list of runs. */
export function labelOf({ label, name }: WrappedClient): string {
  return label ?? name;
}

export type WrappedResult = {
  readonly problems: readonly string[];
  readonly closing: string;
  readonly receipts: readonly Receipt[];
};

/** Plays the loop that fits the window, then the one that does not. `port` must be free. */
export async function playWrapped(one: WrappedClient, port: number): Promise<readonly WrappedResult[]> {
  const command = await install(one.client);
  const plain = await playUnderWrap(one, command, plainLoop, port);
  if (plain.problems.length > 0) return [plain];
  const folded = await playUnderWrap(one, command, foldedLoop(sizesOf(plain.receipts), false), port);
  return [plain, folded];
}

/** Plays one loop. `port` must be free; the gateway has ended when this resolves. */
export async function playUnderWrap(
  { name, openaiPath = '', setup }: WrappedClient,
  command: string,
  loop: Loop,
  port: number,
): Promise<WrappedResult> {
  await mkdir(clientsFolder, { recursive: true });
  const home = await mkdtemp(join(clientsFolder, 'wrapped-'));
  const folder = join(home, 'project');
  await mkdir(folder);
  const steps = stepsOf(loop);
  for (const file of steps.flatMap(({ read = [] }) => read)) {
    await writeFile(join(folder, file), contentOf(file, loop.tokensPerFile));
  }
  const model = scriptedModel(steps, folder, name !== 'qwen');
  const provider = await startFakeProvider({ script: model.script });
  const config = join(home, 'leporello.json');
  await writeFile(config, JSON.stringify(configFor(loop, port, provider.url, openaiPath)));
  const { args, env, files = {} } = setup(loop.sessions[0]!.task);
  try {
    const over = new AbortController();
    const keeping = keepGateway(port, over.signal);
    const run = await runClient(
      process.execPath,
      {
        args: [resolve('src/cli/main.ts'), 'wrap', name, '--config', config, '--', ...args],
        env: { ...env, PATH: [dirname(command), path].join(delimiter) },
        files,
      },
      { home, folder },
    );
    over.abort();
    const hold = await keeping;
    const receipts = hold === undefined ? [] : await receiptsOf(port);
    hold?.release();
    // A later run has another data folder, so it could not use this gateway.
    while ((await portUser({ host: '127.0.0.1', port }, undefined, 1_000)).kind !== 'nobody') await pause(50);
    const closing = /^leporello: (\d.*)$/m.exec(run.stderr)?.[1] ?? '';
    const said = `exit code ${run.code}\n${run.stdout.slice(-600)}\n${run.stderr.slice(-1_200)}${/.*status 400.*|.*"message".*/.exec(run.stderr)?.[0] ?? ''}`;
    const answer = steps.at(-1)?.answer ?? [];
    const recalls = steps.filter(({ recall }) => recall !== undefined).length;
    const changed: string[] = [];
    for (const [file, text] of Object.entries(files)) {
      const now = await readFile(join(home, file), 'utf8');
      if (now !== text) changed.push(`${file}: ${text} became ${now}`);
    }
    const found = receipts.flatMap((receipt) => receipt.recalls).filter((recall) => recall.found).length;
    const problems = [
      ...(run.code === 0 ? [] : [said]),
      ...answer.filter((file) => !run.stdout.includes(secretOf(file))).map((file) => `no secret of ${file}`),
      ...changed,
      ...(closing === '' ? [`no closing line: ${said}`] : []),
      ...(found === recalls ? [] : [`${found} recalls instead of ${recalls}`]),
      ...(recalls === 0 || / folds?, /.test(closing) ? [] : ['nothing was folded']),
      ...(openaiPath === '' ? [] : withoutAccount(provider.requests)),
    ];
    return { problems, closing, receipts };
  } finally {
    await provider.close();
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Returns a problem if Codex does not name the account of its login, by which the gateway recognizes the login. */
function withoutAccount(requests: readonly RecordedRequest[]): readonly string[] {
  const isNamed = requests.every(({ headers }) => headers.some(([name]) => name === 'chatgpt-account-id'));
  return isNamed ? [] : ['a request without chatgpt-account-id'];
}

function configFor(loop: Loop, port: number, url: string, openaiPath: string): object {
  return {
    port,
    openaiUrl: url + openaiPath,
    anthropicUrl: url,
    geminiUrl: url,
    models: { '*': { maxInputTokens: loop.window } },
    // The scripted provider's usage is not a count of tokens.
    calibrate: false,
    triggers: { windowFraction: { targetShare: loop.foldTo } },
    // Shrinks would make some clients' results smaller, which would then fill the window later.
    ...(loop.name === 'plain' ? {} : { shrinks: false }),
    limits: { prepareDeadlineMs: 600_000, storeDeadlineMs: 60_000 },
  };
}

/** Uses the gateway on the port as soon as it runs, so that its receipts can be read when the wrap has ended. */
export async function keepGateway(port: number, over: AbortSignal) {
  while (!over.aborted) {
    const { kind } = await portUser({ host: '127.0.0.1', port }, undefined, 1_000);
    // A gateway of an earlier run that is ending accepts nobody.
    const hold =
      kind === 'leporello' &&
      (await openHold(`http://127.0.0.1:${port}${wrapsPath}/the-test/hold?pid=999999999`));
    if (hold) return hold;
    await pause(50);
  }
  return undefined;
}

/** Returns the receipts of the gateway on the port, the oldest first. */
export async function receiptsOf(port: number): Promise<readonly Receipt[]> {
  const response = await fetch(`http://127.0.0.1:${port}/_leporello/receipts?limit=500`);
  const { receipts } = (await response.json()) as { readonly receipts: readonly Receipt[] };
  return receipts.toSorted((a, b) => a.at - b.at);
}
