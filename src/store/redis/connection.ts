/**
 * A connection to Redis on which no call waits long: calls wait while the connection is being made, fail when their time is up, and fail
 * at once while the server is known to be unreachable. Loads the client library only when called. Network I/O, timers.
 */
import type { Redis } from 'iovalkey';
import { LeporelloError } from '../../errors.ts';
import { startSlicedTimer } from '../deadline-store.ts';
import { connectionLost, unanswered } from './errors.ts';

/** The client methods that the store uses. The clients of iovalkey and ioredis have them, for one server and for a cluster. */
export interface RedisClient {
  mgetBuffer(...keys: string[]): Promise<(Buffer | null)[]>;
  /** Runs any command. Used for EVAL, which has no method that returns bytes unchanged. */
  callBuffer(command: string, args: (string | Buffer | number)[]): Promise<unknown>;
  /** Sends MULTI, the commands and EXEC in one batch. */
  multi(commands: unknown[][]): { exec(): Promise<[error: Error | null, result: unknown][] | null> };
  del(...keys: string[]): Promise<number>;
}

export type RedisServer = {
  readonly host: string;
  readonly port: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly database: number;
  readonly tls: boolean;
};

export type RedisConnection = {
  /** Names the server in errors. */
  readonly place: string;
  /** Runs a call. Rejects when the time is up at the latest. */
  ask<T>(question: (client: RedisClient) => Promise<T>): Promise<T>;
  close(): void;
};

/** Wraps a client that the caller opens, reconnects and closes. Throws `bad-config` for a client of another kind. */
export function theirConnection(client: RedisClient, timeoutMs: number): RedisConnection {
  if (!('mgetBuffer' in client)) {
    throw new LeporelloError(
      'bad-config',
      'The client given to the Redis store has no mgetBuffer: pass a client of the package iovalkey or ioredis.',
    );
  }
  return {
    place: 'of the given client',
    ask: (question) => within(timeoutMs, question(client)),
    close: () => undefined,
  };
}

/** Starts to connect, and reconnects whenever the connection is lost, until it is closed. Rejects with `bad-config`. */
export async function connectRedis(server: RedisServer, timeoutMs: number): Promise<RedisConnection> {
  const Client = await loadClient();
  const { host, port, username, password, database, tls } = server;
  const client = new Client({
    host,
    port,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls ? { tls: {} } : {}),
    db: database,
    // Keeps network devices from dropping the idle connection.
    keepAlive: 30_000,
    // Time after which a connection attempt is replaced by another one. Calls fail sooner.
    connectTimeout: timeoutMs + 5_000,
    socketTimeout: timeoutMs + 5_000,
    // No call is pending when the connection is closed.
    disconnectTimeout: 10,
    retryStrategy: (times) => Math.min(25 * 2 ** times, 1_000),
    // No queue and no retries: a call fails, and its request continues without it.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // After a failover the host name resolves to another server, while the old one becomes a replica.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
  const state = watch(client, timeoutMs);
  return {
    place: `at ${host.includes(':') ? `[${host}]` : host}:${port}`,
    ask: (question) => within(timeoutMs, state.ask(question), () => state.overdue()),
    close: () => client.disconnect(),
  };
}

async function loadClient(): Promise<typeof Redis> {
  try {
    return (await import('iovalkey')).Redis;
  } catch (cause) {
    throw new LeporelloError(
      'bad-config',
      'The Redis store needs the package iovalkey, which is not installed: npm install iovalkey.',
      { cause },
    );
  }
}

/** `opening` after the start or a lost connection; `away` after a failure, until the client has reconnected. */
type ConnectionState =
  | { readonly status: 'opening'; readonly opened: PromiseWithResolvers<void> }
  | { readonly status: 'ready' }
  | { readonly status: 'away'; readonly why: unknown };

function watch(client: Redis, timeoutMs: number) {
  let state: ConnectionState = opening();
  /** True after the server rejected something on this connection, such as the database. The connection stays unusable even if it answers. */
  let refused = false;

  function opening(): ConnectionState {
    const opened = Promise.withResolvers<void>();
    // There may be no caller to handle the rejection.
    opened.promise.catch(() => undefined);
    const mine = { status: 'opening', opened } as const;
    startSlicedTimer(timeoutMs, () => {
      if (state === mine) failed(unanswered(timeoutMs));
    }).unref();
    return mine;
  }

  function failed(why: unknown): void {
    const before = state;
    state = { status: 'away', why };
    if (before.status === 'opening') before.opened.reject(why);
  }

  client.on('connect', () => {
    refused = false;
  });
  client.on('ready', () => {
    if (refused) return;
    const before = state;
    state = { status: 'ready' };
    if (before.status === 'opening') before.opened.resolve();
  });
  client.on('error', (error: unknown) => {
    refused ||= error instanceof Error && error.name === 'ReplyError';
    failed(error);
  });
  client.on('close', () => {
    if (state.status === 'ready') state = opening();
    else if (state.status === 'opening') failed(connectionLost());
  });

  return {
    /** Sends a call, at once if connected: calls of one turn of the event loop are sent together. */
    ask<T>(question: (client: Redis) => Promise<T>): Promise<T> {
      switch (state.status) {
        case 'ready':
          return question(client);
        case 'opening':
          return state.opened.promise.then(() => question(client));
        case 'away':
          return Promise.reject(state.why);
      }
    },
    /** Drops the connection after a call without an answer: the next call would wait as long. */
    overdue(): void {
      if (state.status !== 'ready') return;
      failed(unanswered(timeoutMs));
      client.disconnect(true);
    },
  };
}

async function within<T>(ms: number, work: Promise<T>, overdue?: () => void): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = startSlicedTimer(ms, () => {
    late.reject(unanswered(ms));
    overdue?.();
  });
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    timer.stop();
  }
}
