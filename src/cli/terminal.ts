/** Defines what a command needs of its process (streams, variables, signals), so that tests can replace it. */
import type { Readable } from 'node:stream';

/** The process as commands see it. */
export interface Terminal {
  /** Writes to standard output. Resolves when more can be written; rejects with the system's error (EPIPE when the reader has closed it). */
  out(data: string | Uint8Array): Promise<void>;
  /** Writes to standard error. Never fails. */
  err(text: string): void;
  /** Returns standard input. It is read only after this call. */
  input(): Readable;
  /** True for each stream that is connected to a terminal. */
  readonly isTty: { readonly input: boolean; readonly out: boolean; readonly err: boolean };
  readonly env: Environment;
  /** The working directory. */
  readonly cwd: string;
  /** Calls the listener for each SIGINT and SIGTERM, which then no longer end the process. Returns a function that removes the listener. */
  onStop(listener: () => void): () => void;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const signals = ['SIGINT', 'SIGTERM'] as const;

/** Returns the terminal of this process. */
export function processTerminal(): Terminal {
  const { stdin, stdout, stderr } = process;
  // Each write reports its own error. Without a listener the stream's error event would end the process.
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
