/**
 * Assembles the gateway from its settings, and guards and routes each request. The gateway turns a request (values and bytes) into a
 * response (values and bytes) and has no transport; model-call.ts serves model calls, admin.ts the gateway's own paths.
 */
import { createCaches, engineCacheMb } from '../caches.ts';
import type { Codec, GatewayProblem } from '../codecs/codec.ts';
import type { Engine } from '../engine/types.ts';
import { answerOwn } from './admin.ts';
import { type BackgroundSummarizer, createBackgroundSummarizer } from './background-summarizer.ts';
import {
  type GatewayRequest,
  type GatewayResponse,
  type Handler,
  type HeaderList,
  type Upstream,
  headerOf,
  headersToClient,
  headersToUpstream,
  jsonResponse,
  problemResponse,
  upstreamProblem,
} from './http/http.ts';
import { type GatewayOptions, serveModel } from './model-call.ts';
import type { ReceiptArchive } from './receipts/archive.ts';
import {
  type AnyReceipt,
  type GatewayLog,
  type GatewayMetrics,
  type ReceiptLog,
  createCostTracker,
  createReceiptLog,
  pricesFrom,
} from './receipts/receipts.ts';
import { type UpstreamUrls, defaultUpstreams, routeOf } from './routing/routes.ts';
import { type TenantSetting, carriesToken, createTenantRule } from './routing/tenant.ts';
import {
  type Checks,
  allowed,
  checkSettings,
  isText,
  listOf,
  object,
  positiveNumber,
  secret as secretValue,
  shown,
  trueOrFalse,
  wholeNumber,
} from '../checks.ts';
import { type EngineOverrides, type FoldSettings, createDefaultEngine } from '../library/default-engine.ts';
import { foldChecks } from '../library/settings.ts';
import { summariesIn } from '../strategies/default-strategies.ts';
import type { PageClients } from '../page/setup.ts';
import { createReceiptTotals } from '../receipts/totals.ts';
import {
  type EncryptedStore,
  createEncryptedStore,
  isTenantLabel,
  tenantWords,
} from '../store/encrypted-store.ts';
import { type KeptReplies, createKeptReplies } from '../store/hidden-recalls.ts';
import { createControls } from '../store/controls.ts';
import type { Store } from '../store/store.ts';
import { loadModelInfo } from '../tokens/models.ts';

/** Creates the handler of all requests. */
function createGateway(options: GatewayOptions): Handler {
  return async function handle(request) {
    const refused = refuseForeign(request, options.allowedHosts);
    if (refused) return refused;
    if (options.archive && wantsPage(request))
      return { status: 302, headers: [['location', '/_leporello/']], body: undefined };
    const route = routeOf(request.method, request.target, request.headers, options.urls);
    if (route.kind !== 'own' && route.kind !== 'refused' && holdsAdminToken(options, request))
      return problemResponse(route.codec, adminTokenProblem, []);
    switch (route.kind) {
      case 'own':
        return answerOwn(options, request, route);
      case 'refused':
        return problemResponse(route.codec, route.problem, []);
      case 'pass':
        return pass(options, forwarded(options, request), route.url, route.codec);
      case 'model':
      case 'count': {
        const tenant = options.tenants.tenantOf(request);
        if (tenant.label === undefined)
          return problemResponse(route.codec, { status: 401, message: tenant.problem }, []);
        return serveModel(options, forwarded(options, request), route, tenant.label);
      }
    }
  };
}

/** True when a person opened the gateway's address in a browser. Programs do not ask for HTML. */
function wantsPage({ method, target, headers }: GatewayRequest): boolean {
  const isFront = method === 'GET' && (target === '/' || target === '/_leporello');
  return isFront && headerOf(headers, 'accept')?.includes('text/html') === true;
}

function forwarded({ tenants }: GatewayOptions, request: GatewayRequest): GatewayRequest {
  return { ...request, headers: tenants.forwarded(request.headers) };
}

/** True when the request contains the admin token, alone or next to another credential. It opens every tenant's originals, so no provider may see it. */
function holdsAdminToken({ adminToken }: GatewayOptions, request: GatewayRequest): boolean {
  return adminToken !== undefined && carriesToken(request, adminToken);
}

const adminTokenProblem: GatewayProblem = {
  status: 401,
  message:
    "The request was not sent: it contains this gateway's adminToken, which is only for /_leporello/* and /metrics. Send the provider's own key.",
};

/** Streams the request and the response through, without reading or buffering either. */
async function pass(
  options: GatewayOptions,
  request: GatewayRequest,
  url: string,
  codec: Codec,
): Promise<GatewayResponse> {
  try {
    const response = await options.upstream.send({
      method: request.method,
      url,
      headers: headersToUpstream(request.headers, 'same'),
      body: request.body,
      signal: request.signal,
    });
    return {
      status: response.status,
      headers: headersToClient(response.headers, 'same'),
      body: response.body,
    };
  } catch (error) {
    return problemResponse(codec, upstreamProblem(error), []);
  }
}

/**
 * Returns a refusal for a request that is addressed to an unknown host name or sent by a web page of another host; undefined when the
 * request may pass. A web page can make a browser send requests to 127.0.0.1 and, through a name of its own that resolves there (DNS
 * rebinding), even read the answers. Programs send no Origin, and address the host they mean.
 */
export function refuseForeign(
  { headers }: GatewayRequest,
  allowedHosts: readonly string[] | undefined,
): GatewayResponse | undefined {
  if (allowedHosts === undefined) return undefined;
  const host = hostName(headerOf(headers, 'host') ?? '');
  if (!allowedHosts.includes(host)) {
    return refusal(
      421,
      `This gateway does not serve the host ${JSON.stringify(host.slice(0, 100))}. Add it to allowedHosts if it should.`,
    );
  }
  const origin = headerOf(headers, 'origin');
  // Desktop programs use schemes of their own. Web pages send http, https or, where the browser hides the origin, null.
  const isForeign =
    origin === 'null' ||
    (/^https?:/.test(origin ?? '') && !allowedHosts.includes(hostName(origin!.replace(/^https?:\/\//, ''))));
  return isForeign || isLoadedByPage(headers)
    ? refusal(403, 'This gateway does not answer web pages of other hosts.')
    : undefined;
}

/**
 * True when a page of another site loads this URL as an image, a script or a frame: browsers send no Origin for these. False when a person
 * follows a link.
 */
function isLoadedByPage(headers: HeaderList): boolean {
  if (headerOf(headers, 'origin') !== undefined) return false;
  return (
    headerOf(headers, 'sec-fetch-site') === 'cross-site' && headerOf(headers, 'sec-fetch-dest') !== 'document'
  );
}

function hostName(authority: string): string {
  return authority.replace(/:\d+$/, '').toLowerCase();
}

function refusal(status: number, message: string): GatewayResponse {
  return jsonResponse(status, { error: { type: 'permission_error', message } });
}

// Assembly of the gateway from its settings. Nothing is opened here: the store and the upstream are passed in.

/** Settings of the gateway: those of the engine, and limits, upstreams and access. */
export type GatewaySettings = FoldSettings & {
  /** Base URLs of the upstreams. Default: the providers' own. */
  readonly urls?: Partial<UpstreamUrls>;
  /** Bytes of a request body at most; larger bodies are answered with 413. Default: 64 MiB. */
  readonly maxBodyBytes?: number;
  /** Milliseconds that a request waits for the store and a new fold; then only a fold that it needs to fit is made. Default: 2,000. */
  readonly prepareDeadlineMs?: number;
  /** Limits of recalls: rounds in one request (default 5), and tokens of one answer (default 8,000). */
  readonly recall?: { readonly maxRounds?: number; readonly maxTokens?: number };
  /** Credential that shows the receipts and originals of all tenants; at least 16 characters. It is never sent to a provider. */
  readonly adminToken?: string;
  /**
   * True to show `/metrics`, which covers all tenants, to anyone when there is no `adminToken`. Default: true only when all requests belong
   * to one `tenant`.
   */
  readonly openMetrics?: boolean;
  /** Decides which tenant a request belongs to. Default: `credential`. Use `local` for a gateway that only its user's machine can reach. */
  readonly tenant?: TenantSetting;
  /** Host names, without a port, that requests may be addressed to; others are answered with 421. Default: any. */
  readonly allowedHosts?: readonly string[];
};

/** Parts that the gateway is assembled from: everything that does input or output. */
export type GatewayDeps = {
  readonly store: Store;
  readonly secret: Uint8Array;
  readonly upstream: Upstream;
  readonly log: GatewayLog;
  /** Metrics, such as `prometheusMetrics()`. Default: none. */
  readonly metrics?: GatewayMetrics;
  /** Folds large requests in another thread, such as `foldThread()` of `leporello/gateway/node`. Default: all are folded in this thread. */
  readonly foldThread?: { engineFor(parts: EngineParts): Engine };
  /** Keeps receipts beyond the process, such as `receiptArchive()` of `leporello/gateway/node`. Default: they end with the process. */
  readonly archive?: ReceiptArchive;
  /** How clients connect to a URL of this gateway, for the page. Default: the page does not say. */
  readonly pageClients?: PageClients;
  /** Is called with each receipt, after its response has ended. Its errors are ignored. */
  readonly onReceipt?: (receipt: AnyReceipt) => void;
};

/** Parts from which an engine in another thread is built, over the same store. */
export type EngineParts = {
  /** The engine in the main thread. */
  readonly local: Engine;
  readonly settings: FoldSettings;
  readonly secret: Uint8Array;
  /** The store, without a deadline for its calls. */
  readonly store: Store;
  readonly encryptedStore: EncryptedStore;
  /** Replies that the local engine has recorded. */
  readonly keptReplies: KeptReplies;
  readonly log: GatewayLog;
};

/** Returns the gateway as a handler of requests. Throws `bad-config` for settings that are unknown or not allowed. */
export function assembleGateway(settings: GatewaySettings, deps: GatewayDeps): Handler {
  checkSettings(gatewayCheck, settings);
  return createGateway(gatewayParts(settings, deps));
}

/** Creates the parts of a gateway. The settings must have been checked. `engineParts` replace those of the settings. */
export function gatewayParts(
  settings: GatewaySettings,
  deps: GatewayDeps,
  engineParts: Pick<EngineOverrides, 'strategies' | 'triggers'> = {},
): GatewayOptions {
  const { memoryTtlMs: ttlMs, storeDeadlineMs, cacheMb = defaultCacheMb } = settings;
  // The main thread and the two threads that fold large bodies have an engine each.
  const engineMb = deps.foldThread ? cacheMb / 3 : cacheMb;
  const caches = createCaches(engineMb);
  const encryptedStore = createEncryptedStore({
    store: deps.store,
    secret: deps.secret,
    ttlMs,
    storeDeadlineMs,
    caches,
  });
  const keptReplies = createKeptReplies({ encryptedStore, ttlMs, caches });
  const engineSettings = { ...foldSettings(settings), cacheMb: engineMb };
  const local = createDefaultEngine(engineSettings, encryptedStore, { ...engineParts, keptReplies });
  const { store, secret, log, foldThread, archive } = deps;
  archive?.open({ encryptedStore, log });
  return {
    engine:
      foldThread?.engineFor({
        local,
        settings: engineSettings,
        secret,
        store,
        encryptedStore,
        keptReplies,
        log,
      }) ?? local,
    encryptedStore,
    foldSettings: engineSettings,
    upstream: deps.upstream,
    urls: { ...defaultUpstreams, ...settings.urls },
    receipts: reportedTo(deps, createReceiptLog()),
    archive,
    pageClients: deps.pageClients,
    controls: archive && createControls({ encryptedStore }),
    totals: createReceiptTotals(),
    prices: pricesFrom(settings.usdPerMillionTokens),
    costs: createCostTracker(caches),
    metrics: deps.metrics,
    openMetrics: settings.openMetrics ?? isOneTenant(settings.tenant),
    log: deps.log,
    summaries: backgroundSummarizer(settings, deps.log),
    recall: { maxRounds: settings.recall?.maxRounds ?? 5, maxTokens: settings.recall?.maxTokens ?? 8_000 },
    maxBodyBytes: settings.maxBodyBytes ?? 64 * 1024 * 1024,
    prepareDeadlineMs: settings.prepareDeadlineMs ?? 2_000,
    adminToken: settings.adminToken,
    tenants: createTenantRule(settings.tenant ?? 'credential', encryptedStore),
    allowedHosts: settings.allowedHosts,
    clock: () => performance.timeOrigin + performance.now(),
    newId: () => crypto.randomUUID(),
  };
}

function reportedTo({ onReceipt, archive }: GatewayDeps, receipts: ReceiptLog): ReceiptLog {
  if (onReceipt === undefined && archive === undefined) return receipts;
  return {
    ...receipts,
    add(tenant, receipt, source) {
      receipts.add(tenant, receipt);
      archive?.add(tenant, receipt, source);
      try {
        onReceipt?.(receipt);
      } catch {
        // An error of the caller's own function must not break off the response.
      }
    },
  };
}

/** True when all requests belong to one tenant: then metrics reveal nothing about others. */
function isOneTenant(tenant: TenantSetting | undefined): boolean {
  return typeof tenant === 'string' && tenant !== 'credential';
}

/** True for a text of at least 16 characters: a shorter token could be guessed, and could occur in headers by chance. */
function isAdminToken(value: unknown): boolean {
  return typeof value === 'string' && value.length >= 16;
}

const url = secretValue(
  'an http or https URL without user, query and fragment, such as https://api.example.org/v1',
  isBaseUrl,
  (value) => (typeof value === 'string' ? shown(value.replace(/[^/@]*@/g, '...@')) : shown(value)),
);

/** True for a URL without credentials: these would not be sent, and would show up in error messages. */
function isBaseUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, username, password, search, hash } = new URL(value);
  return /^https?:$/.test(protocol) && `${username}${password}${search}${hash}` === '';
}

/** Megabytes for the caches of a gateway with its threads. */
export const defaultCacheMb = 3 * engineCacheMb;

/** The check of each setting. */
export const gatewayChecks: Checks<GatewaySettings> = {
  ...foldChecks,
  urls: object<UpstreamUrls>(
    Object.fromEntries(Object.keys(defaultUpstreams).map((key) => [key, url])) as Checks<UpstreamUrls>,
  ),
  maxBodyBytes: wholeNumber(1),
  prepareDeadlineMs: positiveNumber,
  recall: object<NonNullable<GatewaySettings['recall']>>({
    maxRounds: wholeNumber(1, 100),
    maxTokens: wholeNumber(1),
  }),
  adminToken: secretValue('a text of at least 16 characters', isAdminToken, () => 'not allowed'),
  openMetrics: trueOrFalse,
  // createTenantRule checks objects and says what is wrong with them.
  tenant: allowed(tenantWords, (value) => typeof value === 'object' || isTenantLabel(value)),
  allowedHosts: listOf('host names without ports', isText),
};

const gatewayCheck = object<GatewaySettings>(gatewayChecks);

/** Returns the settings of the engine, without those of the gateway. */
function foldSettings(settings: GatewaySettings): FoldSettings {
  const others = new Set<keyof GatewaySettings>([
    'urls',
    'maxBodyBytes',
    'prepareDeadlineMs',
    'recall',
    'adminToken',
    'openMetrics',
    'tenant',
    'allowedHosts',
  ]);
  return Object.fromEntries(
    Object.entries(settings).filter(([key]) => !others.has(key as keyof GatewaySettings)),
  );
}

function backgroundSummarizer(settings: GatewaySettings, log: GatewayLog): BackgroundSummarizer | undefined {
  const summaries = summariesIn(settings);
  const { models } = settings;
  if (!summaries || summaries.kind !== 'model') return undefined;
  const { model, deadlineMs = 60_000 } = summaries;
  return createBackgroundSummarizer({
    model,
    deadlineMs,
    infoOf: (name) => loadModelInfo(name, models ?? {}),
    log,
  });
}
