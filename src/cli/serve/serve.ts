/** Implements `leporello serve`: runs the gateway on a port until it is stopped. */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { assembleGateway } from '../../gateway/app.ts';
import { type ReceiptArchive, receiptArchive } from '../../gateway/receipts/archive.ts';
import { type FoldThread, foldThread } from '../../gateway/fold-thread/fold-thread.ts';
import { type NodeServer, serveNode } from '../../gateway/http/node-server.ts';
import { prometheusMetrics } from '../../gateway/receipts/prometheus.ts';
import { undiciUpstream } from '../../gateway/http/undici-upstream.ts';
import { warmUp } from '../../gateway/warm-up.ts';
import type { ServeArgs } from '../args.ts';
import { loadConfig } from '../config/load-config.ts';
import type { Config } from '../config/schema.ts';
import { gatewaySettings, isLoopback } from '../config/to-settings.ts';
import { setGcFlags, smallHeapFlagsFor } from '../gc-flags.ts';
import { openStoreOrFallBack, storeServer } from '../open-store.ts';
import type { Terminal } from '../terminal.ts';
import { smallCacheMb } from '../../caches.ts';
import { LeporelloError } from '../../errors.ts';
import { type Handler, jsonResponse } from '../../gateway/http/http.ts';
import type { ClientSnippet } from '../../page/setup.ts';
import { loadVocabulary, provideVocabularies } from '../../tokens/load-counter.ts';
import { type Log, createLog, pathOf, withRequestLog } from './log.ts';
import { cacheFolder, saveCode, saveVocabulary, vocabulariesIn } from '../start-cache.ts';

/** Runs the command. Resolves with the exit code when the gateway has stopped. Rejects with `bad-config`, also when it cannot listen. */
export async function serve(args: ServeArgs, terminal: Terminal): Promise<number> {
  const { config, dataDir, unknownVariables } = await loadConfig(args.settings, terminal);
  const log = createLog(terminal, config.logLevel);
  const memory = await openStoreOrFallBack(dataDir, terminal.env, config.memory);
  const cache = cacheFolder(terminal.env);
  if (cache !== undefined) provideVocabularies(vocabulariesIn(cache));
  if (config.limits.cacheMb < smallCacheMb) setGcFlags(smallHeapFlagsFor(process.versions.v8));
  const upstream = undiciUpstream();
  const thread = openFoldThread(config);
  const metrics = prometheusMetrics();
  const archive = receiptArchive();
  const handler = assembleGateway(gatewaySettings(config), {
    ...memory,
    upstream,
    log,
    metrics,
    archive,
    pageClients: clientSnippets,
    ...(thread && { foldThread: thread }),
  });
  const stopped = whenStopped(terminal);
  const warming = createBackgroundWarmUp();
  try {
    const server = await listen(withRequestLog(warming.watched(handler), log), config, log);
    warming.start(async (pause) => {
      await upstream.load();
      await pause();
      await metrics.page({ summariesRunning: 0 });
      await Promise.all([warmUp(usualModel, pause), thread?.warmUp(usualModel)]);
      await pause();
      if (cache !== undefined) await saveVocabulary(cache, 'o200k_base', await loadVocabulary('o200k_base'));
      await pause();
      saveCode();
    });
    const place = memory.lost === undefined ? placeOf(config, dataDir) : undefined;
    await terminal.out(startText(server, args.json, place, memory.store.name)).catch(() => undefined);
    warn(log, config, memory, unknownVariables);
    await drain(server, stopped, config.limits.drainMs, log, archive);
    return 0;
  } finally {
    stopped.forget();
    await warming.stop();
    // No client waits any more. Only background summaries may still be in progress.
    await upstream.cut();
    await archive.close();
    await thread?.close();
    await memory.store.close();
  }
}

/** Returns undefined if the main thread folds large bodies too: each thread takes about 90 MB before its first request. */
function openFoldThread({ limits: { foldThreadBytes, cacheMb } }: Config): FoldThread | undefined {
  return foldThreadBytes === 0 || cacheMb < smallCacheMb
    ? undefined
    : foldThread({ fromBytes: foldThreadBytes });
}

/** A model with the tokenizer that most requests need. */
const usualModel = 'gpt-4o';

/** Calls `pause` where a request may go first. It rejects when the gateway stops. */
type WarmUpWork = (pause: () => Promise<void>) => Promise<void>;

/** Milliseconds that the warm-up waits for requests. After that they probably wait for their provider. */
const maxPauseMs = 100;

/** Milliseconds between the beginning of listening and the warm-up. */
const firstRequestsMs = 20;

/**
 * Runs the warm-up while the gateway listens, so that a start takes no longer than loading the code. It waits while requests are handled.
 * Until it has ended, `/readyz` is 503: requests are served, but the first ones take longer.
 */
function createBackgroundWarmUp() {
  const now = { requests: 0, isOver: false, isStopped: false };
  let work = Promise.resolve();
  const mayGoOn = (): boolean => now.requests === 0 || now.isStopped;
  async function pause(): Promise<void> {
    await nextTurn();
    for (let ms = 0; !mayGoOn() && ms < maxPauseMs; ms += 5) await sleep(5);
    if (now.isStopped) throw new Error('The gateway stops.');
  }
  async function run(all: WarmUpWork): Promise<void> {
    // Clients that have waited for the port are served first.
    await sleep(firstRequestsMs);
    await all(pause).catch(() => undefined);
    now.isOver = true;
  }
  return {
    /** Returns the handler with `/readyz` and the number of its requests watched. */
    watched(handler: Handler): Handler {
      return async function watch(request) {
        if (now.isOver) return handler(request);
        if (pathOf(request) === '/readyz') return jsonResponse(503, { status: 'warming up' });
        now.requests += 1;
        try {
          return await handler(request);
        } finally {
          now.requests -= 1;
        }
      };
    },
    start(all: WarmUpWork): void {
      work = run(all);
    },
    async stop(): Promise<void> {
      now.isStopped = true;
      await work;
    },
  };
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
      onError: (error, stage) => log.error({ stage, ...fieldsOf(error) }, 'a request failed in the gateway'),
    });
  } catch (error) {
    throw listenProblem(error, { host, port });
  }
}

/** Waits for the first signal, then for the requests in progress. A second signal cuts them off. */
async function drain(
  server: NodeServer,
  stopped: StopSignals,
  drainMs: number,
  log: Log,
  archive: ReceiptArchive,
): Promise<void> {
  await stopped.first;
  log.info({ drainMs }, 'stopping: requests in progress may finish; send the signal again to cut them off');
  // The streams to pages never end by themselves.
  await archive.close();
  await Promise.race([server.close(drainMs), stopped.second.then(() => server.close(0))]);
}

type StopSignals = {
  readonly first: Promise<void>;
  readonly second: Promise<void>;
  forget(): void;
};

function whenStopped(terminal: Terminal): StopSignals {
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  let times = 0;
  const forget = terminal.onStop(() => {
    times += 1;
    (times === 1 ? first : second).resolve();
  });
  return { first: first.promise, second: second.promise, forget };
}

/** Describes where the store is. */
function placeOf({ memory }: Config, dataDir: string | undefined): string | undefined {
  return storeServer(memory)?.place ?? dataDir;
}

function startText(server: NodeServer, json: boolean, place: string | undefined, store: string): string {
  const url = urlFor(server.host, server.port);
  if (json) {
    const data = store === 'sqlite' && place !== undefined ? place : null;
    return `${JSON.stringify({ url, host: server.host, port: server.port, store, data })}\n`;
  }
  const memory = place === undefined ? 'store: only in this process' : `store: ${place}`;
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
      'the data folder cannot be used: originals and folds are kept in memory and lost when this process ends',
    );
  }
  if (away !== undefined) {
    log.warn(
      { reason: away },
      'the store cannot be used now: until it can, requests are folded only when they would not fit the window',
    );
  }
  if (!isLoopback(host)) {
    log.warn(
      { host },
      'other machines can reach this address: anyone there can send requests through it, and keys are sent unencrypted; use a TLS proxy in front, or listen on 127.0.0.1',
    );
  }
  if (unknown.length > 0) log.warn({ variables: unknown }, 'unknown variables are ignored');
}

/** Returns log fields of an error: its kind and stack, but not its message, which can quote content. */
function fieldsOf(error: unknown): Readonly<Record<string, unknown>> {
  if (!(error instanceof Error)) return { error: typeof error };
  const at = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  const code = 'code' in error ? { code: error.code } : {};
  return { error: error.name, ...code, at: at.slice(0, 5).map((line) => line.trim()) };
}

type ListenAddress = { readonly host: string; readonly port: number };

/** Explains why the gateway cannot listen, and what to do. Errors of another kind are returned unchanged. */
function listenProblem(cause: unknown, { host, port }: ListenAddress): unknown {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  const sentence = sentenceFor(code, host, port);
  return sentence === undefined ? cause : new LeporelloError('bad-config', sentence, { cause });
}

function sentenceFor(code: unknown, host: string, port: number): string | undefined {
  const another = port < 65_535 ? port + 1 : port - 1;
  switch (code) {
    case 'EADDRINUSE':
      return (
        `Port ${port} on ${host} is in use by another program, perhaps another Leporello. ` +
        `Stop it, or use another port: leporello serve --port ${another} (0 uses any free port).`
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

/** Explains how to connect the usual clients. `url` is the gateway's, without a path and a trailing slash. */
export function clientHelp(url: string): string {
  return `Set the base URL of a client to this gateway. The client keeps its key.

  OpenAI SDK      OPENAI_BASE_URL=${url}/v1        (or baseURL / base_url; chat and responses)
  Anthropic SDK   ANTHROPIC_BASE_URL=${url}        (or baseURL / base_url)
  Claude Code     ANTHROPIC_BASE_URL=${url} ENABLE_TOOL_SEARCH=true claude
                  (without ENABLE_TOOL_SEARCH, some versions send all tool definitions in every request)
  Gemini SDK      httpOptions.baseUrl = ${url}     (Gemini CLI: GOOGLE_GEMINI_BASE_URL=${url})
  Codex           openai_base_url = "${url}/v1"    in ~/.codex/config.toml (the variable is ignored);
                  or as your own provider, [model_providers.NAME], with
                  base_url = "${url}/v1", env_key = "OPENAI_API_KEY", wire_api = "responses"
  curl            curl ${url}/v1/chat/completions -H "authorization: Bearer $OPENAI_API_KEY" \\
                    -H "content-type: application/json" \\
                    -d '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}'

  More about each client: docs/clients.md
  What happens to each request: ${url}/ in a browser, and ${url}/_leporello/receipts for programs
`;
}

/** Explains the same for the page: one text to copy for each client. */
function clientSnippets(url: string): readonly ClientSnippet[] {
  return [
    {
      name: 'Claude Code',
      text: `ANTHROPIC_BASE_URL=${url} ENABLE_TOOL_SEARCH=true claude`,
      note: 'Without ENABLE_TOOL_SEARCH, some versions send all tool definitions in every request.',
    },
    {
      name: 'Codex',
      text: `codex -c openai_base_url="${url}/v1"`,
      note: 'Or set openai_base_url in ~/.codex/config.toml.',
    },
    { name: 'Gemini CLI', text: `GOOGLE_GEMINI_BASE_URL=${url} gemini` },
    { name: 'OpenAI SDK', text: `OPENAI_BASE_URL=${url}/v1`, note: 'Chat Completions and Responses.' },
    { name: 'Anthropic SDK', text: `ANTHROPIC_BASE_URL=${url}` },
    { name: 'Gemini SDK', text: `httpOptions.baseUrl = ${url}` },
  ];
}

/** Returns the URL for clients of a gateway that listens on this address. */
function urlFor(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}
