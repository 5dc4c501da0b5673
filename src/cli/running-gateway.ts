/**
 * Looks at the program behind a port: nothing, another program, or a Leporello, with its state. A Leporello proves that it has the same data
 * folder with a hash under the folder's secret, so that no key is sent to a gateway of somebody else on this machine.
 */
import { createHmac, randomUUID } from 'node:crypto';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { UpstreamUrls } from '../gateway/routing/routes.ts';

// An import of this module would also load its web classes, with fetch: 25 ms of each start.
const { request } = process.getBuiltinModule('node:http');

/** The description that a gateway of `leporello serve` gives of itself. */
export type GatewayState = {
  readonly leporello: string;
  readonly pid: number;
  /** The time of its start, in milliseconds since the epoch. */
  readonly since: number;
  readonly mode: string;
  /** The data folder or the server that keeps originals; undefined if they are kept in memory. */
  readonly store?: string | undefined;
  readonly tenant: string;
  readonly urls: UpstreamUrls;
  /** Sentences that it logged as warnings at its start; undefined in earlier versions. */
  readonly warnings?: readonly string[];
  /** Number of `leporello wrap` commands that use it. */
  readonly wraps: number;
  /** True if it ends with the last of them. */
  readonly endsWithWraps: boolean;
};

/** An address of this machine. */
export type LocalAddress = { readonly host: string; readonly port: number };

/** The program behind a port. */
export type PortUser =
  | { readonly kind: 'nobody' }
  | { readonly kind: 'another program' }
  /** `isOurs`: it has the same secret, so the same user and data folder. */
  | { readonly kind: 'leporello'; readonly state: GatewayState; readonly isOurs: boolean };

/** The path at which a gateway describes itself, and below which wraps have their base URLs. */
export const wrapsPath = '/_leporello/wraps';

/** Returns the proof that somebody knows the secret, for a text that the other side has chosen. */
export function proofOf(secret: Uint8Array, challenge: string): string {
  return createHmac('sha256', secret).update(`leporello gateway ${challenge}`).digest('hex');
}

/** Returns the URL for clients of a gateway that listens on this address. */
export function urlFor({ host, port }: LocalAddress): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

/** Returns a port to use instead of one that is taken. */
export function anotherPort(port: number): number {
  return port < 65_535 ? port + 1 : port - 1;
}

/** Finds out who uses a port. Waits at most `deadlineMs` milliseconds. */
export async function portUser(
  address: LocalAddress,
  secret: Uint8Array | undefined,
  deadlineMs: number,
): Promise<PortUser> {
  const challenge = randomUUID();
  const answer = await getJson(`${urlFor(address)}${wrapsPath}?challenge=${challenge}`, deadlineMs);
  if (answer.status === 'refused') return { kind: 'nobody' };
  if (answer.status !== 'ok' || !isState(answer.value)) return { kind: 'another program' };
  const { proof, ...state } = answer.value;
  return {
    kind: 'leporello',
    state,
    isOurs: secret !== undefined && proof === proofOf(secret, challenge),
  };
}

function isState(value: unknown): value is GatewayState & { readonly proof: string } {
  return typeof value === 'object' && value !== null && 'leporello' in value && 'urls' in value;
}

/** The answer to a GET: JSON, or why there is none. */
export type JsonAnswer =
  | { readonly status: 'ok'; readonly value: unknown }
  /** Nobody listens. */
  | { readonly status: 'refused' }
  | { readonly status: 'failed'; readonly why: string };

/** Gets JSON from a gateway on this machine. Never rejects. */
export async function getJson(url: string, deadlineMs: number): Promise<JsonAnswer> {
  const signal = AbortSignal.timeout(deadlineMs);
  try {
    const response = await open(url, signal);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    if (response.statusCode !== 200) return { status: 'failed', why: `status ${response.statusCode}` };
    return { status: 'ok', value: JSON.parse(Buffer.concat(chunks).toString()) as unknown };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED')
      return { status: 'refused' };
    return {
      status: 'failed',
      why: signal.aborted ? `no answer within ${deadlineMs} ms` : error instanceof Error ? error.message : '',
    };
  }
}

/** Opens a request that the gateway answers until one of both ends. Undefined if the gateway does not accept it. */
export async function openHold(url: string): Promise<GatewayHold | undefined> {
  const stop = new AbortController();
  try {
    const response = await open(url, stop.signal);
    if (response.statusCode !== 200) {
      response.destroy();
      return undefined;
    }
    const ended = new Promise<void>((resolve) => {
      response.once('close', resolve);
      response.on('error', () => undefined);
      response.resume();
    });
    return { ended, release: () => stop.abort() };
  } catch {
    return undefined;
  }
}

/** Keeps a gateway running. */
export type GatewayHold = {
  /** Resolves when the gateway ends, or after `release`. */
  readonly ended: Promise<void>;
  release(): void;
};

/** Sends a GET without the proxies of the environment: they could not reach this machine. */
function open(url: string, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent: ClientRequest = request(url, { agent: false, signal }, resolve);
    sent.once('error', reject);
    sent.end();
  });
}
