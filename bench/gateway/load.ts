/** A closed loop of requests: so many connections, each sending its next request when the last one is answered. */
import { Pool } from 'undici';
import { chatBody } from './chat-body.ts';

export type Load = {
  readonly requests: number;
  readonly seconds: number;
  /** Milliseconds from sending to the last byte of the answer, ascending. */
  readonly latencies: readonly number[];
};

let turn = 0;

/** Throws on any answer that is not a 200. Each request is one turn further, so that nothing is answered from memory alone. */
export async function load(origin: string, connections: number, ms: number): Promise<Load> {
  const pool = new Pool(origin, { connections });
  const latencies: number[] = [];
  const start = performance.now();
  const loop = async (): Promise<void> => {
    const { bytes, counterAt } = chatBody();
    while (performance.now() < start + ms) {
      turn += 1;
      new TextEncoder().encodeInto(String(turn).padStart(8, '0'), bytes.subarray(counterAt, counterAt + 8));
      const sent = performance.now();
      const answer = await pool.request({
        method: 'POST',
        path: '/v1/chat/completions',
        headers: { 'content-type': 'application/json', authorization: 'Bearer bench' },
        body: bytes,
      });
      await answer.body.dump();
      if (answer.statusCode !== 200) throw new Error(`${origin} answered ${answer.statusCode}`);
      latencies.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: connections }, loop));
  const seconds = (performance.now() - start) / 1000;
  await pool.close();
  return { requests: latencies.length, seconds, latencies: latencies.sort((a, b) => a - b) };
}
