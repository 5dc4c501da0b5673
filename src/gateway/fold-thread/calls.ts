/**
 * Calls between two threads: each side names functions that the other may call, by messages. Arguments and results are data that can be
 * copied; an error keeps its code and its message.
 */
import { LeporelloError } from '../../errors.ts';

/** The way to the other thread and back. */
export type Channel = {
  post(message: Message): void;
  listen(listener: (message: Message) => void): void;
};

/** Functions that one side offers, by name. */
export type Functions = Readonly<Record<string, (...args: never[]) => unknown>>;

/** The same as the other side calls them. */
export type Remote<Offered extends Functions> = {
  readonly [Name in keyof Offered]: (
    ...args: Parameters<Offered[Name]>
  ) => Promise<Awaited<ReturnType<Offered[Name]>>>;
};

export type Calls<Offered extends Functions> = {
  readonly remote: Remote<Offered>;
  /** The other side is gone: what waits for it, and what calls it from now on, rejects with this. */
  readonly end: (error: LeporelloError) => void;
};

type Failure = { readonly code: LeporelloError['code'] | undefined; readonly message: string };
export type Message =
  | { readonly type: 'call'; readonly id: number; readonly name: string; readonly args: readonly unknown[] }
  | { readonly type: 'result'; readonly id: number; readonly result: unknown }
  | { readonly type: 'failure'; readonly id: number; readonly failure: Failure };

/** `offered` is what this side answers; `Offered` what the other does. */
export function openCalls<Offered extends Functions>(channel: Channel, offered: Functions): Calls<Offered> {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let next = 0;
  let ended: LeporelloError | undefined;

  async function answer({ id, name, args }: Message & { readonly type: 'call' }): Promise<void> {
    try {
      const result: unknown = await offered[name]!(...(args as never[]));
      channel.post({ type: 'result', id, result });
    } catch (error) {
      channel.post({ type: 'failure', id, failure: failureOf(error) });
    }
  }

  channel.listen((message) => {
    if (message.type === 'call') {
      void answer(message);
      return;
    }
    const call = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.type === 'result') call?.resolve(message.result);
    else call?.reject(errorOf(message.failure));
  });

  const call = (name: string, args: readonly unknown[]): Promise<unknown> => {
    if (ended) return Promise.reject(ended);
    const answered = Promise.withResolvers<unknown>();
    const id = next++;
    try {
      channel.post({ type: 'call', id, name, args });
      waiting.set(id, answered);
    } catch (error) {
      answered.reject(error);
    }
    return answered.promise;
  };

  return {
    remote: new Proxy({} as Remote<Offered>, {
      get: (_, name) => (typeof name === 'string' ? (...args: unknown[]) => call(name, args) : undefined),
    }),
    end(error) {
      ended = error;
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
    },
  };
}

/** Names only the kind of errors that are not ours, because their messages can quote content. */
function failureOf(error: unknown): Failure {
  if (LeporelloError.isInstance(error)) return { code: error.code, message: error.message };
  return {
    code: undefined,
    message: error instanceof Error ? `unexpected ${error.name}` : 'unexpected error',
  };
}

function errorOf({ code, message }: Failure): Error {
  return code === undefined ? new Error(message) : new LeporelloError(code, message);
}

/**
 * Whether a call was begun or given up, as a number in memory that both threads share: whoever is first decides. What was begun may have
 * effects and is waited for; what was given up is never begun.
 */
export type Turn = Int32Array;

export function openTurn(): Turn {
  return new Int32Array(new SharedArrayBuffer(4));
}

/** False where it was given up. */
export function begin(turn: Turn): boolean {
  return Atomics.compareExchange(turn, 0, waiting, begun) === waiting;
}

/** False where it was begun. */
export function giveUp(turn: Turn): boolean {
  return Atomics.compareExchange(turn, 0, waiting, givenUp) === waiting;
}

const [waiting, begun, givenUp] = [0, 1, 2];
