/**
 * Measures request bodies that are built to be expensive, in the library and in the gateway: the CPU time, and the longest time for which the
 * event loop serves nobody else. Run `node bench/hostile.ts [PREFIX] [--library | --gateway]`; with PREFIX it runs only the cases whose names
 * begin with it, with an option only one of the two. A full run writes bench/results/hostile.json and takes about twenty minutes.
 *
 * Traps: (1) Every figure is CPU time, so other work on the machine does not count, except that it slows down caches. A stall is the CPU time that
 * a thread uses between two turns of its event loop. On an idle machine, every other client waits that long. (2) `CPU ms` and `stall ms` are of
 * `engine.prepare` in the thread that calls it, as in a program that uses the library. Each size runs in its own process, which first warms up with
 * an ordinary conversation. The table shows the minimum of up to three runs, each with a new engine, because garbage collection may slow down any
 * of them. (3) The figures of the gateway are of `leporello serve` with SQLite and default settings, a new process for each case. It is sent one
 * body just too small for a fold thread, then the largest one of up to 8.8 MB, then a larger one if the case has one, each once and each of
 * another tenant. Its stall is that of the main thread, which serves all clients, measured with a timer of 2 ms; its CPU time per MB is that of all
 * threads. (4) `exponent` is the growth of `CPU ms` between the two largest sizes that were measured; 1 is linear. It is left out if the
 * smaller of them takes less than 20 ms. (5) A run is ended after 20 s of CPU time (wall-clock time on systems without /proc). A dash means not
 * measured. (6) The library's store is in memory; bench/stores.ts measures the others.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createDefaultEngine } from '../src/library/default-engine.ts';
import { inMemoryStore } from '../src/store/in-memory.ts';
import { createEncryptedStore } from '../src/store/encrypted-store.ts';
import { type HostileCase, hostileCases } from './hostile/bodies.ts';
import { type InGateway, measureInGateway } from './hostile/gateway.ts';
import { codecs } from './hostile/spell.ts';
import { writeResult } from './results.ts';
import { chatBody, toolLoop } from './scaling/bodies.ts';
import { round } from './tokens/arithmetic.ts';

/** The result of one size; times are milliseconds of CPU. */
type Measured = {
  readonly MB: number;
  readonly cpuMs: number;
  readonly stallMs: number;
  readonly outcome: string;
};

/** A child is ended after this CPU time. */
const maxRunMs = 20_000;
const maxRuns = 3;
/** No further run starts after this time. */
const repeatForMs = 2_000;
/** A longer stall is a failure for bodies of up to `maxStallMB`. */
const maxStallMs = 50;
const maxStallMB = 8;
/** An ordinary body of any size must not cost more than this per MB in the gateway, nor stall it for longer than this. */
const ordinary = { name: 'ordinary', maxMsPerMB: 15, maxStallMs: 20 };

const [, script, ...args] = process.argv;
if (args[0] === '--measure') await serveMeasurement(Number(args[1]), Number(args[2]));
else await main(args.find((one) => !one.startsWith('--')) ?? '');

/** Runs in the child: measures one size of one case and sends the result to the parent. */
async function serveMeasurement(index: number, size: number): Promise<void> {
  const one = hostileCases[index]!;
  const body = new TextEncoder().encode(JSON.stringify(one.body(size)));
  await prepareOnce(codecs.chat, chatBody(toolLoop(150, 1_500)));
  await prepareOnce(
    codecs[one.format],
    new TextEncoder().encode(JSON.stringify(one.body(one.sizes[0]! / 10))),
  );
  const results: Measured[] = [];
  const latest = performance.now() + repeatForMs;
  do results.push(await prepareOnce(codecs[one.format], body));
  while (results.length < maxRuns && performance.now() < latest);
  const min = (key: 'cpuMs' | 'stallMs') => Math.min(...results.map((result) => result[key]));
  if (process.connected) process.send?.({ ...results[0], cpuMs: min('cpuMs'), stallMs: min('stallMs') });
  if (process.connected) process.disconnect();
}

async function prepareOnce(codec: (typeof codecs)['chat'], body: Uint8Array): Promise<Measured> {
  const encryptedStore = createEncryptedStore({ store: inMemoryStore(), secret: new Uint8Array(32).fill(1) });
  const engine = createDefaultEngine({}, encryptedStore);
  globalThis.gc?.();
  const probe = openProbe();
  const { outcome } = await engine.prepare({ codec, body, tenant: 'bench' });
  const label = outcome.status === 'failed' ? `failed: ${outcome.reason}` : outcome.status;
  return { MB: round(body.length / 1e6, 2), ...probe.end(), outcome: label };
}

/** Measures this thread: its total CPU time, and the most CPU time between two turns of its event loop. */
function openProbe() {
  const start = process.threadCpuUsage();
  let last = 0;
  let longest = 0;
  let isOpen = true;
  const used = () => {
    const { user, system } = process.threadCpuUsage(start);
    return (user + system) / 1_000;
  };
  const turn = () => {
    const now = used();
    longest = Math.max(longest, now - last);
    last = now;
    if (isOpen) setImmediate(turn);
  };
  setImmediate(turn);
  return {
    end() {
      isOpen = false;
      const cpuMs = used();
      return { cpuMs: round(cpuMs, 1), stallMs: round(Math.max(longest, cpuMs - last), 1) };
    },
  };
}

async function main(only: string): Promise<void> {
  const rows: object[] = [];
  const failures: string[] = [];
  for (const [index, one] of hostileCases.entries()) {
    if (!one.name.startsWith(only)) continue;
    const measured = args.includes('--gateway') ? [] : await measureSizes(index, one);
    const inGateway = args.includes('--library') ? [] : await measureInGateway(one);
    const row = { ...rowOf(one, measured), ...gatewayColumns(inGateway) };
    rows.push(row);
    console.log(JSON.stringify(row));
    failures.push(...failuresOf(one, measured), ...gatewayFailures(one, inGateway));
  }
  console.table(rows);
  console.log(failures.length === 0 ? 'All bodies are within the limits.' : failures.join('\n'));
  writeResult('hostile', { rows });
  // The provider behind the gateways still listens.
  process.exit();
}

/** Measures a case in the library, up to the first size that takes too long. */
async function measureSizes(index: number, { sizes }: HostileCase): Promise<(Measured | undefined)[]> {
  const measured: (Measured | undefined)[] = [];
  for (const size of sizes) {
    const result = await measureInChild(index, size);
    measured.push(result);
    if (!result) break;
  }
  return measured;
}

/** Returns undefined if the run took too long. */
async function measureInChild(index: number, size: number): Promise<Measured | undefined> {
  const child = fork(script!, ['--measure', `${index}`, `${size}`], {
    execArgv: [...process.execArgv, '--expose-gc'],
  });
  const startedAt = performance.now();
  const watch = setInterval(() => {
    if ((cpuMsOf(child.pid) ?? performance.now() - startedAt) > maxRunMs) child.kill('SIGKILL');
  }, 250);
  let result: Measured | undefined;
  child.on('message', (message) => (result = message as Measured));
  await once(child, 'exit');
  clearInterval(watch);
  return result;
}

/** Returns the CPU time of a process; undefined on systems without /proc. */
function cpuMsOf(pid: number | undefined): number | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    // The fields are user and system time in units of 10 ms.
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return undefined;
  }
}

function rowOf({ name, format, sizes }: HostileCase, measured: readonly (Measured | undefined)[]) {
  const done = measured.filter((one) => one !== undefined);
  const list = (of: (one: Measured) => number) =>
    sizes.map((_, at) => (measured[at] ? of(measured[at]) : '-')).join(' ');
  return {
    body: name,
    format,
    sizes: sizes.join(' '),
    MB: list(({ MB }) => MB),
    'CPU ms': list(({ cpuMs }) => cpuMs),
    exponent: exponentOf(done),
    'stall ms': list(({ stallMs }) => stallMs),
    outcome: [...new Set(done.map(({ outcome }) => outcome))].join(', '),
  };
}

/** Returns undefined if fewer than two sizes were measured or the times are too short. */
function exponentOf(done: readonly Measured[]): number | undefined {
  const [smaller, larger] = done.slice(-2);
  if (!smaller || !larger || smaller.cpuMs < 20) return undefined;
  return round(Math.log(larger.cpuMs / smaller.cpuMs) / Math.log(larger.MB / smaller.MB), 2);
}

function failuresOf(
  { name, format }: HostileCase,
  measured: readonly (Measured | undefined)[],
): readonly string[] {
  const label = `${name} (${format})`;
  const done = measured.filter((one) => one !== undefined);
  const exponent = exponentOf(done) ?? 1;
  const stalls = done.filter(({ MB, stallMs }) => MB <= maxStallMB * 1.1 && stallMs > maxStallMs);
  return [
    ...(done.length < measured.length ? [`${label}: was ended after ${maxRunMs / 1_000} s of CPU time`] : []),
    ...(exponent > 1.25 ? [`${label}: CPU time grows with size to the power of ${exponent}`] : []),
    ...stalls
      .slice(0, 1)
      .map(({ MB, stallMs }) => `${label}: ${MB} MB block the event loop for ${stallMs} ms`),
  ];
}

function gatewayColumns(inGateway: readonly InGateway[]) {
  const list = (of: (one: InGateway) => number) => inGateway.map(of).join(' ');
  return {
    'gateway MB': list(({ MB }) => MB),
    'gateway stall ms': list(({ stallMs }) => stallMs),
    'gateway CPU ms per MB': list(({ cpuMs, MB }) => round(cpuMs / MB, 1)),
  };
}

function gatewayFailures({ name, format }: HostileCase, inGateway: readonly InGateway[]): readonly string[] {
  const isOrdinary = name.startsWith(ordinary.name);
  return inGateway.flatMap(({ MB, stallMs, cpuMs }) => {
    const label = `${name} (${format}): ${MB} MB`;
    const isLimited = isOrdinary || MB <= maxStallMB * 1.1;
    const max = isOrdinary ? ordinary.maxStallMs : maxStallMs;
    return [
      ...(isLimited && stallMs > max ? [`${label} block the gateway for ${stallMs} ms`] : []),
      ...(isOrdinary && cpuMs / MB > ordinary.maxMsPerMB
        ? [`${label} take ${round(cpuMs / MB, 1)} ms of CPU per MB in the gateway`]
        : []),
    ];
  });
}
