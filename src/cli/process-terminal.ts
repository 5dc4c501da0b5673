/** The terminal of this very process. */
import type { Terminal } from './terminal.ts';

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
