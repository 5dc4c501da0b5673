/**
 * Measures the time and CPU that the gateway adds to a request: chat bodies of 20 kB, 200 kB and 2 MB through each target of
 * gateway/targets.ts and each installed gateway of peers/peers.ts, with one connection and with sixteen. Run
 * `node bench/gateway.ts [--rounds N] [--kB N]... [--own]`; `--own` leaves the other gateways out. It prints a table and, without options, writes
 * bench/results/gateway.json. It takes about a minute, and five with the other gateways.
 *
 * Traps: (1) Client and upstream share this process, the target has its own. On two cores each process gets one; on one core all figures are
 * worse. `direct` measures only the client and the upstream. (2) CPU per request counts the target's process only. On a busy machine trust it
 * more than requests per second. (3) Everything runs on the loopback, without TLS, with small responses that are not streamed. (4) Targets are
 * interleaved, and the table shows medians of rounds. The p99 of a short round with one connection comes from few requests. (5) Every request
 * has a new turn number in its last message, so a target that caches messages still has one to read. (6) Leporello has folded the 2 MB body before
 * the measurement, and each request repeats the fold, so it sends less than the others. (7) Other gateways have defaults of their own: they route,
 * retry, log or compress, and each runs one process. CPU of a process that is not ours is read from /proc in steps of 10 ms. (8) The second table
 * divides the CPU time of the gateway by step: see steps.ts.
 */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { setGcFlags } from '../src/cli/gc-flags.ts';
import { load } from './gateway/load.ts';
import { targets } from './gateway/targets.ts';
import { startUpstream } from './gateway/upstream.ts';
import { isInstalled, peers, startPeer, useOfTree } from './peers/peers.ts';
import { writeResult } from './results.ts';
import { type StepTimes, printSteps, profileSteps } from './steps.ts';

const concurrencies = [1, 16];
/** Each target runs this long before the first round, so that its code is compiled: a gateway runs for days. */
const firstWarmMs = 3_000;
const warmMs = 300;
const roundMs = 1_000;

type Running = {
  readonly name: string;
  readonly origin: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly child: ChildProcess | undefined;
  readonly use: () => Promise<ChildUse>;
};
type Sample = {
  readonly reqPerSec: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMs: number;
  readonly rssMb: number;
};
type ChildUse = { readonly cpuMs: number; readonly rssMb: number };

const [, script, role, name, upstream] = process.argv;
if (role === '--serve') await serve(name ?? '', upstream ?? '');
else await main();

/** Runs in the child: starts the target, then answers each message with its use of CPU and memory. */
async function serve(target: string, origin: string): Promise<void> {
  setGcFlags();
  const port = await targets[target]?.(origin);
  let stop: Awaited<ReturnType<typeof profileSteps>> | undefined;
  const startProfile = async (): Promise<void> => {
    stop = await profileSteps();
    process.send?.('started');
  };
  const sendTimes = async (requests: number): Promise<void> => {
    process.send?.(await stop?.(requests));
  };
  process.on('message', (message) => {
    if (message === 'profile') {
      void startProfile();
      return;
    }
    if (typeof message === 'number') {
      void sendTimes(message);
      return;
    }
    const { user, system } = process.cpuUsage();
    process.send?.({ cpuMs: (user + system) / 1000, rssMb: process.memoryUsage.rss() / 1e6 });
  });
  process.on('disconnect', () => process.exit());
  process.send?.(port);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '3' },
      kB: { type: 'string', multiple: true, default: ['20', '200', '2000'] },
      own: { type: 'boolean', default: false },
    },
  });
  const running = await startAll(await startUpstream(), values.own);
  const samples = new Map<string, Sample[]>();
  const cells = values.kB.flatMap((kB) => concurrencies.map((connections) => ({ kB, connections })));
  try {
    for (const { origin, headers } of running)
      await load({ origin, headers, connections: 16, bytes: 200_000, ms: firstWarmMs });
    for (let round = 0; round < Number(values.rounds); round += 1) {
      for (const { kB, connections } of cells) {
        for (const target of running) {
          const key = JSON.stringify({ target: target.name, kB: Number(kB), connections });
          const sample = await measure(target, { connections, bytes: Number(kB) * 1_000 });
          samples.set(key, [...(samples.get(key) ?? []), sample]);
        }
      }
    }
  } catch (error) {
    for (const { child } of running) child?.kill();
    throw error;
  }
  const rows = [...samples].map(([key, list]) => ({ ...(JSON.parse(key) as object), ...medians(list) }));
  console.table(rows);
  const steps = { 'gateway, 200 kB, 16 connections': await stepsOf(running) };
  for (const { child } of running) child?.kill();
  printSteps(steps);
  const versions = peers.map((peer) => `${peer.name} ${peer.version}`);
  writeResult('gateway', { rounds: Number(values.rounds), roundMs, peers: versions, rows, steps });
  process.exit();
}

/** Divides the CPU time of one request of the whole gateway by step. */
async function stepsOf(running: readonly Running[]): Promise<StepTimes> {
  const { origin, child } = running.find(({ name: target }) => target === 'gateway')!;
  child!.send('profile');
  await once(child!, 'message');
  const { requests } = await load({ origin, connections: 16, bytes: 200_000, ms: roundMs });
  child!.send(requests);
  const [times] = (await once(child!, 'message')) as [StepTimes];
  return times;
}

async function noUse(): Promise<ChildUse> {
  return { cpuMs: 0, rssMb: 0 };
}

async function startAll(origin: string, isOwnOnly: boolean): Promise<readonly Running[]> {
  const running: Running[] = [{ name: 'direct', origin, child: undefined, use: noUse }];
  for (const target of Object.keys(targets)) running.push(await startTarget(target, origin));
  for (const peer of isOwnOnly ? [] : peers) {
    if (!isInstalled(peer)) {
      console.log(`${peer.name} is left out: bench/peers/install.ts has not installed it.`);
      continue;
    }
    const started = await startPeer(peer, origin);
    const pid = started.child.pid ?? 0;
    const use = async () => useOfTree(pid) ?? { cpuMs: Number.NaN, rssMb: Number.NaN };
    running.push({ ...started, name: peer.name, headers: peer.headers?.(origin), use });
  }
  return running;
}

async function startTarget(target: string, origin: string): Promise<Running> {
  const child = fork(script ?? '', ['--serve', target, origin]);
  const [port] = (await once(child, 'message')) as [number];
  const use = async (): Promise<ChildUse> => {
    child.send('use');
    const [answer] = (await once(child, 'message')) as [ChildUse];
    return answer;
  };
  return { name: target, origin: `http://127.0.0.1:${port}`, child, use };
}

async function measure(
  { origin, headers, use }: Running,
  size: { readonly connections: number; readonly bytes: number },
): Promise<Sample> {
  await load({ origin, headers, ...size, ms: warmMs });
  const before = await use();
  const { requests, seconds, latencies } = await load({ origin, headers, ...size, ms: roundMs });
  const after = await use();
  const at = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? 0;
  return {
    reqPerSec: requests / seconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    cpuMs: (after.cpuMs - before.cpuMs) / requests,
    rssMb: after.rssMb,
  };
}

function medians(list: readonly Sample[]): Sample {
  const of = (read: (sample: Sample) => number): number => {
    const sorted = list.map(read).sort((a, b) => a - b);
    return Number((sorted[Math.floor(sorted.length / 2)] ?? 0).toPrecision(4));
  };
  return {
    reqPerSec: of((sample) => sample.reqPerSec),
    p50Ms: of((sample) => sample.p50Ms),
    p99Ms: of((sample) => sample.p99Ms),
    cpuMs: of((sample) => sample.cpuMs),
    rssMb: of((sample) => sample.rssMb),
  };
}
