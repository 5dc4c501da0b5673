/** A client that notes when each text of a stream reached it. One connection for each target, kept alive. */
import { Pool } from 'undici';
import { now } from './clock.ts';

/** What a client saw of one answer. */
export type Seen = {
  readonly sent: number;
  /** When each of the wanted texts had arrived, in their order. */
  readonly got: readonly number[];
  /** What the gateway says became of the request. */
  readonly outcome: string | undefined;
};

export type Client = {
  ask(path: string, body: Uint8Array, wanted: readonly string[]): Promise<Seen>;
  close(): Promise<void>;
};

/** Rejects on any answer but a 200 that holds all the wanted texts. */
export function openClient(origin: string): Client {
  const pool = new Pool(origin, { connections: 1 });
  return {
    async ask(path, body, wanted) {
      const sent = now();
      const answer = await pool.request({ method: 'POST', path, headers, body });
      const got: number[] = [];
      let text = '';
      for await (const chunk of answer.body) {
        const came = now();
        text += String(chunk);
        while (got.length < wanted.length && text.includes(wanted[got.length]!)) got.push(came);
      }
      if (answer.statusCode !== 200 || got.length < wanted.length)
        throw new Error(`${origin}${path} answered ${answer.statusCode}: ${text.slice(0, 500)}`);
      const outcome = answer.headers['x-leporello-outcome'];
      return { sent, got, outcome: typeof outcome === 'string' ? outcome : undefined };
    },
    close: () => pool.close(),
  };
}

const headers = {
  'content-type': 'application/json',
  authorization: 'Bearer bench',
  'anthropic-version': '2023-06-01',
};
