/**
 * Measures request bodies that are built to be expensive, in the library and in the gateway: the CPU time, and the longest time for which the
 * event loop serves nobody else. Run `node bench/hostile.ts [PREFIX] [--library | --gateway]`; with PREFIX it runs only the cases whose names
 * begin with it, with an option only one of the two. A full run writes bench/results/hostile.json and takes about eight minutes. It ends with
 * status 1 if a body of up to 8.8 MB stalls the event loop for more than 50 ms, or if CPU time grows faster than n log n.
 *
 * Traps: (1) Every figure is CPU time, so other work on the machine does not count, except that it slows down caches. A stall is the CPU time that
 * a thread uses between two turns of its event loop. On an idle machine, every other client waits that long. (2) `CPU ms` and `stall ms` are of
 * `engine.prepare` in the thread that calls it, as in a program that uses the library. Each case runs in its own process, which first warms up with
 * an ordinary conversation, and then measures the sizes in ascending order, each with a new engine. A size whose stall is over the limit is run up
 * to three times, and the table shows the minimum, because garbage collection may slow down any run. (3) Measured are the largest body of up to
 * 8.8 MB of each case, one of at most a quarter of it, and, in one format, one that is larger, if the case has it. (4) The figures of the gateway
 * are of one `leporello serve` with SQLite and default settings, for cases in one format. It is sent a body just too small for a fold thread, then
 * the largest one of up to 8.8 MB, then a larger one, each once and as another conversation. Its stall is that of the main thread, which serves all
 * clients, measured with a timer of 2 ms; its CPU time per MB is that of all threads. No limit is set to that; the goal for ordinary bodies is
 * printed beside it. (5) `exponent` is the growth of `CPU ms` between two sizes with the same outcome; 1 is linear. It is left out if the
 * smaller one takes less than 20 ms, or if only one of them is folded. A single step is no growth: from some size on, a fold is planned, or the
 * caches of an engine are full. So if the exponent is over the limit, the largest size is measured again beside one twice as large, and
 * `exponent` is that of these two: a pass that takes quadratic time shows there, too. (6) A case is ended after 40 s of CPU time (wall-clock time on systems
 * without /proc). A dash means not measured. (7) The library's store is in memory; bench/stores.ts measures the others.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createDefaultEngine } from '../src/library/default-engine.ts';
import { inMemoryStore } from '../src/store/in-memory.ts';
import { createEncryptedStore } from '../src/store/encrypted-store.ts';
import { type HostileCase, hostileCases } from './hostile/bodies.ts';
import { type InGateway, type ProbedGateway, openGateway, measureInGateway } from './hostile/gateway.ts';
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

/** A child measures these sizes of one case. `index`: its place in the list of cases. */
type Plan = { readonly index: number; readonly sizes: readonly number[] };

/** A child is ended after this CPU time. */
const maxRunMs = 40_000;
const maxRuns = 3;
/** A longer stall is a failure for bodies of up to `maxLimitedMB`. */
const maxStallMs = 50;
const maxLimitedMB = 8.8;
/** n log n from 1 to 8 MB is 1.07; the rest is noise. */
const maxExponent = 1.25;
/** The gateway, and sizes without limits, are measured in this format only. */
const oneFormat = 'messages';
/** The goal for the CPU time of an ordinary body in the gateway. */
const ordinaryMsPerMB = 15;

const [, script, ...args] = process.argv;
if (args[0] === '--measure') await serveMeasurement(JSON.parse(args[1]!) as Plan);
else await main(args.find((one) => !one.startsWith('--')) ?? '');

/** Runs in the child: measures the sizes of a case, and sends the result of each to the parent. */
async function serveMeasurement({ index, sizes }: Plan): Promise<void> {
  const one = hostileCases[index]!;
  const codec = codecs[one.format];
  await prepareOnce(codecs.chat, chatBody(toolLoop(150, 1_500)));
  await prepareOnce(codec, bodyOf(one, one.sizes[0]! / 10));
  for (const size of sizes) {
    const body = bodyOf(one, size);
    let result = await prepareOnce(codec, body);
    for (let run = 1; run < maxRuns && result.MB <= maxLimitedMB && result.stallMs > maxStallMs; run++) {
      const again = await prepareOnce(codec, body);
      const stallMs = Math.min(result.stallMs, again.stallMs);
      result = { ...result, stallMs, cpuMs: Math.min(result.cpuMs, again.cpuMs) };
    }
    process.send?.(result);
  }
  process.disconnect();
}

function bodyOf({ body }: HostileCase, size: number): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(body(size)));
}

/** Returns the sizes of a case that are measured, the smallest first. */
function sizesOf(one: HostileCase): readonly number[] {
  const MB = one.sizes.map((size) => bodyOf(one, size).length / 1e6);
  const limited = MB.findLastIndex((size) => size <= maxLimitedMB);
  const smaller = MB.findLastIndex((size) => size <= MB[limited]! / 4);
  const hasLarger = limited < MB.length - 1 && one.format === oneFormat;
  const chosen = [Math.max(0, smaller), limited, ...(hasLarger ? [MB.length - 1] : [])];
  return [...new Set(chosen)].map((at) => one.sizes[at]!);
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
  const gateway = args.includes('--library') ? undefined : await openGateway();
  for (const [index, one] of hostileCases.entries()) {
    if (!one.name.startsWith(only)) continue;
    const sizes = sizesOf(one);
    const measured = args.includes('--gateway') ? [] : await measureInChild({ index, sizes });
    const exponent = await growthOf({ index, sizes }, measured);
    const inGateway = await measureIn(gateway, one);
    const row = { ...rowOf(one, sizes, measured), exponent, ...gatewayColumns(inGateway) };
    rows.push(row);
    console.log(JSON.stringify(row));
    failures.push(...failuresOf(one, measured, exponent), ...gatewayFailures(one, inGateway));
  }
  console.table(rows);
  console.log(`CPU of ordinary bodies in the gateway: the goal is ${ordinaryMsPerMB} ms per MB.`);
  console.log(failures.length === 0 ? 'All bodies are within the limits.' : failures.join('\n'));
  writeResult('hostile', { rows });
  await gateway?.stop();
  // The provider behind the gateway still listens.
  process.exit(failures.length === 0 ? 0 : 1);
}

async function measureIn(
  gateway: ProbedGateway | undefined,
  one: HostileCase,
): Promise<readonly InGateway[]> {
  return gateway && one.format === oneFormat ? measureInGateway(gateway, one) : [];
}

/** Measures a case in the library; undefined for sizes that took too long. */
async function measureInChild(plan: Plan): Promise<readonly (Measured | undefined)[]> {
  const child = fork(script!, ['--measure', JSON.stringify(plan)], {
    execArgv: [...process.execArgv, '--expose-gc'],
  });
  const startedAt = performance.now();
  const watch = setInterval(() => {
    if ((cpuMsOf(child.pid) ?? performance.now() - startedAt) > maxRunMs) child.kill('SIGKILL');
  }, 250);
  const results: Measured[] = [];
  child.on('message', (message) => void results.push(message as Measured));
  await once(child, 'exit');
  clearInterval(watch);
  return plan.sizes.map((_, at) => results[at]);
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

function rowOf(one: HostileCase, sizes: readonly number[], measured: readonly (Measured | undefined)[]) {
  const done = measured.filter((size) => size !== undefined);
  const list = (of: (size: Measured) => number) => measured.map((size) => (size ? of(size) : '-')).join(' ');
  return {
    body: one.name,
    format: one.format,
    sizes: sizes.join(' '),
    MB: list(({ MB }) => MB),
    'CPU ms': list(({ cpuMs }) => cpuMs),
    exponent: undefined as number | undefined,
    'stall ms': list(({ stallMs }) => stallMs),
    outcome: [...new Set(done.map(({ outcome }) => outcome))].join(', '),
  };
}

/** Returns the exponent of a case. If it is over the limit, it is that between the largest size and one twice as large. */
async function growthOf(
  { index, sizes }: Plan,
  measured: readonly (Measured | undefined)[],
): Promise<number | undefined> {
  const exponent = exponentOf(measured);
  if (exponent === undefined || exponent <= maxExponent) return exponent;
  const largest = sizes.at(-1)!;
  return exponentOf(await measureInChild({ index, sizes: [largest, 2 * largest] })) ?? exponent;
}

/** Returns the fastest growth between two neighboring sizes with the same outcome. Undefined without two, or if the times are too short. */
function exponentOf(measured: readonly (Measured | undefined)[]): number | undefined {
  const done = measured.filter((size) => size !== undefined);
  const exponents = done.slice(1).flatMap((larger, at) => {
    const smaller = done[at]!;
    if (smaller.cpuMs < 20 || smaller.outcome !== larger.outcome) return [];
    return [round(Math.log(larger.cpuMs / smaller.cpuMs) / Math.log(larger.MB / smaller.MB), 2)];
  });
  return exponents.length === 0 ? undefined : Math.max(...exponents);
}

function failuresOf(
  { name, format }: HostileCase,
  measured: readonly (Measured | undefined)[],
  exponent = 1,
): readonly string[] {
  const label = `${name} (${format})`;
  const done = measured.filter((one) => one !== undefined);
  const stalls = done.filter(({ MB, stallMs }) => MB <= maxLimitedMB && stallMs > maxStallMs);
  return [
    ...(done.length < measured.length ? [`${label}: was ended after ${maxRunMs / 1_000} s of CPU time`] : []),
    ...(exponent > maxExponent ? [`${label}: CPU time grows with size to the power of ${exponent}`] : []),
    ...stalls.map(({ MB, stallMs }) => `${label}: ${MB} MB block the event loop for ${stallMs} ms`),
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
  return inGateway
    .filter(({ MB, stallMs }) => MB <= maxLimitedMB && stallMs > maxStallMs)
    .map(({ MB, stallMs }) => `${name} (${format}): ${MB} MB block the gateway for ${stallMs} ms`);
}
