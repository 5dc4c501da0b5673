/** Sends requests in a closed loop: each connection sends its next request when the last one is answered. */
import { Pool } from 'undici';
import { type NextBody, growingBodies, rewrittenBodies } from './chat-body.ts';

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
  /** True for a conversation of its own on each connection, to which each request adds messages. Default: all share one, and rewrite its last message. */
  readonly grows?: boolean | undefined;
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
  const { origin, headers, connections, bytes, grows = false, ms = Infinity, requests = Infinity } = options;
  const pool = new Pool(origin, { connections });
  const latencies: number[] = [];
  // They are built before the time begins: 16 of 2 MB take 0.2 s.
  const bodies = Array.from({ length: connections }, (_, connection) =>
    grows ? growingBodies(bytes, connection + 1) : rewrittenBodies(bytes),
  );
  const start = performance.now();
  let begun = 0;
  const loop = async (nextBody: NextBody): Promise<void> => {
    while (performance.now() < start + ms && begun < requests) {
      begun += 1;
      turn += 1;
      const body = nextBody(turn);
      const sent = performance.now();
      const answer = await pool.request({
        method: 'POST',
        path: '/v1/chat/completions',
        headers: { 'content-type': 'application/json', authorization: 'Bearer bench', ...headers },
        body,
      });
      await answer.body.dump();
      if (answer.statusCode !== 200)
        throw new Error(`Expected status 200 from ${origin}, got ${answer.statusCode}`);
      latencies.push(performance.now() - sent);
    }
  };
  await Promise.all(bodies.map(loop));
  const seconds = (performance.now() - start) / 1000;
  await pool.close();
  return { requests: latencies.length, seconds, latencies: latencies.sort((a, b) => a - b) };
}
