/** Starts the provider and the gateways of one measurement, each in its own process. The gateways differ only in their settings. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startGateway, urlOf } from '../first-token/processes.ts';

export type Running = AsyncDisposable & {
  readonly provider: string;
  /** Origins by name of their settings. */
  readonly gateways: Readonly<Record<string, string>>;
};

/** Starts all processes. `settings` are arguments of `leporello serve` by name; `script` runs as the provider with `--provider MS`. */
export async function startAll(
  script: string,
  summaryMs: number,
  settings: Readonly<Record<string, readonly string[]>>,
): Promise<Running> {
  const folder = await mkdtemp(join(tmpdir(), 'leporello-bench-'));
  const provider = fork(script, ['--provider', String(summaryMs)]);
  const children: ChildProcess[] = [provider];
  const [origin] = (await once(provider, 'message')) as [string];
  const gateways: Record<string, string> = {};
  for (const [name, args] of Object.entries(settings)) {
    const gateway = startGateway(origin, join(folder, name.replaceAll(/\W/g, '-')), args);
    children.push(gateway);
    gateways[name] = await urlOf(gateway);
  }
  return {
    provider: origin,
    gateways,
    async [Symbol.asyncDispose]() {
      const ended = children.map((child) => once(child, 'exit'));
      // SIGKILL, because a gateway that gets SIGTERM waits for unfinished summaries.
      for (const child of children) child.kill('SIGKILL');
      await Promise.all(ended);
      await rm(folder, { recursive: true });
    },
  };
}
