/** Implements `leporello serve`: runs the gateway on a port until it is stopped. */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { assembleGateway } from '../../gateway/app.ts';
import { type ReceiptArchive, receiptArchive } from '../../gateway/receipts/archive.ts';
import { type FoldThread, foldThread } from '../../gateway/fold-thread/fold-thread.ts';
import { idleMoment, type NodeServer } from '../../gateway/http/node-server.ts';
import { prometheusMetrics } from '../../gateway/receipts/prometheus.ts';
import { undiciUpstream } from '../../gateway/http/undici-upstream.ts';
import type { GatewayTracing } from '../../gateway/options.ts';
import { waitAtMost } from '../../gateway/send-with-retries.ts';
import { warmUp } from '../../gateway/warm-up.ts';
import type { ServeArgs } from '../command-args.ts';
import { loadConfig } from '../config/load-config.ts';
import { type Config, smallCacheMb } from '../config/schema.ts';
import { gatewaySettings, isLoopback } from '../config/to-settings.ts';
import { setGcFlags, smallHeapFlagsFor } from '../gc-flags.ts';
import { type StoreProblems, openStoreOrFallBack, storeServer } from '../open-store.ts';
import { clientHelp, clientSnippets } from '../wrap/clients.ts';
import { homeOf, gatewayCommand, packageVersion } from '../home.ts';
import { urlFor } from '../running-gateway.ts';
import type { Terminal } from '../terminal.ts';
import { LeporelloError } from '../../errors.ts';
import { withResolvers } from '../../es2024.ts';
import { defaultUpstreams } from '../../gateway/routing/routes.ts';
import { type Handler, jsonResponse } from '../../gateway/http/http.ts';
import { loadVocabulary, provideVocabularies } from '../../tokens/load-counter.ts';
import { listen } from './listen.ts';
import { type Log, createLog, pathOf, withRequestLog } from './log.ts';
import { createWraps } from './wraps.ts';
import { cacheFolder, saveCode, saveVocabulary, vocabulariesIn } from '../start-cache.ts';

/**
 * Runs the command. Resolves with the exit code when the gateway has stopped. Rejects with `bad-config`, also when it cannot listen:
 * another Leporello on the port has `portUserMs` milliseconds to say so, and each check of the page's set-up view as many.
 */
export async function serve(args: ServeArgs, terminal: Terminal, portUserMs = 5_000): Promise<number> {
  const { config, dataDir, unknownVariables } = await loadConfig(args.settings, terminal);
  const log = createLog(terminal, config.logLevel);
  const memory = await openStoreOrFallBack(dataDir, terminal.env, config.memory);
  const cache = cacheFolder(terminal.env);
  if (cache !== undefined) provideVocabularies(vocabulariesIn(cache));
  if (config.limits.cacheMb < smallCacheMb) setGcFlags(smallHeapFlagsFor(process.versions.v8));
  const upstream = undiciUpstream();
  const thread = openFoldThread(config);
  const metrics = prometheusMetrics();
  const traces = config.tracing ? await openTraces() : undefined;
  const archive = receiptArchive();
  const settings = gatewaySettings(config);
  const place = memory.lost === undefined ? placeOf(config, dataDir) : undefined;
  const warnings = warningsOf(config, memory, unknownVariables);
  const wraps = wrapsOf(args, config, memory.secret, place, warnings);
  // The port of the gateway, which is known for sure only when it listens.
  let { port } = config;
  const home = homeOf(terminal.env);
  const command = (words: string) => gatewayCommand(words, { port, dataDir, home });
  const stopped = whenStopped(terminal);
  const warming = createBackgroundWarmUp();
  try {
    const handler = assembleGateway(settings, {
      store: memory.store,
      secret: memory.secret,
      upstream,
      log,
      metrics,
      ...(traces && { tracing: traces.tracing }),
      archive,
      pageClients: {
        snippets: (url) => clientSnippets(url, command('wrap claude')),
        async findings() {
          const { checksOf } = await import('../doctor/doctor.ts');
          return checksOf({ config: { ...config, port }, dataDir, unknownVariables }, terminal, portUserMs);
        },
      },
      onReceipt: wraps.onReceipt,
      ...(thread && { foldThread: thread }),
      whenIdle: idleMoment,
    });
    // The first request would load this: its client would wait longer than one that waits for the port.
    await Promise.all([upstream.load(), warmUp(usualModel, undefined, 1)]);
    const server = await listen(wraps.watched(withRequestLog(warming.watched(handler), log)), config, {
      log,
      portUserMs,
      home,
    });
    ({ port } = server);
    warming.start(async (pause) => {
      await metrics.page({ summariesRunning: 0 });
      await warmUp(usualModel, pause);
      // After the main thread, which would otherwise be slower: many machines have two cores.
      await thread?.warmUp(usualModel);
      await pause();
      if (cache !== undefined) await saveVocabulary(cache, 'o200k_base', await loadVocabulary('o200k_base'));
      await pause();
      saveCode();
    });
    await terminal
      .out(startText(server, args.json, { place, store: memory.store.name, command }))
      .catch(() => undefined);
    for (const { fields, message } of warnings) log.warn(fields, message);
    await Promise.race([stopped.first, wraps.unused]);
    wraps.end();
    await drain(server, stopped, config.limits.drainMs, log, archive);
    return 0;
  } finally {
    stopped.forget();
    wraps.end();
    await warming.stop();
    // No client waits any more. Only background summaries may still be in progress.
    await upstream.cut();
    await archive.close();
    await thread?.close();
    await memory.store.close();
    await traces?.close();
  }
}

/** Names the packages that send traces. Few gateways need them, so the user installs them. */
const tracePackages =
  '@opentelemetry/sdk-trace @opentelemetry/exporter-trace-otlp-http @opentelemetry/resources';

/** Milliseconds that the last traces have to reach their collector. */
const lastTracesMs = 3_000;

/** Opens the tracing that sends to a collector. The exporter and the resource read the variables of OpenTelemetry. */
async function openTraces(): Promise<{ readonly tracing: GatewayTracing; close(): Promise<void> }> {
  try {
    const [
      sdk,
      otlp,
      { defaultResource, detectResources, envDetector, resourceFromAttributes },
      { openTelemetryTracing },
    ] = await Promise.all([
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
      import('../../gateway/tracing/open-telemetry.ts'),
    ]);
    const own = resourceFromAttributes({ 'service.name': 'leporello', 'service.version': packageVersion() });
    const provider = new sdk.TracerProvider({
      resource: defaultResource()
        .merge(own)
        .merge(detectResources({ detectors: [envDetector] })),
      spanProcessors: [new sdk.BatchSpanProcessor({ exporter: new otlp.OTLPTraceExporter() })],
    });
    return {
      tracing: openTelemetryTracing(provider.getTracer('leporello', packageVersion())),
      close: () => waitAtMost(provider.shutdown(), lastTracesMs),
    };
  } catch (cause) {
    const isMissing = cause instanceof Error && 'code' in cause && cause.code === 'ERR_MODULE_NOT_FOUND';
    if (!isMissing) throw cause;
    throw new LeporelloError(
      'bad-config',
      `tracing is true, but its packages are not installed: run npm install ${tracePackages}, or set tracing to false.`,
      { cause },
    );
  }
}

/** Creates the part of the gateway that serves `leporello wrap`. */
function wrapsOf(
  { forWraps }: ServeArgs,
  config: Config,
  secret: Uint8Array,
  store: string | undefined,
  warnings: readonly StartWarning[],
): ReturnType<typeof createWraps> {
  const { allowedHosts, tenant, urls } = gatewaySettings(config);
  return createWraps({
    secret,
    allowedHosts,
    endsWithWraps: forWraps,
    isRunning,
    state: {
      leporello: packageVersion(),
      pid: process.pid,
      since: Date.now(),
      mode: config.mode,
      store,
      tenant: typeof tenant === 'string' ? tenant : JSON.stringify(tenant),
      urls: { ...defaultUpstreams, ...urls },
      warnings: warnings.map(({ message, detail }) => [message, ...detail].join(': ')),
    },
  });
}

/** True if the process exists, also if it belongs to another user. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
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

/** Waits for the requests in progress. A second signal cuts them off. */
async function drain(
  server: NodeServer,
  stopped: StopSignals,
  drainMs: number,
  log: Log,
  archive: ReceiptArchive,
): Promise<void> {
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
  const first = withResolvers<void>();
  const second = withResolvers<void>();
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

function startText(
  server: NodeServer,
  json: boolean,
  {
    place,
    store,
    command,
  }: {
    readonly place: string | undefined;
    readonly store: string;
    readonly command: (words: string) => string;
  },
): string {
  const url = urlFor(server);
  if (json) {
    const data = store === 'sqlite' && place !== undefined ? place : null;
    return `${JSON.stringify({ url, host: server.host, port: server.port, store, data })}\n`;
  }
  const memory = place === undefined ? 'store: only in this process' : `store: ${place}`;
  return `Leporello listens on ${url}   ${memory}\n\n${clientHelp(url, command)}\n`;
}

/** A warning of the start. `detail` is what its sentence needs of the fields. */
type StartWarning = {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
  readonly detail: readonly string[];
};

/** Returns what the log warns of at the start, and what `leporello wrap` prints, whose gateway has no terminal. */
function warningsOf(
  { host }: Config,
  { lost, away, hasOtherSecret }: StoreProblems,
  unknown: readonly string[],
): readonly StartWarning[] {
  const warnings: StartWarning[] = [];
  if (lost !== undefined)
    warnings.push({
      fields: { reason: lost },
      message:
        'the data folder cannot be used: originals and folds are kept in memory and lost when this process ends',
      detail: [lost],
    });
  if (away !== undefined)
    warnings.push({
      fields: { reason: away },
      message:
        'the store cannot be used now: until it can, requests are folded only when they would not fit the window',
      detail: [away],
    });
  if (hasOtherSecret === true)
    warnings.push({
      fields: { variable: 'LEPORELLO_SECRET' },
      message:
        'the store was written with another secret, so what it holds from then cannot be read: set LEPORELLO_SECRET to that secret or restore the file secret in the data folder',
      detail: [],
    });
  if (!isLoopback(host))
    warnings.push({
      fields: { host },
      message:
        'other machines can reach this address: anyone there can send requests through it, and keys are sent unencrypted; use a TLS proxy in front, or listen on 127.0.0.1',
      detail: [],
    });
  if (unknown.length > 0)
    warnings.push({
      fields: { variables: unknown },
      message: 'unknown variables are ignored',
      detail: [unknown.join(', ')],
    });
  return warnings;
}
