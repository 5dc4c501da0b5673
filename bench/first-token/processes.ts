/** The processes of one measurement: the provider, a raw pipe and the gateway as it really runs, each on a free port of the loopback. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ProviderKind, Told } from './provider.ts';

export type Processes = AsyncDisposable & {
  readonly provider: string;
  readonly pipe: string;
  readonly gateway: string;
  /** What the provider saw since it was asked last. */
  told(): Promise<readonly Told[]>;
};

/** `script` runs as a provider with `--provider KIND`, and as a pipe with `--pipe ORIGIN`. */
export async function startProcesses(script: string, kind: ProviderKind): Promise<Processes> {
  const data = await mkdtemp(join(tmpdir(), 'leporello-bench-'));
  const children: ChildProcess[] = [];
  const start = async (args: readonly string[]): Promise<{ child: ChildProcess; origin: string }> => {
    const child = fork(script, args);
    children.push(child);
    const [origin] = (await once(child, 'message')) as [string];
    return { child, origin };
  };
  const provider = await start(['--provider', kind]);
  const pipe = await start(['--pipe', provider.origin]);
  // A conversation that comes in long would have paid its rent, and be folded.
  const config = join(data, 'config.json');
  await writeFile(config, JSON.stringify({ recall: { offer: 'always' }, triggers: { cacheRent: false } }));
  const gateway = startGateway(provider.origin, data, ['--config', config]);
  children.push(gateway);
  return {
    provider: provider.origin,
    pipe: pipe.origin,
    gateway: await urlOf(gateway),
    async told() {
      provider.child.send('tell');
      const [told] = (await once(provider.child, 'message')) as [readonly Told[]];
      return told;
    },
    async [Symbol.asyncDispose]() {
      const ended = children.map((child) => once(child, 'exit'));
      for (const child of children) child.kill();
      await Promise.all(ended);
      await rm(data, { recursive: true });
    },
  };
}

/** The command that users start, with a new data folder and no variables of ours but the upstreams. */
export function startGateway(upstream: string, data: string, args: readonly string[] = []): ChildProcess {
  const main = new URL('../../src/cli/main.ts', import.meta.url).pathname;
  const env = {
    PATH: process.env['PATH'],
    HOME: data,
    LEPORELLO_DATA: data,
    LEPORELLO_OPENAI_URL: upstream,
    LEPORELLO_ANTHROPIC_URL: upstream,
    LEPORELLO_GEMINI_URL: upstream,
  };
  return spawn(process.execPath, [main, 'serve', '--json', '--port', '0', ...args], {
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

/** Resolves when it listens. */
export async function urlOf(gateway: ChildProcess): Promise<string> {
  const lines = createInterface({ input: gateway.stdout! });
  const [line] = (await Promise.race([once(lines, 'line'), once(gateway, 'exit')])) as [unknown];
  if (typeof line !== 'string')
    throw new Error(`The gateway ended before it listened, with ${String(line)}.`);
  return (JSON.parse(line) as { readonly url: string }).url;
}
