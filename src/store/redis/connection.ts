/**
 * Opens a connection to Redis on which no call waits long: calls wait while the connection is being made, fail when their time is up, and fail
 * at once while the server is known to be unreachable. Also explains errors of Redis and of the network. They carry the command with its
 * arguments, possibly a password, so only their sentence is copied. Loads the client library only when called. Network I/O, timers.
 */
import type { Redis } from 'iovalkey';
import { LeporelloError } from '../../errors.ts';
import { type WithResolvers, withResolvers } from '../../es2024.ts';
import { startSlicedTimer } from '../wrapped-store.ts';

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
  | { readonly status: 'opening'; readonly opened: WithResolvers<void> }
  | { readonly status: 'ready' }
  | { readonly status: 'away'; readonly why: unknown };

function watch(client: Redis, timeoutMs: number) {
  let state: ConnectionState = opening();
  /** True after the server rejected something on this connection, such as the database. The connection stays unusable even if it answers. */
  let refused = false;

  function opening(): ConnectionState {
    const opened = withResolvers<void>();
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
  const late = withResolvers<never>();
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

/** Returns the error as `store-failed`, with the server's name and a remedy. */
export function redisFailed(place: string, error: unknown, prefix: string): LeporelloError {
  if (LeporelloError.isInstance(error)) return error;
  const said = sentenceOf(causeOf(error));
  const [, remedy = 'See the log of the server.'] = remedies(prefix).find(([sign]) => sign.test(said)) ?? [];
  return new LeporelloError('store-failed', `The Redis store ${place} failed: ${said}. ${remedy}`);
}

function connectionLost(): Error {
  return new Error('the connection was lost');
}

function unanswered(ms: number): Error {
  return new Error(`no answer within ${ms} ms`);
}

/** Returns the first error of an aborted transaction, or the error itself. */
function causeOf(error: unknown): unknown {
  if (!(error instanceof Error) || !('previousErrors' in error)) return error;
  return (error.previousErrors as readonly unknown[])[0] ?? error;
}

function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return 'the client threw a value that is not an error';
  // An AggregateError means that the host name has several addresses, and none answered.
  const messages = error instanceof AggregateError ? error.errors.map(messageOf) : [error.message];
  const said = messages.join(', ');
  const known = ownWords.find(([theirs]) => theirs.test(said))?.[1];
  // Redis quotes the arguments of an unknown command.
  return (
    known ??
    said
      .replace(/,? with args beginning with.*$/s, '')
      .slice(0, 200)
      .replace(/\.\s*$/, '')
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Replacements for messages of the client library that mention its options. */
const ownWords: readonly (readonly [RegExp, string])[] = [
  [
    /max retries per request|^Connection is closed|^Command aborted|Stream isn't writeable/,
    connectionLost().message,
  ],
  [/^Socket timeout|connect ETIMEDOUT$/, 'no answer in time'],
];

/** Remedies by pattern; the first match counts. Messages of Redis begin with a word in capitals: https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors */
function remedies(prefix: string): readonly (readonly [RegExp, string])[] {
  return [
    [/^(WRONGPASS|NOAUTH)|invalid password|AUTH/, 'Check username and password.'],
    [
      /^NOPERM/,
      `Let this user run MGET, GET, SET, DEL, MULTI, EXEC, EVAL, SELECT and INFO, with keys that begin with ${prefix}.`,
    ],
    [/^READONLY/, 'It is a replica: use the address of the primary.'],
    [/^OOM/, 'Its memory is full: raise its maxmemory, or give Leporello a server of its own.'],
    [/^MISCONF/, 'It cannot save to its disk: free disk space there.'],
    [/^LOADING/, 'It is still loading its data: wait until it has finished.'],
    [
      /^(MOVED|ASK|CROSSSLOT|CLUSTERDOWN|TRYAGAIN) |cluster mode|slot/,
      'It is a cluster: pass redisStore a cluster client, and a prefix with a part in braces.',
    ],
    [/DB index/, 'Choose a database that exists.'],
    [/max number of clients/, 'Raise its maxclients, or close other clients.'],
    [/^DENIED/, 'Set a password there.'],
    [/ECONNREFUSED|ENOENT/, 'Start the server, or check host and port.'],
    [/ENOTFOUND|EAI_AGAIN/, 'Check the host name.'],
    [
      /certificate|SSL|TLS|alert/i,
      'Check its certificate (NODE_EXTRA_CA_CERTS names the file of an authority of your own), and whether it speaks TLS on this port.',
    ],
    [/Protocol error/, 'The server that answers is not Redis: check host and port.'],
    [
      /no answer/,
      'Check the network, whether both sides use TLS, and how busy the server is, or allow more time.',
    ],
    [
      /ECONNRESET|EPIPE/,
      'The server ended the connection. The store reconnects by itself, unless only one side uses TLS.',
    ],
    [/lost/, 'The store reconnects by itself once the server is back.'],
  ];
}
