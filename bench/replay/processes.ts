/** Distributes conversations over processes and shows their progress on standard error. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import type { ConversationRecord } from '../../src/cli/replay/conversation-body.ts';
import { createProgress } from '../../src/cli/replay/reports.ts';
import type { Played } from '../../src/replay/replay.ts';
import type { BenchOptions } from './policies.ts';
import type { Task } from './process.ts';

/** Replays the records and returns the results in their order. */
export async function replayInProcesses(
  records: readonly ConversationRecord[],
  options: BenchOptions,
): Promise<readonly Played[]> {
  const sizes = new Map(records.map(({ id, messages }) => [id, JSON.stringify(messages).length]));
  // The longest conversations come first, so that all processes end at about the same time.
  const waiting = records.map(({ id }) => id).toSorted((a, b) => sizes.get(b)! - sizes.get(a)!);
  const played = new Map<string, Played>();
  const progress = createProgress(records.length);
  const work = async (): Promise<void> => {
    const child = fork(new URL('./process.ts', import.meta.url), [JSON.stringify(options)]);
    try {
      for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
        const one = await ask(child, { id });
        played.set(one.id, one);
        if (process.stderr.isTTY) process.stderr.write(progress(played.size));
      }
    } finally {
      child.kill();
    }
  };
  await Promise.all(Array.from({ length: Math.min(records.length, availableParallelism(), 8) }, work));
  return records.map(({ id }) => played.get(id)!);
}

/** Replays the records with the full context and with the default settings: by a model that knows what it lacks, and by one that asks blind. */
export function replayBlind(records: readonly ConversationRecord[]): Promise<readonly Played[]> {
  return replayInProcesses(records, {
    engines: [{ name: 'Leporello', settings: {} }],
    set: 'blind',
    window: 200_000,
    prefix: 15_000,
    pauses: false,
    cacheTtl: '5m',
  });
}

async function ask(child: ChildProcess, task: Task): Promise<Played> {
  const stop = new AbortController();
  const answer = once(child, 'message', { signal: stop.signal });
  const exit = once(child, 'exit', { signal: stop.signal }).then(() => {
    throw new Error(`The process that replayed ${task.id} exited before it sent a result.`);
  });
  child.send(task);
  try {
    const [played] = (await Promise.race([answer, exit])) as [Played];
    return played;
  } finally {
    stop.abort();
    // The signal settles the promise that lost the race.
    await Promise.allSettled([answer, exit]);
  }
}
