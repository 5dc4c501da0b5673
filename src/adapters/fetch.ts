/**
 * Public entry `leporello/fetch`: the gateway inside a `fetch`, for every SDK that accepts one. A model call is folded and its recalls are
 * answered on the way to the URL that the SDK calls; any other request passes through untouched.
 */
import { type Check, type Checks, allowed, checkSettings, listOf, object, secretFor } from '../checks.ts';
import type { Codec } from '../codecs/codec.ts';
import { LeporelloError } from '../errors.ts';
import { type GatewaySettings, gatewayChecks, gatewayParts } from '../gateway/app.ts';
import { fetchUpstream, toResponse } from '../gateway/http/fetch.ts';
import { type Upstream, splitUrl } from '../gateway/http/http.ts';
import { serveModel } from '../gateway/model-call.ts';
import type { GatewayOptions } from '../gateway/options.ts';
import type { GatewayLog } from '../gateway/receipts/metrics.ts';
import type { AnyReceipt } from '../gateway/receipts/receipts.ts';
import { callOf, modelPaths } from '../gateway/routing/routes.ts';
import { storeChecks } from '../library/settings.ts';
import { type Leporello, isTriggerList, strategyList, triggersCheck } from '../library/leporello.ts';
import { tenantCheck } from './lib/options.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import type { Store } from '../store/store.ts';
import type { StrategyChoice } from '../strategies/by-name.ts';
import { strategiesIn } from '../strategies/default-strategies.ts';
import type { Strategy } from '../strategies/strategy.ts';
import type { TriggerSettings } from '../triggers/default-triggers.ts';
import type { Trigger } from '../triggers/trigger.ts';

export type { AnyReceipt } from '../gateway/receipts/receipts.ts';
export type { Receipt } from '../receipts/receipt.ts';

type PlatformFetch = typeof globalThis.fetch;

/** Settings of the gateway that have no meaning without a server. */
type ServerSettings =
  | 'urls'
  | 'adminToken'
  | 'openMetrics'
  | 'allowedHosts'
  | 'tenant'
  | 'triggers'
  | 'strategies';

/** Options of the fetch: the settings of folding, as in docs/configuration.md, and the following. */
export type LeporelloFetchOptions = Omit<GatewaySettings, ServerSettings> & {
  /** Sends the requests. Default: the platform's `fetch`. */
  readonly fetch?: PlatformFetch;
  /** Only URLs that begin with one of these are folded, such as `https://api.openai.com/v1`. Default: every model call. */
  readonly baseUrls?: readonly string[];
  /** The triggers: settings, or a list in the order of priority. */
  readonly triggers?: TriggerSettings | readonly Trigger[];
  /** The strategies, least harm first: strategies, or names with options. Default: `defaultStrategies()`. */
  readonly strategies?: readonly (Strategy | StrategyChoice)[];
  /** Keeps originals and folds. Default: in this process, at most 128 MiB. */
  readonly store?: Store;
  /** At least 32 bytes, the same on every start: ids and encryption keys are derived from it. Required with a `store`; random without one. */
  readonly secret?: Uint8Array;
  /** The owner of originals and folds: 1 to 64 of a-z, 0-9 and -. Default `local`. */
  readonly tenant?: string;
  /** Is called with the receipt of each model call, after its response has ended. */
  readonly onReceipt?: (receipt: AnyReceipt) => void;
  /** Writes the log. It never contains content or keys. Default: nothing is logged. */
  readonly log?: GatewayLog;
};

/**
 * Creates a `fetch` that folds model calls: Chat Completions, Responses, Messages and Gemini, at any host. Everything else is given to
 * `options.fetch` as it is. It rejects as that `fetch` does, and returns the provider's errors unchanged. Throws `bad-config` for options that
 * are unknown or not allowed.
 *
 * @example
 * const client = new OpenAI({ fetch: createLeporelloFetch() });
 */
export function createLeporelloFetch(options: LeporelloFetchOptions = {}): PlatformFetch {
  if (typeof (options as Partial<Leporello>).prepare === 'function')
    throw new LeporelloError(
      'bad-config',
      'The options are what createLeporello() returned. Pass the options of createLeporello() themselves, such as models and store.',
    );
  checkSettings(fetchCheck, options);
  const {
    fetch: send = globalThis.fetch.bind(globalThis),
    baseUrls,
    triggers,
    strategies,
    store = inMemoryStore(),
    secret,
    tenant = 'local',
    onReceipt,
    log = silent,
    ...settings
  } = options;
  const parts = gatewayParts(
    { ...settings, tenant, ...(triggers && !isTriggerList(triggers) && { triggers }) },
    {
      store,
      secret: secretFor(options.store, secret),
      upstream: fetchUpstream(send),
      log,
      ...(onReceipt && { onReceipt }),
    },
    {
      ...(strategies && { strategies: strategiesIn({ ...settings, strategies }) }),
      ...(isTriggerList(triggers) && { triggers }),
    },
  );
  return async function leporelloFetch(input, init) {
    const call = modelCallAt(input, init, baseUrls);
    return call === undefined ? send(input, init) : fold(parts, tenant, call, { send, input, init });
  };
}

/** An SDK's client that can be copied with another `fetch`, such as those of `openai` and `@anthropic-ai/sdk`. */
type CopyableClient = { withOptions(options: { fetch: PlatformFetch }): unknown };

/**
 * Returns a copy of an SDK's client that sends its requests through `createLeporelloFetch`. The client itself stays as it is. The copy sends
 * with the client's own `fetch`, unless `options.fetch` is given. Throws `bad-config` for a client that cannot be copied.
 *
 * @example
 * const client = wrap(new Anthropic());
 */
export function wrap<Client extends CopyableClient>(
  client: Client,
  options: LeporelloFetchOptions = {},
): Client {
  if (typeof (client as Partial<CopyableClient> | undefined)?.withOptions !== 'function')
    throw new LeporelloError(
      'bad-config',
      'The client has no function withOptions, so it cannot be wrapped. Pass createLeporelloFetch() as its option fetch instead.',
    );
  const { fetch: own } = client as { readonly fetch?: PlatformFetch };
  const fetch = createLeporelloFetch({ ...(typeof own === 'function' && { fetch: own }), ...options });
  return client.withOptions({ fetch }) as Client;
}

const silent: GatewayLog = { info: () => undefined, warn: () => undefined };

// Which requests are model calls

type CalledModel = { readonly url: string; readonly kind: 'model' | 'count'; readonly codec: Codec };

/** Returns the model call that a request makes; undefined for any other request, which passes through. */
function modelCallAt(
  input: Parameters<PlatformFetch>[0],
  init: RequestInit | undefined,
  baseUrls: readonly string[] | undefined,
): CalledModel | undefined {
  const request = input instanceof Request ? input : undefined;
  // A Request of another implementation cannot be read here.
  if (request === undefined && typeof input !== 'string' && !(input instanceof URL)) return undefined;
  const url = urlOf(typeof input === 'string' ? input : input instanceof URL ? input.href : input.url);
  if (url === undefined || !/^https?:$/.test(url.protocol)) return undefined;
  if (baseUrls && !baseUrls.some((base) => isUnder(url.href, base))) return undefined;
  const headers = new Headers(init?.headers ?? request?.headers);
  const method = (init?.method ?? request?.method ?? 'GET').toUpperCase();
  const path = callPathIn(url.pathname, headers);
  const call = path === undefined ? undefined : callOf(method, path, url.search.slice(1));
  if (call === undefined || call.kind === 'pass') return undefined;
  url.hash = '';
  return { url: url.href, kind: call.kind, codec: call.codec };
}

/** Parses a URL. In a browser, it may be relative to the page. */
function urlOf(text: string): URL | undefined {
  const { location } = globalThis as { readonly location?: { readonly href: string } };
  return URL.canParse(text, location?.href) ? new URL(text, location?.href) : undefined;
}

function isUnder(href: string, base: string): boolean {
  const trimmed = new URL(base).href.replace(/\/$/, '');
  return href.startsWith(trimmed) && /^(?:[/?#]|$)/.test(href.slice(trimmed.length));
}

/**
 * Returns the part of a path that names the call, as the providers themselves spell it. In front of it, other hosts have a path of their own:
 * `/api/v1`, `/openai/deployments/NAME`, `/v1/projects/ID/locations/PLACE`. A path that other APIs have, too, such as `/messages`, counts only after
 * a version or with the header of its clients.
 */
function callPathIn(path: string, headers: Headers): string | undefined {
  const known = modelPaths.find((one) => path.endsWith(one.path));
  if (known) {
    const { header } = known;
    const isVersion = /\/v\d+$/.test(path.slice(0, -known.path.length));
    return header === undefined || isVersion || headers.has(header) ? known.path : undefined;
  }
  const gemini = /\/(?:models|tunedModels)\/[^/:]+:\w+$/.exec(path);
  return gemini && !/\/publishers\/(?!google\/)/.test(path) ? `/v1${gemini[0]}` : undefined;
}

// Sending a model call

type Sending = {
  readonly send: PlatformFetch;
  readonly input: Parameters<PlatformFetch>[0];
  readonly init: RequestInit | undefined;
};

/** Sends a model call through the gateway's code. Rejects as `send` does. */
async function fold(
  parts: GatewayOptions,
  tenant: string,
  { url, kind, codec }: CalledModel,
  { send, input, init }: Sending,
): Promise<Response> {
  const request = new Request(input, init);
  const body = new Uint8Array(await request.arrayBuffer());
  const others = otherOptions(input, init);
  if (body.length > parts.maxBodyBytes)
    return send(url, {
      ...others,
      method: request.method,
      headers: request.headers,
      body,
      signal: request.signal,
    });
  const gone = new AbortController();
  const signal = AbortSignal.any([request.signal, gone.signal]);
  let failure: { readonly error: unknown } | undefined;
  const platform = fetchUpstream((to, how) => send(to, { ...how, ...others }));
  const upstream: Upstream = {
    ...platform,
    async send(sent) {
      // A summary in the background is sent with a signal of its own: this call does not depend on it.
      if (sent.signal !== signal) return platform.send(sent);
      failure = undefined;
      try {
        return await platform.send(sent);
      } catch (error) {
        failure = { error: originalOf(error) };
        throw error;
      }
    },
  };
  const response = await serveModel(
    { ...parts, upstream },
    {
      method: request.method,
      target: splitUrl(url).target,
      headers: [...request.headers],
      body: (async function* whole() {
        yield await Promise.resolve(body);
      })(),
      signal,
    },
    { kind, codec, url },
    tenant,
  );
  // The SDK handles a failed connection and an abort itself. It would take the gateway's own error for the provider's.
  if (failure !== undefined) throw failure.error;
  const { body: served } = response;
  const isWhole = served === undefined || served instanceof Uint8Array;
  if (isWhole) request.signal.throwIfAborted();
  const answer = await toResponse(
    isWhole ? response : { ...response, body: failingAsFetch(served, request.signal) },
    request.method,
    () => gone.abort(),
  );
  // SDKs name the URL in their errors. A constructed response has none.
  Object.defineProperty(answer, 'url', { value: url });
  return answer;
}

/** Returns the same body. If reading it fails, the error is that of the platform's `fetch`: for an abort its reason. */
function failingAsFetch(body: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const chunks = body[Symbol.asyncIterator]();
      return {
        next: () =>
          chunks.next().catch((error) => {
            signal.throwIfAborted();
            throw originalOf(error);
          }),
        async return() {
          await chunks.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

/** Returns the platform's error, which the upstream has put into one of ours. */
function originalOf(error: unknown): unknown {
  return (LeporelloError.isInstance(error) && error.cause) || error;
}

/** Options of a request that the platform's `fetch` takes besides method, headers, body and signal, such as `redirect` or Node's `dispatcher`. */
function otherOptions(input: Parameters<PlatformFetch>[0], init: RequestInit | undefined): RequestInit {
  const own = { ...init };
  for (const name of ['method', 'headers', 'body', 'signal', 'duplex']) delete own[name as keyof RequestInit];
  if (!(input instanceof Request)) return { redirect: 'follow', ...own };
  const { cache, credentials, integrity, keepalive, mode, redirect, referrerPolicy } = input;
  return { cache, credentials, integrity, keepalive, mode, redirect, referrerPolicy, ...own };
}

// Checks of the options

const { urls: _1, adminToken: _2, openMetrics: _3, allowedHosts: _4, ...sharedChecks } = gatewayChecks;

const isFunction: Check = allowed('a function', (value) => typeof value === 'function');

const checks: Checks<LeporelloFetchOptions> = {
  ...sharedChecks,
  ...storeChecks,
  fetch: isFunction,
  baseUrls: listOf(
    'URLs, such as https://api.openai.com/v1',
    (value) => typeof value === 'string' && URL.canParse(value),
  ),
  triggers: triggersCheck,
  strategies: strategyList,
  tenant: tenantCheck,
  onReceipt: isFunction,
  log: object<GatewayLog>({ info: isFunction, warn: isFunction }, { required: ['info', 'warn'] }),
};

const fetchCheck = object<LeporelloFetchOptions>(checks);
