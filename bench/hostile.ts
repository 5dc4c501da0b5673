/**
 * Bodies made to be expensive, and what one of them costs everybody: CPU time of `engine.prepare`, and how long the event loop stands still
 * meanwhile. Run `node bench/hostile.ts [NAME]` (only the cases whose name begins so); a full run prints a table and writes
 * bench/results/hostile.json. Some ten minutes.
 *
 * Traps. (1) Every figure is CPU time of the thread, so other work on the machine is not in it. The stall is the most CPU that the thread used
 * between two turns of its event loop (setImmediate), which is what every other client waits for on an idle machine. (2) Each size has a process of its own, which
 * warms up with an ordinary conversation first; the best of up to three runs with a new engine is shown, because a collection of garbage hits any
 * one. (3) `exponent` is the growth of CPU time from the next to last to the last size that ended: 1 is linear. Small figures make it noisy: sizes that take less than 20 ms say nothing. (4) A run is ended
 * after 20 s of CPU (of the clock, where there is no /proc); a dash is what was not measured. (5) The store is in memory: what a real one costs is in bench/stores.ts.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createDefaultEngine } from '../src/library/default-engine.ts';
import { inMemoryStore } from '../src/store/in-memory.ts';
import { createEncryptedStore } from '../src/store/encrypted-store.ts';
import { type HostileCase, hostileCases } from './hostile/bodies.ts';
import { codecs } from './hostile/spell.ts';
import { chatBody, toolLoop } from './scaling/bodies.ts';
import { round } from './tokens/arithmetic.ts';

/** Milliseconds of CPU, and of the clock for all runs of one size. */
type Measured = {
  readonly MB: number;
  readonly cpuMs: number;
  readonly stallMs: number;
  readonly outcome: string;
};

/** Milliseconds of CPU after which a child is ended. */
const longestRunMs = 20_000;
const runs = 3;
/** Runs are repeated only while all of them together took less, in milliseconds. */
const enoughMs = 2_000;
const mostStallMs = 50;
const upToMB = 8;

const [, script, ...args] = process.argv;
if (args[0] === '--measure') await serveMeasurement(Number(args[1]), Number(args[2]));
else await main(args[0] ?? '');

/** In the child: measures one size of one case, and tells the parent. */
async function serveMeasurement(index: number, size: number): Promise<void> {
  const one = hostileCases[index]!;
  const body = new TextEncoder().encode(JSON.stringify(one.body(size)));
  await prepareOnce(codecs.chat, chatBody(toolLoop(150, 1_500)));
  await prepareOnce(
    codecs[one.format],
    new TextEncoder().encode(JSON.stringify(one.body(one.sizes[0]! / 10))),
  );
  const results: Measured[] = [];
  const latest = performance.now() + enoughMs;
  do results.push(await prepareOnce(codecs[one.format], body));
  while (results.length < runs && performance.now() < latest);
  const least = (key: 'cpuMs' | 'stallMs') => Math.min(...results.map((result) => result[key]));
  if (process.connected) process.send?.({ ...results[0], cpuMs: least('cpuMs'), stallMs: least('stallMs') });
  if (process.connected) process.disconnect();
}

async function prepareOnce(codec: (typeof codecs)['chat'], body: Uint8Array): Promise<Measured> {
  const encryptedStore = createEncryptedStore({ store: inMemoryStore(), secret: new Uint8Array(32).fill(1) });
  const engine = createDefaultEngine({}, encryptedStore);
  globalThis.gc?.();
  const probe = openProbe();
  const { outcome } = await engine.prepare({ codec, body, tenant: 'bench' });
  const told = outcome.status === 'failed' ? `failed: ${outcome.reason}` : outcome.status;
  return { MB: round(body.length / 1e6, 2), ...probe.end(), outcome: told };
}

/** Watches the event loop of this thread: CPU time in all, and the most between two of its turns. */
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
    const measured: (Measured | undefined)[] = [];
    for (const size of one.sizes) {
      const result = await measureInChild(index, size);
      measured.push(result);
      if (!result) break;
    }
    const row = rowOf(one, measured);
    rows.push(row);
    console.log(JSON.stringify(row));
    failures.push(...failuresOf(one, measured));
  }
  console.table(rows);
  console.log(failures.length === 0 ? 'All bodies are within their bounds.' : failures.join('\n'));
  if (only !== '') return;
  const results = new URL('results/', import.meta.url);
  mkdirSync(results, { recursive: true });
  writeFileSync(
    new URL('hostile.json', results),
    `${JSON.stringify({ node: process.version, rows }, null, 2)}\n`,
  );
}

/** Undefined when it took too long. */
async function measureInChild(index: number, size: number): Promise<Measured | undefined> {
  const child = fork(script!, ['--measure', `${index}`, `${size}`], {
    execArgv: [...process.execArgv, '--expose-gc'],
  });
  const begun = performance.now();
  const watch = setInterval(() => {
    if ((cpuMsOf(child.pid) ?? performance.now() - begun) > longestRunMs) child.kill('SIGKILL');
  }, 250);
  let told: Measured | undefined;
  child.on('message', (message) => (told = message as Measured));
  await once(child, 'exit');
  clearInterval(watch);
  return told;
}

/** Undefined where the system does not say. */
function cpuMsOf(pid: number | undefined): number | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    // User and system time, in hundredths of a second.
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

/** Undefined where too little was measured. */
function exponentOf(done: readonly Measured[]): number | undefined {
  const [one, other] = done.slice(-2);
  if (!one || !other || one.cpuMs < 20) return undefined;
  return round(Math.log(other.cpuMs / one.cpuMs) / Math.log(other.MB / one.MB), 2);
}

function failuresOf(
  { name, format }: HostileCase,
  measured: readonly (Measured | undefined)[],
): readonly string[] {
  const told = `${name} (${format})`;
  const done = measured.filter((one) => one !== undefined);
  const exponent = exponentOf(done) ?? 1;
  const stalls = done.filter(({ MB, stallMs }) => MB <= upToMB * 1.1 && stallMs > mostStallMs);
  return [
    ...(done.length < measured.length
      ? [`${told}: did not end within ${longestRunMs / 1_000} s of CPU`]
      : []),
    ...(exponent > 1.25 ? [`${told}: grows with the power of ${exponent}`] : []),
    ...stalls.slice(0, 1).map(({ MB, stallMs }) => `${told}: ${MB} MB stop the event loop for ${stallMs} ms`),
  ];
}
