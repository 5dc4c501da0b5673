/**
 * Explains errors of Redis and of the network to the person who runs Leporello. Pure: errors in, errors out. Errors of the client carry
 * the command with its arguments, possibly a password, so only their sentence is copied.
 */
import { LeporelloError } from '../../errors.ts';

/** Returns the error as `store-failed`, with the server's name and a remedy. */
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
    [/certificate|SSL|TLS|alert/i, 'Check its certificate, and whether it speaks TLS on this port.'],
    [/Protocol error/, 'The server that answers is not Redis: check host and port.'],
    [/no answer/, 'Check the network and how busy the server is, or allow more time.'],
    [/lost|ECONNRESET|EPIPE/, 'The store reconnects by itself once the server is back.'],
  ];
}
