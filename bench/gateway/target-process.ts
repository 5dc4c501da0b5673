/**
 * Runs a target of targets.ts in a process of its own, which reports its use of CPU and memory, and divides its CPU time by step. This file is
 * also the script of that process.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setGcFlags } from '../../src/cli/gc-flags.ts';
import { profileSteps, type StepTimes } from '../steps.ts';
import { type Target, targets } from './targets.ts';

/** CPU time since the process began, of all threads, and memory in units of 10^6 bytes. */
export type ProcessUse = { readonly cpuMs: number; readonly rssMb: number };

export type TargetProcess = {
  readonly origin: string;
  readonly use: () => Promise<ProcessUse>;
  /** Starts to record the steps of requests. */
  readonly startProfile: () => Promise<void>;
  /** Stops, and returns the time of each step, divided by the number of requests. */
  readonly takeSteps: (requests: number) => Promise<StepTimes>;
  readonly kill: () => void;
};

type Question = 'use' | 'start profile' | { readonly requests: number };

const script = fileURLToPath(import.meta.url);
if (process.argv[1] === script) await serve(process.argv.slice(2));

/** Starts a target in front of `upstream` (an origin). `checkout` is the folder of another checkout, whose target is started. */
export async function startTarget(
  target: string,
  upstream: string,
  checkout?: string,
): Promise<TargetProcess> {
  const child = fork(script, [target, upstream, ...(checkout === undefined ? [] : [resolve(checkout)])]);
  // Without its target a benchmark would wait forever. The child has printed what is wrong.
  child.once('exit', (code) => {
    if (code) process.exit(code);
  });
  const answer = async (): Promise<unknown> => {
    const [message] = (await once(child, 'message')) as [unknown];
    return message;
  };
  const ask = (question: Question): Promise<unknown> => {
    child.send(question);
    return answer();
  };
  return {
    origin: `http://127.0.0.1:${String(await answer())}`,
    use: async () => (await ask('use')) as ProcessUse,
    startProfile: async () => void (await ask('start profile')),
    takeSteps: async (requests) => (await ask({ requests })) as StepTimes,
    kill: () => child.kill(),
  };
}

/** Runs in the child: starts the target, sends its port, then answers each question. */
async function serve([name = '', upstream = '', checkout]: readonly string[]): Promise<void> {
  setGcFlags();
  const found =
    checkout === undefined
      ? targets
      : (
          (await import(resolve(checkout, 'bench/gateway/targets.ts'))) as {
            readonly targets: typeof targets;
          }
        ).targets;
  const start: Target | undefined = found[name];
  if (start === undefined) throw new Error(`There is no target ${name}.`);
  const port = await start(upstream);
  let stop: Awaited<ReturnType<typeof profileSteps>> | undefined;
  const answerTo = async (question: Question): Promise<unknown> => {
    if (question === 'start profile') {
      stop = await profileSteps();
      return 'started';
    }
    if (question !== 'use') return stop?.(question.requests);
    const { user, system } = process.cpuUsage();
    return { cpuMs: (user + system) / 1_000, rssMb: process.memoryUsage.rss() / 1e6 };
  };
  process.on('message', (question) => {
    void answerTo(question as Question).then((answer) => process.send?.(answer));
  });
  process.on('disconnect', () => process.exit());
  process.send?.(port);
}
