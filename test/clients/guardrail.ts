/**
 * Runs the real LiteLLM proxy with its guardrail `headroom`, which calls `/v1/compress` and `/v1/retrieve` of a gateway. Installs it from PyPI once,
 * which needs python3 with venv.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Script } from '../support/fake-provider/script.ts';
import { startStack } from '../e2e/stack.ts';
import { clientsFolder } from './install.ts';

const release = 'litellm[proxy]==1.109.1';
const folder = join(clientsFolder, 'litellm');
const key = 'sk-a-dummy-key-of-the-proxy';

/** Milliseconds in which the proxy must answer. */
const startMs = 120_000;

type GuardrailResult = { readonly check: string; readonly passed: boolean };

/** Plays one conversation through the proxy, plain and streamed. */
export async function playGuardrail(): Promise<readonly GuardrailResult[]> {
  await using stack = await startStack(script, {
    triggers: { tokenBudget: { triggerTokens: 20_000, targetTokens: 10_000 } },
  });
  const proxy = await startProxy(stack.provider.url, stack.url);
  try {
    const results: GuardrailResult[] = [];
    for (const stream of [false, true]) {
      const response = await fetch(`${proxy.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: JSON.stringify({ model: 'gpt-4o', stream, messages: conversation }),
      });
      const answer = await response.text();
      const [asked = [], retrieved = []] = stack.provider.requests
        .slice(-2)
        .map(({ body }) => contentsIn(JSON.parse(new TextDecoder().decode(body))));
      const kind = stream ? 'streamed' : 'plain';
      results.push(
        {
          check: `${kind}: the model gets the first result as a stub`,
          passed: hashIn(asked) !== undefined && !asked.includes(logOf(0)),
        },
        { check: `${kind}: it gets the original back`, passed: retrieved.includes(logOf(0)) },
        { check: `${kind}: the client gets the answer`, passed: response.ok && answer.includes('reactor 0') },
      );
    }
    return results;
  } finally {
    await proxy.close();
  }
}

/** Returns the texts of the messages of a request. */
function contentsIn({ messages }: { readonly messages?: unknown }): readonly string[] {
  return (messages as readonly { readonly content?: unknown }[]).map(({ content }) =>
    typeof content === 'string' ? content : '',
  );
}

/** Returns the first hash that a stub names. */
function hashIn(contents: readonly string[]): string | undefined {
  return contents
    .map((text) => /headroom_retrieve \{"hash":"([0-9a-f]{20})"\}/.exec(text)?.[1])
    .find(Boolean);
}

function logOf(step: number): string {
  const lines = Array.from({ length: 150 }, (_, at) => {
    return `${at} ${((step * 7_919 + at * 104_729) % 999_983).toString(36)} module ${at % 13} loaded in ${(at * 31 + step) % 97} ms`;
  });
  return [...lines, `ERROR: the pump of reactor ${step} is blocked`].join('\n');
}

/** Returns the words of a user, 12 calls with results, an answer, and a question about the first result. */
const conversation = [
  { role: 'user', content: 'Find out which pumps are blocked.' },
  ...Array.from({ length: 12 }, (_, step) => [
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        {
          id: `call-${step}`,
          type: 'function',
          function: { name: 'read_log', arguments: `{"step":${step}}` },
        },
      ],
    },
    { role: 'tool', tool_call_id: `call-${step}`, content: logOf(step) },
  ]).flat(),
  { role: 'assistant', content: 'I have read twelve logs.' },
  { role: 'user', content: 'What did the first log say?' },
];

/** Asks for the first folded result, and then says what it holds. */
const script: Script = ({ body }) => {
  const contents = contentsIn(body);
  const hash = hashIn(contents);
  if (hash === undefined || contents.at(-1) === logOf(0))
    return { type: 'turn', parts: [{ type: 'text', text: 'The pump of reactor 0 is blocked.' }] };
  return {
    type: 'turn',
    parts: [{ type: 'tool-call', id: 'retrieve-1', name: 'headroom_retrieve', arguments: { hash } }],
  };
};

async function startProxy(provider: string, gateway: string) {
  const command = join(folder, 'bin/litellm');
  if (!existsSync(command)) installProxy();
  const port = await freePort();
  const config = join(folder, 'config.yaml');
  // JSON is YAML.
  const settings = {
    model_list: [
      {
        model_name: 'gpt-4o',
        litellm_params: { model: 'openai/gpt-4o', api_base: `${provider}/v1`, api_key: 'dummy' },
      },
    ],
    guardrails: [
      {
        guardrail_name: 'leporello',
        litellm_params: {
          guardrail: 'headroom',
          mode: 'pre_call',
          default_on: true,
          api_base: gateway,
          api_key: 'dummy',
        },
      },
    ],
  };
  writeFileSync(config, JSON.stringify(settings));
  const child = spawn(command, ['--config', config, '--host', '127.0.0.1', '--port', `${port}`], {
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      LITELLM_LOCAL_MODEL_COST_MAP: 'True',
      LITELLM_MASTER_KEY: key,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => output.push(chunk.toString()));
  const url = `http://127.0.0.1:${port}`;
  const latest = performance.now() + startMs;
  while (performance.now() < latest && child.exitCode === null) {
    const answers = await fetch(url).then(
      () => true,
      () => false,
    );
    if (answers) {
      return {
        url,
        async close() {
          const exited = once(child, 'exit');
          child.kill('SIGKILL');
          await exited;
        },
      };
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  child.kill('SIGKILL');
  throw new Error(`LiteLLM does not answer on ${url}:\n${output.join('')}`);
}

function installProxy(): void {
  mkdirSync(folder, { recursive: true });
  for (const [command, ...args] of [
    ['python3', '-m', 'venv', folder],
    [join(folder, 'bin/pip'), 'install', '--quiet', '--disable-pip-version-check', release],
  ] as const) {
    if (spawnSync(command, args, { stdio: 'inherit' }).status !== 0)
      throw new Error(`${command} ${args.join(' ')} failed: LiteLLM is not installed.`);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
