/** A client that records when it receives each text of a stream. It keeps one connection open per target. */
import { Pool } from 'undici';
import { now } from './clock.ts';

/** The times of one response in milliseconds. */
export type ClientTimes = {
  readonly sent: number;
  /** The time at which each wanted text was received, in their order. */
  readonly received: readonly number[];
  /** The outcome of the request in the gateway's response header. */
  readonly outcome: string | undefined;
};

export type Client = {
  ask(path: string, body: Uint8Array, wanted: readonly string[]): Promise<ClientTimes>;
  close(): Promise<void>;
};

/** `ask` rejects unless the response has status 200 and contains all wanted texts in order. */
export function openClient(origin: string): Client {
  const pool = new Pool(origin, { connections: 1 });
  return {
    async ask(path, body, wanted) {
      const sent = now();
      const answer = await pool.request({ method: 'POST', path, headers, body });
      const received: number[] = [];
      let text = '';
      for await (const chunk of answer.body) {
        const receivedAt = now();
        text += String(chunk);
        while (received.length < wanted.length && text.includes(wanted[received.length]!))
          received.push(receivedAt);
      }
      if (answer.statusCode !== 200 || received.length < wanted.length)
        throw new Error(
          `Expected status 200 and ${wanted.length} texts from ${origin}${path}; got status ${answer.statusCode} and ${received.length} texts: ${text.slice(0, 500)}`,
        );
      const outcome = answer.headers['x-leporello-outcome'];
      return { sent, received, outcome: typeof outcome === 'string' ? outcome : undefined };
    },
    close: () => pool.close(),
  };
}

const headers = {
  'content-type': 'application/json',
  authorization: 'Bearer bench',
  'anthropic-version': '2023-06-01',
};
