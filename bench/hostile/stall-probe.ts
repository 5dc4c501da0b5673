/**
 * Preloaded into a program: measures the longest stall of its event loop in CPU time of the main thread, and the CPU time of the main thread
 * and of the process. It sends the figures since the last request for them to the parent process on request.
 */
import { isMainThread } from 'node:worker_threads';
import type { GatewayFigures } from './gateway.ts';

/** The interval of the probe; a probe that never waits would use up a core. */
const intervalMs = 2;

if (isMainThread && process.send) {
  const now = () => ({ main: msOf(process.threadCpuUsage()), all: msOf(process.cpuUsage()) });
  let begin = now();
  let last = begin.main;
  let longest = 0;
  setInterval(() => {
    const { main } = now();
    longest = Math.max(longest, main - last);
    // The time of the probe itself is not part of the next stall.
    last = now().main;
  }, intervalMs).unref();
  process.on('message', () => {
    const end = now();
    const figures: GatewayFigures = {
      stallMs: longest,
      mainMs: end.main - begin.main,
      cpuMs: end.all - begin.all,
    };
    process.send?.(figures);
    longest = 0;
    begin = now();
  });
  process.channel?.unref();
}

function msOf({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1_000;
}
