/**
 * What errors of Redis and of the way there mean to the person who runs Leporello. Pure: errors in, errors out. The client's errors
 * carry the command with its arguments, a password among them, so nothing but the sentence is taken over.
 */
import { LeporelloError } from '../../errors.ts';

/** The error as `store-failed`, naming the server and what to do about it. */
export function redisFailed(place: string, error: unknown, prefix: string): LeporelloError {
  if (LeporelloError.isInstance(error)) return error;
  const said = sentenceOf(causeOf(error));
  const [, remedy = 'See the log of the server.'] = remedies(prefix).find(([sign]) => sign.test(said)) ?? [];
  return new LeporelloError('store-failed', `The Redis store ${place} failed: ${said}. ${remedy}`);
}

export function connectionLost(): Error {
  return new Error('the connection was lost');
}

export function unanswered(ms: number): Error {
  return new Error(`no answer within ${ms} ms`);
}

/** Of a transaction that was given up, what went wrong first. */
function causeOf(error: unknown): unknown {
  if (!(error instanceof Error) || !('previousErrors' in error)) return error;
  return (error.previousErrors as readonly unknown[])[0] ?? error;
}

function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return 'something that is no error was thrown';
  // Of a name with several addresses, none of which answered.
  const messages = error instanceof AggregateError ? error.errors.map(messageOf) : [error.message];
  const said = messages.join(', ');
  const known = ownWords.find(([theirs]) => theirs.test(said))?.[1];
  // Redis quotes the arguments of a command that it does not know.
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

/** Sentences of the client library that speak of its options. */
const ownWords: readonly (readonly [RegExp, string])[] = [
  [
    /max retries per request|^Connection is closed|^Command aborted|Stream isn't writeable/,
    connectionLost().message,
  ],
  [/^Socket timeout|connect ETIMEDOUT$/, 'no answer in time'],
];

/** The first that fits. What Redis says begins with a word in capitals: https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors */
function remedies(prefix: string): readonly (readonly [RegExp, string])[] {
  return [
    [/^(WRONGPASS|NOAUTH)|invalid password|AUTH/, 'Check username and password.'],
    [
      /^NOPERM/,
      `Let this user run MGET, GET, SET, DEL, MULTI, EXEC, EVAL, SELECT and INFO, with keys that begin with ${prefix}.`,
    ],
    [/^READONLY/, 'It is a replica: name the primary.'],
    [/^OOM/, 'Its memory is full: raise its maxmemory, or give Leporello a server of its own.'],
    [/^MISCONF/, 'It cannot save to its disk: make room there.'],
    [/^LOADING/, 'It still reads its data: wait until it has.'],
    [
      /^(MOVED|ASK|CROSSSLOT|CLUSTERDOWN|TRYAGAIN) |cluster mode|slot/,
      'It is a cluster: give redisStore a client for clusters, and a prefix with a part in braces.',
    ],
    [/DB index/, 'Choose a database that it has.'],
    [/max number of clients/, 'Raise its maxclients, or close other clients.'],
    [/^DENIED/, 'Set a password there.'],
    [/ECONNREFUSED|ENOENT/, 'Start it, or check host and port.'],
    [/ENOTFOUND|EAI_AGAIN/, 'Check the name of the host.'],
    [/certificate|SSL|TLS|alert/i, 'Check its certificate, and whether it speaks TLS on this port.'],
    [/Protocol error/, 'What answers there is not Redis: check host and port.'],
    [/no answer/, 'Check the network and how busy the server is, or allow more time.'],
    [/lost|ECONNRESET|EPIPE/, 'Once it is back, the store works again by itself.'],
  ];
}
