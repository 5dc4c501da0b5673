/** A terminal for tests of commands: gathers what is written, and plays the part of whoever sits in front of it. */
import { Readable } from 'node:stream';
import type { Terminal } from '../../src/cli/terminal.ts';

export type TestTerminal = Terminal & {
  readonly written: { out(): string; bytes(): Uint8Array; err(): string };
  /** Resolves when standard output, or standard error, has this text. */
  shows(text: string): Promise<void>;
  /** What Ctrl-C does. */
  stop(): void;
};

export type TestTerminalOptions = {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: readonly (string | Uint8Array)[] | Readable;
  readonly isTty?: Partial<Terminal['isTty']>;
};

export function testTerminal(options: TestTerminalOptions = {}): TestTerminal {
  const { env = {}, cwd = process.cwd(), input = [] } = options;
  const out: Uint8Array[] = [];
  const err: string[] = [];
  const listeners = new Set<() => void>();
  const waiting = new Set<() => void>();
  const text = (): string => new TextDecoder().decode(Buffer.concat(out));
  const noted = (): void => {
    for (const look of waiting) look();
  };
  return {
    out: async (data) => {
      out.push(typeof data === 'string' ? new TextEncoder().encode(data) : data.slice());
      noted();
    },
    err(data) {
      err.push(data);
      noted();
    },
    input: () =>
      input instanceof Readable
        ? input
        : Readable.from(input.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece))),
    isTty: { input: false, out: false, err: false, ...options.isTty },
    env,
    cwd,
    onStop(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    written: { out: text, bytes: () => new Uint8Array(Buffer.concat(out)), err: () => err.join('') },
    shows: (wanted) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!text().includes(wanted) && !err.join('').includes(wanted)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    stop() {
      for (const listener of listeners) listener();
    },
  };
}
