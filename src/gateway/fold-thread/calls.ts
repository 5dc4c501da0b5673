/**
 * Implements calls between two threads over messages: each side offers functions that the other may call. Arguments and results are data
 * that can be copied; an error keeps its code and its message.
 */
import { LeporelloError } from '../../errors.ts';
import { type WithResolvers, withResolvers } from '../../es2024.ts';

/** A message channel to the other thread. */
type Channel = {
  /** Sends a message. The buffers are moved to the other thread, not copied. */
  post(message: ThreadMessage, moved: readonly ArrayBuffer[]): void;
  listen(listener: (message: ThreadMessage) => void): void;
};

/** The functions that one side offers, by name. */
export type Functions = Readonly<Record<string, (...args: never[]) => unknown>>;

/** The offered functions as the other side calls them. */
export type Remote<Offered extends Functions> = {
  readonly [Name in keyof Offered]: (
    ...args: Parameters<Offered[Name]>
  ) => Promise<Awaited<ReturnType<Offered[Name]>>>;
};

/** A connection to the other side. */
export type Calls<Offered extends Functions> = {
  readonly remote: Remote<Offered>;
  /** Ends the connection: calls in progress, and all later calls, reject with this error. */
  readonly end: (error: LeporelloError) => void;
};

type Failure = { readonly code: LeporelloError['code'] | undefined; readonly message: string };
export type ThreadMessage =
  | { readonly type: 'call'; readonly id: number; readonly name: string; readonly args: readonly unknown[] }
  | { readonly type: 'result'; readonly id: number; readonly result: unknown }
  | { readonly type: 'failure'; readonly id: number; readonly failure: Failure };

/** Opens a connection. `offered` are the functions of this side; `Offered` is the type of the other side's functions. */
export function openCalls<Offered extends Functions>(channel: Channel, offered: Functions): Calls<Offered> {
  const waiting = new Map<number, WithResolvers<unknown>>();
  let next = 0;
  let ended: LeporelloError | undefined;

  async function answer({ id, name, args }: ThreadMessage & { readonly type: 'call' }): Promise<void> {
    try {
      const result: unknown = await offered[name]!(...(args as never[]));
      channel.post({ type: 'result', id, result }, movedIn([result]));
    } catch (error) {
      channel.post({ type: 'failure', id, failure: failureOf(error) }, []);
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
    const answered = withResolvers<unknown>();
    const id = next++;
    try {
      channel.post({ type: 'call', id, name, args }, movedIn(args));
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

const moved = new WeakMap<object, ArrayBuffer>();

/** Marks data whose bytes are moved to the other thread when it is sent. They are gone here then. */
export function moving<T extends object>(data: T, bytes: Uint8Array<ArrayBuffer>): T {
  moved.set(data, bytes.buffer);
  return data;
}

function movedIn(values: readonly unknown[]): readonly ArrayBuffer[] {
  return values.flatMap((value) =>
    typeof value === 'object' && value !== null ? (moved.get(value) ?? []) : [],
  );
}

/** Converts an error to data. Only the kind of an error that is not a LeporelloError is named, because its message can quote content. */
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
 * State of a call in memory that both threads share: waiting, started or given up. The first thread to change it decides. A call that has started
 * may have effects and is waited for; a call that was given up never begins.
 */
export type CallState = Int32Array;

/** Creates the state of a call that waits to begin. */
export function openCallState(): CallState {
  return new Int32Array(new SharedArrayBuffer(4));
}

/** Begins a call; false when it was given up. */
export function begin(state: CallState): boolean {
  return Atomics.compareExchange(state, 0, waiting, started) === waiting;
}

/** Gives a call up; false when it has started. */
export function giveUp(state: CallState): boolean {
  return Atomics.compareExchange(state, 0, waiting, givenUp) === waiting;
}

const [waiting, started, givenUp] = [0, 1, 2];
