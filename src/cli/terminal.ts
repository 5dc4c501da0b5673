/** What a command sees of the process it runs in: passed in, so that tests own it. process-terminal.ts is the real one. */
import type { Readable } from 'node:stream';

export interface Terminal {
  /** Standard output. Resolves when it takes more; rejects with the system's error (EPIPE when nobody reads any more). */
  out(data: string | Uint8Array): Promise<void>;
  /** Standard error. Never fails. */
  err(text: string): void;
  /** Standard input, read only when asked for. */
  input(): Readable;
  /** Which of them a person is looking at. */
  readonly isTty: { readonly input: boolean; readonly out: boolean; readonly err: boolean };
  readonly env: Environment;
  /** Working directory. */
  readonly cwd: string;
  /** Tells of each SIGINT and SIGTERM, which from then on do not end the process. Returns the way to stop listening. */
  onStop(listener: () => void): () => void;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const signals = ['SIGINT', 'SIGTERM'] as const;

export function processTerminal(): Terminal {
  const { stdin, stdout, stderr } = process;
  // Each write reports its own error; without a listener the stream's would end the process.
  stdout.on('error', () => undefined);
  stderr.on('error', () => undefined);
  return {
    out: (data) =>
      new Promise((resolve, reject) => {
        stdout.write(data, (error) => (error ? reject(error) : resolve()));
      }),
    err: (text) => void stderr.write(text),
    input: () => stdin,
    isTty: {
      input: stdin.isTTY,
      out: stdout.isTTY,
      err: stderr.isTTY,
    },
    env: process.env,
    cwd: process.cwd(),
    onStop(listener) {
      for (const signal of signals) process.on(signal, listener);
      return () => {
        for (const signal of signals) process.off(signal, listener);
      };
    },
  };
}
