/** Shares conversations among processes, the longest first, and shows on standard error how far they are. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import type { Played } from '../../src/replay/replay.ts';
import type { BenchOptions } from './policies.ts';

/** In the order of the ids. */
export async function replayInProcesses(
  ids: readonly string[],
  options: BenchOptions,
): Promise<readonly Played[]> {
  const waiting = [...ids];
  const played = new Map<string, Played>();
  const progress = createProgress(ids.length);
  const work = async (): Promise<void> => {
    const child = fork(new URL('./process.ts', import.meta.url), [JSON.stringify(options)]);
    try {
      for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
        played.set(id, await ask(child, id));
        progress(played.size);
      }
    } finally {
      child.kill();
    }
  };
  await Promise.all(Array.from({ length: Math.min(ids.length, availableParallelism(), 8) }, work));
  return ids.map((id) => played.get(id)!);
}

async function ask(child: ChildProcess, id: string): Promise<Played> {
  const stop = new AbortController();
  const answer = once(child, 'message', { signal: stop.signal });
  const end = once(child, 'exit', { signal: stop.signal }).then(() => {
    throw new Error(`The process that replayed ${id} ended early.`);
  });
  child.send(id);
  try {
    const [played] = (await Promise.race([answer, end])) as [Played];
    return played;
  } finally {
    stop.abort();
    // Both end with the signal; one was waited for.
    await Promise.allSettled([answer, end]);
  }
}

function createProgress(total: number): (done: number) => void {
  const started = performance.now();
  return function show(done) {
    if (!process.stderr.isTTY) return;
    const seconds = Math.round((performance.now() - started) / 1000);
    const bar = '#'.repeat(Math.round((30 * done) / total)).padEnd(30, '.');
    const end = done === total ? '\n' : '';
    process.stderr.write(`\r[${bar}] ${done} of ${total} conversations, ${seconds} s${end}`);
  };
}
