/**
 * A connection to Redis that never lets a call wait long: calls wait while it is being made, give up when the time is up, and fail
 * at once while the server is known to be away. Loads the client library only when called. Network I/O, timers.
 */
import type { Redis } from 'iovalkey';
import { LeporelloError } from '../../errors.ts';
import { patiently } from '../deadline-store.ts';
import { connectionLost, unanswered } from './errors.ts';

/** What is used of a client; those of the packages iovalkey and ioredis have it, for one server and for a cluster. */
export interface RedisClient {
  mgetBuffer(...keys: string[]): Promise<(Buffer | null)[]>;
  /** Any command: EVAL, which has no method of its own that leaves bytes as they are. */
  callBuffer(command: string, args: (string | Buffer | number)[]): Promise<unknown>;
  /** MULTI, the commands and EXEC, sent at once. */
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
  /** How the server is called in errors. */
  readonly place: string;
  /** Rejects at the latest when the time is up, with whatever went wrong. */
  ask<T>(question: (client: RedisClient) => Promise<T>): Promise<T>;
  close(): void;
};

/** A client that somebody else opened, mends and closes. Throws `bad-config` for one of another kind. */
export function theirConnection(client: RedisClient, timeoutMs: number): RedisConnection {
  if (!('mgetBuffer' in client)) {
    throw new LeporelloError(
      'bad-config',
      'The client given to the Redis store has no mgetBuffer: give one of the packages iovalkey or ioredis.',
    );
  }
  return {
    place: 'of the given client',
    ask: (question) => within(timeoutMs, question(client)),
    close: () => undefined,
  };
}

/** Starts to connect, and does so again whenever the connection is lost, until it is closed. Rejects with `bad-config`. */
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
    // Keeps what forgets idle connections on the way from doing so.
    keepAlive: 30_000,
    // When an attempt is given up for another. Calls give up sooner.
    connectTimeout: timeoutMs + 5_000,
    socketTimeout: timeoutMs + 5_000,
    // Nothing is under way any more when we close.
    disconnectTimeout: 10,
    retryStrategy: (times) => Math.min(25 * 2 ** times, 1_000),
    // Nothing is queued and nothing sent twice: a call fails, and its request goes on without it.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // After a failover the name leads to another server, while the old one goes on as a replica.
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
      'The Redis store needs the package iovalkey, which is not installed beside Leporello: npm install iovalkey.',
      { cause },
    );
  }
}

/** `opening` right after the start or a loss; `away` since something failed, until the client has connected anew. */
type ConnectionState =
  | { readonly status: 'opening'; readonly opened: PromiseWithResolvers<void> }
  | { readonly status: 'ready' }
  | { readonly status: 'away'; readonly why: unknown };

function watch(client: Redis, timeoutMs: number) {
  let state: ConnectionState = opening();
  /** What the server itself objects to on this connection, such as the database: that it then works does not make it good. */
  let refused = false;

  function opening(): ConnectionState {
    const opened = Promise.withResolvers<void>();
    // Nobody may be waiting.
    opened.promise.catch(() => undefined);
    const mine = { status: 'opening', opened } as const;
    patiently(timeoutMs, () => {
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
    /** At once where it can be: what is asked in one turn of the loop is under way together. */
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
    /** Whatever is asked next on this connection would wait as long. */
    overdue(): void {
      if (state.status !== 'ready') return;
      failed(unanswered(timeoutMs));
      client.disconnect(true);
    },
  };
}

async function within<T>(ms: number, work: Promise<T>, overdue?: () => void): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = patiently(ms, () => {
    late.reject(unanswered(ms));
    overdue?.();
  });
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    timer.stop();
  }
}
