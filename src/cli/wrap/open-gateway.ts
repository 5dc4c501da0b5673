/** Finds the gateway that a wrap uses, or starts one in a process of its own, which several wraps share and which ends with the last (serve/wraps.ts). */
import { spawn } from 'node:child_process';
import { isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { LeporelloError } from '../../errors.ts';
import { withResolvers } from '../../es2024.ts';
import type { UpstreamUrls } from '../../gateway/routing/routes.ts';
import {
  type GatewayHold,
  type GatewayState,
  type LocalAddress,
  anotherPort,
  openHold,
  portUser,
  urlFor,
  wrapsPath,
} from '../running-gateway.ts';
import { ownCommand } from '../home.ts';
import type { Environment } from '../terminal.ts';

export type GatewayWish = {
  readonly id: string;
  readonly address: LocalAddress;
  /** True if the user named the port: then no other port will do. */
  readonly isPortGiven: boolean;
  readonly secret: Uint8Array | undefined;
  /** The upstreams that the gateway must have. */
  readonly upstreams: Partial<UpstreamUrls>;
  /** Flags of the configuration for a gateway that must be started, without the port. */
  readonly flags: readonly string[];
  readonly env: Environment;
  readonly cwd: string;
  readonly deadlines: WrapDeadlines;
  /** The process id of the client, once it runs. */
  readonly pid?: number | undefined;
  /** Ends the search. */
  readonly signal?: AbortSignal;
};

/** Milliseconds. */
export type WrapDeadlines = {
  /** For an answer of a program on a port. */
  readonly answer: number;
  /** Until a gateway runs. */
  readonly start: number;
};

export type OpenGateway = {
  /** The gateway's own base URL. */
  readonly url: string;
  readonly address: LocalAddress;
  readonly hold: GatewayHold;
  /** True if it was running already, with settings of its own. */
  readonly isShared: boolean;
  /** Why it is not on the usual port; undefined if it is. */
  readonly note: string | undefined;
};

/** Returns a gateway that runs until `hold` is released. Rejects with `bad-config` if none can be found or started. */
export async function openGateway(wish: GatewayWish): Promise<OpenGateway> {
  const latest = performance.now() + wish.deadlines.start;
  let problem = 'it did not start in time';
  while (performance.now() < latest && wish.signal?.aborted !== true) {
    const found = await portUser(wish.address, wish.secret, wish.deadlines.answer);
    const why = whyNotThis(found, wish);
    if (found.kind === 'leporello' && why === undefined) {
      const open = await held(wish, wish.address, true, undefined);
      if (open) return open;
    } else {
      if (why !== undefined && wish.isPortGiven)
        throw new LeporelloError('bad-config', `${why} ${remedy(wish)}`);
      const address = why === undefined ? wish.address : { ...wish.address, port: 0 };
      const started = await start(wish, address, latest - performance.now());
      if (started.status === 'runs') {
        const note = why && `${why} So this wrap has a gateway of its own, on port ${started.address.port}.`;
        const open = await held(wish, started.address, false, note);
        if (open) return open;
      } else problem = started.why;
      // Another wrap may have started one on this port at the same time.
      const isOver = (await portUser(wish.address, wish.secret, wish.deadlines.answer)).kind === 'nobody';
      if (started.status === 'failed' && isOver) break;
    }
    await sleep(100);
  }
  throw new LeporelloError('bad-config', `The gateway cannot run on ${urlFor(wish.address)}: ${problem}`);
}

function remedy({ address: { port } }: GatewayWish): string {
  return `Use another port: ${ownCommand} wrap --port ${anotherPort(port)} ... (0 uses any free port).`;
}

/** Says why the program on the port cannot be used; undefined if it can, or if there is none. */
function whyNotThis(
  found: Awaited<ReturnType<typeof portUser>>,
  { address: { port }, upstreams }: GatewayWish,
): string | undefined {
  if (port === 0 || found.kind === 'nobody') return undefined;
  if (found.kind === 'another program') return `Port ${port} is used by another program, not by Leporello.`;
  if (!found.isOurs) {
    const { store } = found.state;
    const hint = isAbsolute(store ?? '') ? ` With --data ${store}, it can be used.` : '';
    return `Port ${port} is used by a Leporello with another data folder or of another user.${hint}`;
  }
  const other = otherUpstream(found.state, upstreams);
  return (
    other &&
    `The gateway on port ${port} sends requests to ${other.is}, but this client needs ${other.wanted}.`
  );
}

function otherUpstream({ urls }: GatewayState, wanted: Partial<UpstreamUrls>) {
  for (const key of ['anthropic', 'openai', 'gemini'] as const) {
    const url = wanted[key];
    if (url !== undefined && plain(url) !== plain(urls[key])) return { is: urls[key], wanted: url };
  }
  return undefined;
}

/** Returns a base URL without the parts that make no difference. */
function plain(url: string): string {
  return url.replace(/(?<!\/)\/+$/, '').replace(/\/v1$/, '');
}

async function held(
  { id, pid }: GatewayWish,
  address: LocalAddress,
  isShared: boolean,
  note: string | undefined,
): Promise<OpenGateway | undefined> {
  const url = urlFor(address);
  const hold = await openHold(`${url}${wrapsPath}/${id}/hold${pid === undefined ? '' : `?pid=${pid}`}`);
  return hold && { url, address, hold, isShared, note };
}

type StartedGateway =
  | { readonly status: 'runs'; readonly address: LocalAddress }
  | { readonly status: 'failed'; readonly why: string };

/** Starts a gateway in a process that neither the terminal's signals nor the end of this process reach. */
async function start(
  wish: GatewayWish,
  { host, port }: LocalAddress,
  deadlineMs: number,
): Promise<StartedGateway> {
  const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const main = fileURLToPath(new URL(`../main.${ending}`, import.meta.url));
  const place = ['--host', host, '--port', String(port)];
  const argv = [main, 'serve', '--for-wraps', '--json', ...wish.flags, ...place];
  const child = spawn(process.execPath, [...process.execArgv, ...argv], {
    cwd: wish.cwd,
    env: { ...wish.env, ...variablesOf(wish.upstreams) },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    windowsHide: true,
  });
  const result = withResolvers<StartedGateway>();
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
    if (out.includes('\n')) result.resolve({ status: 'runs', address: addressIn(out) });
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  child.once('error', (error) => result.resolve({ status: 'failed', why: error.message }));
  child.once('close', (code) => {
    const said = err.replace(/^leporello: /, '').trim();
    result.resolve({ status: 'failed', why: said === '' ? `it ended with exit code ${code}.` : said });
  });
  const timer = setTimeout(() => {
    child.kill();
    result.resolve({ status: 'failed', why: `it did not start within ${Math.round(deadlineMs)} ms.` });
  }, deadlineMs);
  try {
    return await result.promise;
  } finally {
    clearTimeout(timer);
    child.stdout.destroy();
    child.stderr.destroy();
    child.unref();
  }
}

function addressIn(line: string): LocalAddress {
  const { host, port } = JSON.parse(line.split('\n')[0]!) as LocalAddress;
  return { host, port };
}

/** Returns the variables that set the upstreams of a gateway. */
function variablesOf(urls: Partial<UpstreamUrls>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(urls).map(([provider, url]) => [`LEPORELLO_${provider.toUpperCase()}_URL`, url]),
  );
}
