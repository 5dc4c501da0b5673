/**
 * Preloaded into a program: measures the longest stall of its event loop in CPU time of the main thread, and the CPU time of the process. It
 * sends the figures since the last request for them to the parent process on request.
 */
import { isMainThread } from 'node:worker_threads';
import type { GatewayFigures } from './gateway.ts';

/** The interval of the probe; a probe that never waits would use up a core. */
const intervalMs = 2;

if (isMainThread && process.send) {
  const mainMs = () => msOf(process.threadCpuUsage());
  const allMs = () => msOf(process.cpuUsage());
  let begin = allMs();
  let last = mainMs();
  let longest = 0;
  setInterval(() => {
    longest = Math.max(longest, mainMs() - last);
    // The time of the probe itself is not part of the next stall.
    last = mainMs();
  }, intervalMs).unref();
  process.on('message', () => {
    const figures: GatewayFigures = { stallMs: longest, cpuMs: allMs() - begin };
    process.send?.(figures);
    longest = 0;
    begin = allMs();
  });
  process.channel?.unref();
}

function msOf({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1_000;
}
