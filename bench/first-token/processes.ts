/** Starts the processes of one measurement, each on a free loopback port: the provider, a raw pipe, and the gateway as users run it. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Exchange, ProviderKind, ProviderMessage } from './provider.ts';

export type Processes = AsyncDisposable & {
  readonly provider: string;
  readonly pipe: string;
  readonly gateway: string;
  /** Returns the provider's requests and responses since the last message to it. */
  takeExchanges(): Promise<readonly Exchange[]>;
  /** Says what follows: the provider writes its texts without pauses in a warm-up. */
  begin(part: 'warm up' | 'measure'): Promise<void>;
};

/** Starts `script` as a provider (`--provider KIND`) and as a pipe (`--pipe ORIGIN`), then the gateway. */
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
  // A conversation that is long in its first request would be folded by the `cacheRent` trigger.
  const config = join(data, 'config.json');
  await writeFile(config, JSON.stringify({ recall: { offer: 'always' }, triggers: { cacheRent: false } }));
  const gateway = startGateway(provider.origin, data, ['--config', config]);
  children.push(gateway);
  const tell = async (message: ProviderMessage): Promise<readonly Exchange[]> => {
    provider.child.send(message);
    const [exchanges] = (await once(provider.child, 'message')) as [readonly Exchange[]];
    return exchanges;
  };
  return {
    provider: provider.origin,
    pipe: pipe.origin,
    gateway: await urlOf(gateway),
    takeExchanges: () => tell('take exchanges'),
    async begin(part) {
      await tell(part);
    },
    async [Symbol.asyncDispose]() {
      const ended = children.map((child) => once(child, 'exit'));
      for (const child of children) child.kill();
      await Promise.all(ended);
      await rm(data, { recursive: true });
    },
  };
}

/** Starts `leporello serve` with an empty data folder. The environment sets only that folder and the upstreams. */
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

/** Resolves to the gateway's URL once it listens. */
export async function urlOf(gateway: ChildProcess): Promise<string> {
  const lines = createInterface({ input: gateway.stdout! });
  const [line] = (await Promise.race([once(lines, 'line'), once(gateway, 'exit')])) as [unknown];
  if (typeof line !== 'string')
    throw new Error(`The gateway exited with code ${String(line)} before it listened.`);
  return (JSON.parse(line) as { readonly url: string }).url;
}

/** Resolves when the gateway has warmed up. */
export async function warmedUp(url: string): Promise<void> {
  while ((await fetch(`${url}/readyz`)).status !== 200)
    await new Promise((resolve) => setTimeout(resolve, 100));
}
