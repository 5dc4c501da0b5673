/** A terminal for tests of commands: it records what is written and plays the user. Its environment sets long deadlines. */
import { Readable } from 'node:stream';
import type { Terminal } from '../../src/cli/terminal.ts';

export type TestTerminal = Terminal & {
  readonly written: { out(): string; bytes(): Uint8Array; err(): string };
  /** Resolves when standard output or standard error contains this text. */
  shows(text: string): Promise<void>;
  /** Calls the listeners of Ctrl-C. */
  stop(): void;
};

export type TestTerminalOptions = {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: readonly (string | Uint8Array)[] | Readable;
  readonly isTty?: Partial<Terminal['isTty']>;
};

/** Deadlines that are met even on a busy machine. */
const longDeadlines = {
  LEPORELLO_LIMITS_PREPARE_DEADLINE_MS: '600000',
  LEPORELLO_LIMITS_STORE_DEADLINE_MS: '60000',
};

export function testTerminal(options: TestTerminalOptions = {}): TestTerminal {
  const { cwd = process.cwd(), input = [] } = options;
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
    env: { ...longDeadlines, ...options.env },
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
