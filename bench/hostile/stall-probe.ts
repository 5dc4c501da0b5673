/** Loaded before a program: measures the longest stall of its event loop, in CPU time, and tells it to the parent when asked. */
import { isMainThread } from 'node:worker_threads';

/** Looks so often, in milliseconds: a probe that spins would use up a core. */
const everyMs = 2;

if (isMainThread && process.send) {
  let last = process.threadCpuUsage();
  let longest = 0;
  setInterval(() => {
    const { user, system } = process.threadCpuUsage(last);
    longest = Math.max(longest, (user + system) / 1_000);
    last = process.threadCpuUsage();
  }, everyMs).unref();
  process.on('message', () => {
    process.send?.(longest);
    longest = 0;
  });
  process.channel?.unref();
}
