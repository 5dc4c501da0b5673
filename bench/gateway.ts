/**
 * Measures the time and CPU that the gateway adds to a request: a chat body of 200 kB through each target of gateway/targets.ts, with one
 * connection and with sixteen. Run `node bench/gateway.ts [ROUNDS]`; it prints a table and writes bench/results/gateway.json.
 *
 * Traps: (1) Client and upstream share this process, the target has its own. On two cores each process gets one; on one core all figures are
 * worse. `direct` measures only the client and the upstream. (2) CPU per request counts the target's process only. On a busy machine trust it
 * more than requests per second. (3) Everything runs on the loopback, without TLS, with small responses that are not streamed. (4) Targets are
 * interleaved, and the table shows medians of rounds. The p99 of a short round with one connection comes from few requests. (5) Every request
 * has a new turn number in its last message, so a target that caches messages still has one to read.
 */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setGcFlag } from '../src/cli/gc-flags.ts';
import { load } from './gateway/load.ts';
import { targets } from './gateway/targets.ts';
import { writeResult } from './results.ts';

const concurrencies = [1, 16];
const warmMs = 300;
const roundMs = 1_000;

type Running = { readonly name: string; readonly origin: string; readonly child: ChildProcess | undefined };
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
else await main(Number(role ?? 3));

/** Runs in the child: starts the target, then answers each message with its use of CPU and memory. */
async function serve(target: string, origin: string): Promise<void> {
  setGcFlag();
  const port = await targets[target]?.(origin);
  process.on('message', () => {
    const { user, system } = process.cpuUsage();
    process.send?.({ cpuMs: (user + system) / 1000, rssMb: process.memoryUsage.rss() / 1e6 });
  });
  process.on('disconnect', () => process.exit());
  process.send?.(port);
}

async function main(rounds: number): Promise<void> {
  const origin = await startUpstream();
  const running: Running[] = [{ name: 'direct', origin, child: undefined }];
  for (const target of Object.keys(targets)) running.push(await startTarget(target, origin));
  const samples = new Map<string, Sample[]>();
  for (let round = 0; round < rounds; round += 1) {
    for (const connections of concurrencies) {
      for (const target of running) {
        const key = `${target.name} c=${connections}`;
        samples.set(key, [...(samples.get(key) ?? []), await measure(target, connections)]);
      }
    }
  }
  const rows = [...samples].map(([key, list]) => ({ target: key, ...medians(list) }));
  console.table(rows.map((row) => ({ ...row, cpuMs: row.cpuMs === 0 ? undefined : row.cpuMs })));
  writeResult('gateway', { rounds, roundMs, rows });
  process.exit();
}

/** Starts an upstream that reads the body and answers with a small completion, as fast as node:http can. */
async function startUpstream(): Promise<string> {
  const message = { role: 'assistant', content: 'The build is red because of the lockfile.' };
  const usage = { prompt_tokens: 60_000, completion_tokens: 12, total_tokens: 60_012 };
  const choices = [{ index: 0, message, finish_reason: 'stop' }];
  const answer = JSON.stringify({
    id: 'x',
    object: 'chat.completion',
    created: 0,
    model: 'm',
    choices,
    usage,
  });
  const server = createServer((incoming, outgoing) => {
    incoming.resume().once('end', () => {
      outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length });
      outgoing.end(answer);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function startTarget(target: string, origin: string): Promise<Running> {
  const child = fork(script ?? '', ['--serve', target, origin]);
  const [port] = (await once(child, 'message')) as [number];
  return { name: target, origin: `http://127.0.0.1:${port}`, child };
}

async function measure({ origin, child }: Running, connections: number): Promise<Sample> {
  await load(origin, connections, warmMs);
  const before = await useOf(child);
  const { requests, seconds, latencies } = await load(origin, connections, roundMs);
  const after = await useOf(child);
  const at = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? 0;
  return {
    reqPerSec: requests / seconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    cpuMs: (after.cpuMs - before.cpuMs) / requests,
    rssMb: after.rssMb,
  };
}

async function useOf(child: ChildProcess | undefined): Promise<ChildUse> {
  if (child === undefined) return { cpuMs: 0, rssMb: 0 };
  child.send('use');
  const [use] = (await once(child, 'message')) as [ChildUse];
  return use;
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
