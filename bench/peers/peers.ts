/**
 * Lists other gateways that bench/gateway.ts measures where bench/peers/install.ts has installed them, and starts them on the loopback. Each
 * runs one process with its own defaults, without a rate limit, without a cache of whole responses, and with dummy keys.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../test/support/free-port.ts';

export type Peer = {
  readonly name: string;
  readonly version: string;
  /** Returns the command that installs the peer into a folder. */
  readonly install: (folder: string) => readonly (readonly string[])[];
  /** Returns the command that serves it on a port in front of an upstream (an origin). */
  readonly serve: (folder: string, port: number, upstream: string) => readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Returns headers that each request needs. */
  readonly headers?: (upstream: string) => Readonly<Record<string, string>>;
};

/** A folder that may be deleted at any time. */
const peersFolder = join(tmpdir(), 'leporello-peers');

/** LiteLLM does not start without a key that is hard to guess. */
const masterKey = `sk-${randomUUID()}`;

/** The version of LiteLLM that benchmarks and client tests run. */
export const liteLlmVersion = '1.106.2';

export const peers: readonly Peer[] = [
  {
    name: 'Portkey',
    version: '1.15.2',
    install: (folder) => [npm(folder, '@portkey-ai/gateway@1.15.2')],
    serve: (folder, port) => [
      process.execPath,
      join(folder, 'node_modules/@portkey-ai/gateway/build/start-server.js'),
      `--port=${port}`,
      '--headless',
    ],
    env: { TRUSTED_CUSTOM_HOSTS: '127.0.0.1,localhost', NODE_ENV: 'production' },
    headers: (upstream) => ({ 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${upstream}/v1` }),
  },
  liteLlm({ version: liteLlmVersion, model: 'gpt-4.1' }),
  {
    name: 'Headroom',
    version: '0.42.0',
    install: (folder) => python(folder, 'headroom-ai[proxy]==0.42.0'),
    serve: (folder, port, upstream) => [
      join(folder, 'bin/headroom'),
      'proxy',
      '--host',
      '127.0.0.1',
      '--port',
      `${port}`,
      '--openai-api-url',
      upstream,
      '--no-rate-limit',
      '--no-cache',
      '--no-subscription-tracking',
    ],
    env: { HEADROOM_BEACON: 'off', HF_HUB_OFFLINE: '1', HEADROOM_UPDATE_CHECK: 'off' },
  },
];

/** Returns LiteLLM's proxy in front of one model of an upstream, with guardrails if there are any. */
export function liteLlm({
  version,
  model,
  guardrails = [],
}: {
  readonly version: string;
  readonly model: string;
  readonly guardrails?: readonly object[];
}): Peer {
  return {
    name: 'LiteLLM',
    version,
    install: (folder) => python(folder, `litellm[proxy]==${version}`),
    serve: (folder, port, upstream) => {
      const config = join(folder, `config-${port}.yaml`);
      const served = { model: `openai/${model}`, api_base: `${upstream}/v1`, api_key: 'dummy' };
      // JSON is YAML.
      writeFileSync(
        config,
        JSON.stringify({ model_list: [{ model_name: model, litellm_params: served }], guardrails }),
      );
      const host = ['--host', '127.0.0.1', '--port', `${port}`];
      return [join(folder, 'bin/litellm'), '--config', config, ...host, '--num_workers', '1'];
    },
    env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_LOG: 'ERROR', LITELLM_MASTER_KEY: masterKey },
    headers: () => ({ authorization: `Bearer ${masterKey}` }),
  };
}

/** Returns a package that is only imported, with the settings that keep it off the network. */
export function pythonPeer(name: string, version: string, spec: string): Peer {
  return {
    name,
    version,
    install: (folder) => python(folder, spec),
    serve: () => [],
    env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True', HEADROOM_BEACON: 'off', HF_HUB_OFFLINE: '1' },
  };
}

/** The folder that a peer is installed into. */
export function folderOf({ name, version }: Peer): string {
  return join(peersFolder, `${name.toLowerCase()}-${version}`);
}

export function isInstalled(peer: Peer): boolean {
  return existsSync(join(folderOf(peer), 'installed'));
}

/** Installs a peer once. Returns the command that failed; undefined if it is installed. */
export function installPeer(peer: Peer): string | undefined {
  const folder = folderOf(peer);
  mkdirSync(folder, { recursive: true });
  if (isInstalled(peer)) return undefined;
  const failed = peer.install(folder).find(([command = '', ...args]) => {
    return spawnSync(command, args, { stdio: 'inherit' }).status !== 0;
  });
  if (failed) return failed.join(' ');
  writeFileSync(join(folder, 'installed'), '');
  return undefined;
}

export type RunningPeer = { readonly origin: string; readonly child: ChildProcess };

/** Starts a peer and waits until it answers. Its output goes to a file in its folder. Rejects if it does not answer within two minutes. */
export async function startPeer(peer: Peer, upstream: string): Promise<RunningPeer> {
  const folder = folderOf(peer);
  const port = await freePort();
  const [command = '', ...args] = peer.serve(folder, port, upstream);
  const home = join(folder, 'home');
  mkdirSync(home, { recursive: true });
  const env = { PATH: process.env['PATH'], HOME: home, OPENAI_API_KEY: 'dummy', ...peer.env };
  const child = spawn(command, args, { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => output.length < 1_000 && output.push(chunk));
  }
  const origin = `http://127.0.0.1:${port}`;
  const latest = performance.now() + 120_000;
  while (performance.now() < latest && child.exitCode === null) {
    const answers = await fetch(origin).then(
      () => true,
      () => false,
    );
    if (answers) return { origin, child };
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  child.kill('SIGKILL');
  throw new Error(`${peer.name} does not answer on ${origin}:\n${Buffer.concat(output).toString()}`);
}

/** Returns the CPU time and memory of a process and its children, from /proc. Undefined on systems without it. */
export function useOfTree(pid: number): { readonly cpuMs: number; readonly rssMb: number } | undefined {
  if (!existsSync('/proc/self/stat')) return undefined;
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => statOf(Number(name)) ?? []);
  const tree = new Set([pid]);
  // A child's number may be lower than its parent's, so the list is searched until nothing is added.
  for (let size = 0; size < tree.size; ) {
    size = tree.size;
    for (const one of all) if (tree.has(one.parent)) tree.add(one.pid);
  }
  const own = all.filter((one) => tree.has(one.pid));
  const sum = (of: (one: (typeof own)[number]) => number) => own.reduce((total, one) => total + of(one), 0);
  return { cpuMs: sum(({ cpuMs }) => cpuMs), rssMb: sum(({ rssMb }) => rssMb) };
}

function statOf(pid: number) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    const field = (at: number): number => Number(fields[at - 3]);
    // The fields are user and system time in units of 10 ms, and memory in pages of 4 kB.
    return { pid, parent: field(4), cpuMs: (field(14) + field(15)) * 10, rssMb: (field(24) * 4_096) / 1e6 };
  } catch {
    return undefined;
  }
}

function npm(folder: string, name: string): readonly string[] {
  return ['npm', 'install', '--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts', name];
}

function python(folder: string, name: string): readonly (readonly string[])[] {
  const pip = [join(folder, 'bin/pip'), 'install', '--quiet', '--disable-pip-version-check', name];
  return [['python3', '-m', 'venv', folder], pip];
}
