/** `leporello serve`: the gateway on a port, until it is asked to stop. */
import { assembleGateway } from '../../gateway/assemble.ts';
import { foldThread } from '../../gateway/fold-thread/fold-thread.ts';
import { type NodeServer, serveNode } from '../../gateway/http/node-server.ts';
import { prometheusMetrics } from '../../gateway/receipts/prometheus.ts';
import { undiciUpstream } from '../../gateway/http/undici-upstream.ts';
import { warmUp } from '../../gateway/warm-up.ts';
import type { ServeArgs } from '../args.ts';
import { loadConfig } from '../config/load-config.ts';
import type { Config } from '../config/schema.ts';
import { gatewaySettings, isLoopback } from '../config/to-settings.ts';
import { openMemoryOrDoWithout, spellRedis } from '../open-memory.ts';
import { createLog, type Log, withRequestLog } from './log.ts';
import type { Terminal } from '../terminal.ts';
import { LeporelloError } from '../../errors.ts';

/** Resolves with the exit code when the gateway has stopped. Rejects with `bad-config`, or when it cannot listen. */
export async function serve(args: ServeArgs, terminal: Terminal): Promise<number> {
  const { config, dataDir, unknownVariables } = await loadConfig(args.settings, terminal);
  const log = createLog(terminal, config.logLevel);
  const memory = await openMemoryOrDoWithout(dataDir, terminal.env, config.memory.redis);
  // Some upstreams compress although they are asked not to; a call in such a response could not be seen.
  const upstream = undiciUpstream();
  const { foldThreadBytes } = config.limits;
  const thread = foldThreadBytes === 0 ? undefined : foldThread({ fromBytes: foldThreadBytes });
  const handler = assembleGateway(gatewaySettings(config), {
    ...memory,
    upstream,
    log,
    metrics: prometheusMetrics(),
    ...(thread && { foldThread: thread }),
  });
  const stopped = whenStopped(terminal);
  try {
    await Promise.all([warmUp('gpt-4o'), thread?.warmUp('gpt-4o')]);
    const server = await listen(withRequestLog(handler, log), config, log);
    const place = memory.lost === undefined ? placeOf(config, dataDir) : undefined;
    await terminal.out(startText(server, args.json, place, memory.store.name)).catch(() => undefined);
    warn(log, config, memory, unknownVariables);
    await drain(server, stopped, config.limits.drainMs, log);
    return 0;
  } finally {
    stopped.forget();
    // No client waits any more: what is left are summaries for folds to come.
    await upstream.cut();
    await thread?.close();
    await memory.store.close();
  }
}

async function listen(
  handler: ReturnType<typeof withRequestLog>,
  config: Config,
  log: Log,
): Promise<NodeServer> {
  const { host, port } = config;
  try {
    return await serveNode(handler, {
      host,
      port,
      onError: (error, stage) => log.error({ stage, ...tellable(error) }, 'a request failed in the gateway'),
    });
  } catch (error) {
    throw listenProblem(error, { host, port });
  }
}

/** Waits for the first signal, then for the requests under way; a second signal cuts them. */
async function drain(server: NodeServer, stopped: Stopped, drainMs: number, log: Log): Promise<void> {
  await stopped.first;
  log.info({ drainMs }, 'stopping: requests under way may finish; once more to cut them');
  await Promise.race([server.close(drainMs), stopped.second.then(() => server.close(0))]);
}

type Stopped = {
  readonly first: Promise<void>;
  readonly second: Promise<void>;
  forget(): void;
};

function whenStopped(terminal: Terminal): Stopped {
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  let times = 0;
  const forget = terminal.onStop(() => {
    times += 1;
    (times === 1 ? first : second).resolve();
  });
  return { first: first.promise, second: second.promise, forget };
}

/** Where memory is, for people. */
function placeOf({ memory: { redis } }: Config, dataDir: string | undefined): string | undefined {
  return redis === false ? dataDir : spellRedis(redis);
}

function startText(server: NodeServer, json: boolean, place: string | undefined, store: string): string {
  const url = urlFor(server.host, server.port);
  if (json) {
    const data = store === 'sqlite' && place !== undefined ? place : null;
    return `${JSON.stringify({ url, host: server.host, port: server.port, store, data })}\n`;
  }
  const memory = place === undefined ? 'memory: in this process alone' : `memory: ${place}`;
  return `Leporello listens on ${url}   ${memory}\n\n${clientHelp(url)}\n`;
}

function warn(
  log: Log,
  { host }: Config,
  { lost, away }: { readonly lost?: string; readonly away?: string },
  unknown: readonly string[],
): void {
  if (lost !== undefined) {
    log.warn(
      { reason: lost },
      'the data folder cannot be used: requests are served and folded, but originals and folds are lost when this process ends',
    );
  }
  if (away !== undefined) {
    log.warn(
      { reason: away },
      'Redis cannot be used now: until it can, requests are folded only where they would not fit',
    );
  }
  if (!isLoopback(host)) {
    log.warn(
      { host },
      'this address can be reached from other machines: anyone there can send requests through, and keys travel unencrypted; put TLS in front, or listen on 127.0.0.1',
    );
  }
  if (unknown.length > 0)
    log.warn({ variables: unknown }, 'variables that mean nothing to Leporello are ignored');
}

/** Messages of errors that are not ours can quote content: of those the kind and the place are told. */
function tellable(error: unknown): Readonly<Record<string, unknown>> {
  if (!(error instanceof Error)) return { error: typeof error };
  const at = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  const code = 'code' in error ? { code: error.code } : {};
  return { error: error.name, ...code, at: at.slice(0, 5).map((line) => line.trim()) };
}

type Place = { readonly host: string; readonly port: number };

/** The system's error as a sentence with a way out; errors of another kind come back as they are. */
export function listenProblem(cause: unknown, { host, port }: Place): unknown {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  const sentence = sentenceFor(code, host, port);
  return sentence === undefined ? cause : new LeporelloError('bad-config', sentence, { cause });
}

function sentenceFor(code: unknown, host: string, port: number): string | undefined {
  const another = port < 65_535 ? port + 1 : port - 1;
  switch (code) {
    case 'EADDRINUSE':
      return (
        `Port ${port} on ${host} is taken: another program, perhaps another Leporello, listens there. ` +
        `Stop it, or take another port: leporello serve --port ${another} (0 takes any free one).`
      );
    case 'EACCES':
      return `This user may not listen on port ${port} of ${host}: take one above 1023, as in --port 8787.`;
    case 'EADDRNOTAVAIL':
      return `${host} is no address of this machine: take 127.0.0.1, or 0.0.0.0 for all of them (--host).`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `The host ${host} is not known: give an address of this machine, such as 127.0.0.1 (--host).`;
    default:
      return undefined;
  }
}

/** `url` is the gateway's, without a path and without a slash at the end. */
export function clientHelp(url: string): string {
  return `Point a client here; its key stays its own.

  OpenAI SDK      OPENAI_BASE_URL=${url}/v1        (or baseURL / base_url; chat and responses)
  Anthropic SDK   ANTHROPIC_BASE_URL=${url}        (or baseURL / base_url)
  Claude Code     ANTHROPIC_BASE_URL=${url} ENABLE_TOOL_SEARCH=true claude
                  (without ENABLE_TOOL_SEARCH, some versions send all tool definitions in every request)
  Gemini SDK      httpOptions.baseUrl = ${url}     (Gemini CLI: GOOGLE_GEMINI_BASE_URL=${url})
  Codex           openai_base_url = "${url}/v1"    in ~/.codex/config.toml (the variable is ignored);
                  or as a provider of your own, [model_providers.NAME], with
                  base_url = "${url}/v1", env_key = "OPENAI_API_KEY", wire_api = "responses"
  curl            curl ${url}/v1/chat/completions -H "authorization: Bearer $OPENAI_API_KEY" \\
                    -H "content-type: application/json" \\
                    -d '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}'

  More on each client: docs/clients.md
  Receipts of all requests: ${url}/_leporello/receipts (from another machine: with the key of the request)
`;
}

/** The address to write into a client for an address that was listened on. */
export function urlFor(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}
