/** Preloaded into a program: measures the longest stall of its event loop in CPU time, and sends it to the parent process on request. */
import { isMainThread } from 'node:worker_threads';

/** The interval of the probe; a probe that never waits would use up a core. */
const intervalMs = 2;

if (isMainThread && process.send) {
  let last = process.threadCpuUsage();
  let longest = 0;
  setInterval(() => {
    const { user, system } = process.threadCpuUsage(last);
    longest = Math.max(longest, (user + system) / 1_000);
    last = process.threadCpuUsage();
  }, intervalMs).unref();
  process.on('message', () => {
    process.send?.(longest);
    longest = 0;
  });
  process.channel?.unref();
}
