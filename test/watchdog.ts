/**
 * Ends the process of a test file in which no test began or ended for too long, and says where its thread stands. The time limits of vitest end a test that
 * waits. They do not end a test that never gives its thread back, nor a file that waits while it is loaded: such a run would wait forever.
 */
import { writeSync } from 'node:fs';
import { type Debugger, Session } from 'node:inspector';
import { isMainThread, Worker, workerData } from 'node:worker_threads';

/** More than the longest time limit of a test, which is ten minutes. */
const defaultLimitMs = 660_000;
/** How long the thread of the tests may take to say where it stands. */
const stackMs = 5_000;
const maxNameBytes = 2_000;

type Watched = { readonly watchdog: SharedArrayBuffer; readonly limitMs: number };

/** Starts to watch this process. Call the result whenever a test begins or ends, with its name. */
export function startWatchdog(): (name: string) => void {
  const watchdog = new SharedArrayBuffer(4 + maxNameBytes);
  const { steps, name } = viewsOf(watchdog);
  const limitMs = Number(process.env['TEST_STALL_MS'] ?? defaultLimitMs);
  new Worker(new URL(import.meta.url), {
    workerData: { watchdog, limitMs } satisfies Watched,
    execArgv: [],
  }).unref();
  return (current) => {
    name.fill(0);
    name.set(new TextEncoder().encode(current).subarray(0, maxNameBytes));
    Atomics.add(steps, 0, 1);
  };
}

function viewsOf(watchdog: SharedArrayBuffer) {
  return { steps: new Int32Array(watchdog, 0, 1), name: new Uint8Array(watchdog, 4) };
}

function watch({ watchdog, limitMs }: Watched): void {
  const { steps, name } = viewsOf(watchdog);
  let last = -1;
  let since = Date.now();
  const timer = setInterval(
    () => {
      const now = Atomics.load(steps, 0);
      if (now !== last) [last, since] = [now, Date.now()];
      if (Date.now() - since < limitMs) return;
      clearInterval(timer);
      const current = new TextDecoder().decode(name.slice()).replaceAll('\0', '');
      void endProcess(`No test began or ended for ${limitMs / 1_000} s, last: ${current}`);
    },
    Math.min(5_000, limitMs / 4),
  );
}

async function endProcess(message: string): Promise<void> {
  const stack = await Promise.race([
    stackOfMainThread(),
    new Promise<string>((resolve) => {
      setTimeout(resolve, stackMs, '    in native code, or in a wait for another thread');
    }),
  ]);
  writeSync(2, `${message}\n${stack}\n`);
  process.kill(process.pid, 'SIGKILL');
}

function stackOfMainThread(): Promise<string> {
  return new Promise((resolve) => {
    const session = new Session();
    session.connectToMainThread();
    session.on('Debugger.paused', ({ params }) => resolve(params.callFrames.map(lineOf).join('\n')));
    session.post('Debugger.enable');
    session.post('Debugger.pause');
  });
}

function lineOf({ functionName, url, location }: Debugger.CallFrame): string {
  return `    at ${functionName || '<anonymous>'} (${url}:${location.lineNumber + 1}:${(location.columnNumber ?? 0) + 1})`;
}

if (!isMainThread && (workerData as Partial<Watched> | null)?.watchdog) watch(workerData as Watched);
