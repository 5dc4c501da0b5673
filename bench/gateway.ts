/**
 * Measures the time and CPU that the gateway adds to a request: chat bodies of 20 kB, 200 kB and 2 MB through each target of
 * gateway/targets.ts and each installed gateway of peers/peers.ts, with one connection and with sixteen. Run
 * `node bench/gateway.ts [--rounds N] [--kB N]... [--own]`; `--own` leaves the other gateways out. It prints a table and, without options, writes
 * bench/results/gateway.json. It takes about five minutes, and seven to eight with the other gateways.
 *
 * Traps: (1) Client and upstream share this process, the target has its own. On two cores each process gets one; on one core all figures are
 * worse. `direct` measures only the client and the upstream. (2) CPU per request counts the target's process only. On a busy machine trust it
 * more than requests per second. (3) Everything runs on the loopback, without TLS, with small responses that are not streamed. (4) Targets are
 * interleaved, and the table shows medians of rounds. The p99 of a short round with one connection comes from few requests. (5) Every request
 * has a new turn number in its last message, so a target that caches messages still has one to read. (6) Leporello has folded the 2 MB body before
 * the measurement, and each request repeats the fold, so it sends less than the others. (7) All connections share one conversation, and no request
 * continues another: nearly nothing is new. In the rows "growing" each connection has a conversation of its own, and each request adds a call with a result of
 * 1.5 kB to the one before, which is read, counted and made smaller; they have a process of their own. After eight requests it goes back to its beginning, so that its size stays about the same;
 * a real one rarely branches, which is cheaper. Its first request, which costs much more, is in the warm-up. (8) Other gateways have defaults of their own: they route,
 * retry, log or compress, and each runs one process. CPU of a process that is not ours is read from /proc in steps of 10 ms. (9) The second table
 * divides the CPU time of the gateway by step: see steps.ts.
 */
import { parseArgs } from 'node:util';
import { load } from './gateway/load.ts';
import { type ProcessUse, startTarget, type TargetProcess } from './gateway/target-process.ts';
import { targets } from './gateway/targets.ts';
import { startUpstream } from './gateway/upstream.ts';
import { isInstalled, peers, startPeer, useOfTree } from './peers/peers.ts';
import { writeResult } from './results.ts';
import { type StepTimes, printSteps } from './steps.ts';
import { median } from './tokens/arithmetic.ts';

const concurrencies = [1, 16];
/** Each target runs this long before the first round: a gateway runs for days, and its code is compiled over some 18,000 requests. */
const firstWarmMs = 8_000;
const warmMs = 200;
const roundMs = 700;

type Running = {
  readonly name: string;
  /** True for conversations that grow. */
  readonly grows?: boolean;
  readonly origin: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly use: () => Promise<ProcessUse>;
};
type Sample = {
  readonly reqPerSec: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMs: number;
  readonly rssMb: number;
};
await main();

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '3' },
      kB: { type: 'string', multiple: true, default: ['20', '200', '2000'] },
      own: { type: 'boolean', default: false },
    },
  });
  const upstream = await startUpstream();
  const gateway = await startTarget('gateway', upstream);
  const running = await startAll(upstream, gateway, values.own);
  const samples = new Map<string, Sample[]>();
  const cells = values.kB.flatMap((kB) => concurrencies.map((connections) => ({ kB, connections })));
  for (const { origin, headers, grows } of running)
    await load({ origin, headers, grows, connections: 16, bytes: 200_000, ms: firstWarmMs });
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const { kB, connections } of cells) {
      for (const target of running) {
        const key = JSON.stringify({ target: target.name, kB: Number(kB), connections });
        const sample = await measure(target, { connections, bytes: Number(kB) * 1_000 });
        samples.set(key, [...(samples.get(key) ?? []), sample]);
      }
    }
  }
  const rows = [...samples].map(([key, list]) => ({ ...(JSON.parse(key) as object), ...medians(list) }));
  console.table(rows);
  const steps = {
    'gateway, 200 kB, 16 connections': await stepsOf(gateway),
    'the same, growing': await stepsOf(gateway, true),
  };
  printSteps(steps);
  const versions = peers.map((peer) => `${peer.name} ${peer.version}`);
  writeResult('gateway', { rounds: Number(values.rounds), roundMs, peers: versions, rows, steps });
  process.exit();
}

/** Divides the CPU time of one request of the whole gateway by step. */
async function stepsOf(gateway: TargetProcess, grows = false): Promise<StepTimes> {
  const size = { origin: gateway.origin, connections: 16, bytes: 200_000, grows };
  await load({ ...size, ms: warmMs });
  await gateway.startProfile();
  const { requests } = await load({ ...size, ms: roundMs });
  return gateway.takeSteps(requests);
}

async function noUse(): Promise<ProcessUse> {
  return { cpuMs: 0, rssMb: 0 };
}

async function startAll(
  upstream: string,
  gateway: TargetProcess,
  isOwnOnly: boolean,
): Promise<readonly Running[]> {
  const running: Running[] = [{ name: 'direct', origin: upstream, use: noUse }];
  for (const name of Object.keys(targets)) {
    const { origin, use } = name === 'gateway' ? gateway : await startTarget(name, upstream);
    running.push({ name, origin, use });
    if (name !== 'raw pipe' && name !== 'gateway') continue;
    // Conversations that grow fill the caches of a process, and would slow the rows beside them.
    const own = await startTarget(name, upstream);
    running.push({ name: `${name}, growing`, origin: own.origin, use: own.use, grows: true });
  }
  for (const peer of isOwnOnly ? [] : peers) {
    if (!isInstalled(peer)) {
      console.log(`${peer.name} is left out: bench/peers/install.ts has not installed it.`);
      continue;
    }
    const { origin, child } = await startPeer(peer, upstream);
    const pid = child.pid ?? 0;
    const use = async () => useOfTree(pid) ?? { cpuMs: Number.NaN, rssMb: Number.NaN };
    running.push({ name: peer.name, origin, headers: peer.headers?.(upstream), use });
  }
  return running;
}

async function measure(
  { origin, headers, grows, use }: Running,
  size: { readonly connections: number; readonly bytes: number },
): Promise<Sample> {
  // A slow gateway needs seconds to answer on all connections; only conversations of their own need a first request on each.
  const connections = grows ? size.connections : 1;
  await load({ origin, headers, grows, ...size, connections, ms: warmMs });
  const before = await use();
  const { requests, seconds, latencies } = await load({ origin, headers, grows, ...size, ms: roundMs });
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
  const of = (read: (sample: Sample) => number): number => Number(median(list.map(read)).toPrecision(4));
  return {
    reqPerSec: of((sample) => sample.reqPerSec),
    p50Ms: of((sample) => sample.p50Ms),
    p99Ms: of((sample) => sample.p99Ms),
    cpuMs: of((sample) => sample.cpuMs),
    rssMb: of((sample) => sample.rssMb),
  };
}
