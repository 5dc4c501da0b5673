/** Preloaded into a gateway: sends its use of memory and CPU to the parent process on request. */
import { isMainThread } from 'node:worker_threads';

/** Megabytes are 10^6 bytes. RSS and CPU are those of the process; heap and bodies are those of the main thread. */
export type MemoryUse = {
  readonly rssMb: number;
  readonly heapMb: number;
  readonly bodiesMb: number;
  readonly cpuMs: number;
};

if (isMainThread && process.send) {
  process.on('message', () => {
    const { rss, heapUsed, arrayBuffers } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    const use: MemoryUse = {
      rssMb: rss / 1e6,
      heapMb: heapUsed / 1e6,
      bodiesMb: arrayBuffers / 1e6,
      cpuMs: (user + system) / 1_000,
    };
    process.send?.(use);
  });
  process.channel?.unref();
}
