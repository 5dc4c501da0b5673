/** Listens on the address of the gateway. An address that cannot be used is explained with what to do. */
import { isAbsolute } from 'node:path';
import { LeporelloError } from '../../errors.ts';
import { type NodeServer, serveNode } from '../../gateway/http/node-server.ts';
import { gatewayCommand, ownCommand } from '../home.ts';
import { type LocalAddress, type PortUser, anotherPort, portUser, urlFor } from '../running-gateway.ts';
import type { Log, withRequestLog } from './log.ts';

type ListenOptions = {
  readonly log: Log;
  /** Milliseconds that another program on the port has to say what it is. */
  readonly portUserMs: number;
  readonly home: string | undefined;
};

export async function listen(
  handler: ReturnType<typeof withRequestLog>,
  { host, port }: LocalAddress,
  { log, portUserMs, home }: ListenOptions,
): Promise<NodeServer> {
  try {
    return await serveNode(handler, {
      host,
      port,
      onError: (error, stage) => log.error({ stage, ...fieldsOf(error) }, 'a request failed in the gateway'),
    });
  } catch (error) {
    const isTaken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    const user = isTaken ? await portUser({ host, port }, undefined, portUserMs) : undefined;
    throw listenProblem(error, { host, port }, user, home);
  }
}

/** Returns log fields of an error: its kind and stack, but not its message, which can quote content. */
function fieldsOf(error: unknown): Readonly<Record<string, unknown>> {
  if (!(error instanceof Error)) return { error: typeof error };
  const at = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  const code = 'code' in error ? { code: error.code } : {};
  return { error: error.name, ...code, at: at.slice(0, 5).map((line) => line.trim()) };
}

/** Explains why the gateway cannot listen, and what to do. Errors of another kind are returned unchanged. */
function listenProblem(
  cause: unknown,
  { host, port }: LocalAddress,
  user: PortUser | undefined,
  home: string | undefined,
): unknown {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  const sentence =
    user?.kind === 'leporello' ? alreadyRuns(user, { host, port }, home) : sentenceFor(code, host, port);
  return sentence === undefined ? cause : new LeporelloError('bad-config', sentence, { cause });
}

function alreadyRuns(
  { state }: Extract<PortUser, { kind: 'leporello' }>,
  address: LocalAddress,
  home: string | undefined,
): string {
  const url = urlFor(address);
  const { port } = address;
  const dataDir = isAbsolute(state.store ?? '') ? state.store : undefined;
  const store = state.store === undefined ? 'originals in memory' : `originals in ${state.store}`;
  return (
    `A Leporello (version ${state.leporello}, ${store}) already runs on ${url}. ` +
    `Use it: ${gatewayCommand('wrap claude', { port, dataDir, home })}, or ${url} as the base URL of a client. For a second one: ${ownCommand} serve --port ${anotherPort(port)}.`
  );
}

function sentenceFor(code: unknown, host: string, port: number): string | undefined {
  switch (code) {
    case 'EADDRINUSE':
      return (
        `Port ${port} on ${host} is in use by another program. ` +
        `Stop it, or use another port: ${ownCommand} serve --port ${anotherPort(port)} (0 uses any free port).`
      );
    case 'EACCES':
      return `This user may not listen on port ${port} of ${host}. Use a port above 1023, such as --port 8787.`;
    case 'EADDRNOTAVAIL':
      return `${host} is not an address of this machine. Use 127.0.0.1, or 0.0.0.0 for all addresses (--host).`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `The host ${host} is unknown. Use an address of this machine, such as 127.0.0.1 (--host).`;
    default:
      return undefined;
  }
}
