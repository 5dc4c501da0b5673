/** Sends requests in a closed loop: each connection sends its next request when the last one is answered. */
import { Pool } from 'undici';
import { chatBody } from './chat-body.ts';

export type Load = {
  readonly requests: number;
  readonly seconds: number;
  /** Milliseconds from sending to the last byte of the response, ascending. */
  readonly latencies: readonly number[];
};

let turn = 0;

export type LoadOptions = {
  readonly origin: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly connections: number;
  readonly bytes: number;
  /** The longest time in milliseconds. Default: no limit. */
  readonly ms?: number;
  /** The most requests. Default: no limit. */
  readonly requests?: number;
};

/**
 * Sends requests of about `bytes` bytes until the time is over or all are sent. Rejects on any status but 200. Each request has a new turn number, so no target can
 * reuse a result.
 */
export async function load(options: LoadOptions): Promise<Load> {
  const { origin, headers, connections, bytes: size, ms = Infinity, requests = Infinity } = options;
  const pool = new Pool(origin, { connections });
  const latencies: number[] = [];
  const start = performance.now();
  let begun = 0;
  const loop = async (): Promise<void> => {
    const { bytes, counterAt } = chatBody(size);
    while (performance.now() < start + ms && begun < requests) {
      begun += 1;
      turn += 1;
      new TextEncoder().encodeInto(String(turn).padStart(8, '0'), bytes.subarray(counterAt, counterAt + 8));
      const sent = performance.now();
      const answer = await pool.request({
        method: 'POST',
        path: '/v1/chat/completions',
        headers: { 'content-type': 'application/json', authorization: 'Bearer bench', ...headers },
        body: bytes,
      });
      await answer.body.dump();
      if (answer.statusCode !== 200)
        throw new Error(`Expected status 200 from ${origin}, got ${answer.statusCode}`);
      latencies.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: connections }, loop));
  const seconds = (performance.now() - start) / 1000;
  await pool.close();
  return { requests: latencies.length, seconds, latencies: latencies.sort((a, b) => a - b) };
}
