/**
 * Serves one model call: read the body, fold, send, relay the response, write the receipt. If preparing the request fails, the client's
 * own bytes are sent; a failure of the upstream, or in the middle of a response, is reported to the client as an error.
 */
import type { EngineRequest, PreparedRequest } from '../engine/types.ts';
import { passThrough } from '../engine/report.ts';
import { LeporelloError } from '../errors.ts';
import {
  type GatewayRequest,
  type GatewayResponse,
  type HeaderList,
  type Upstream,
  answer,
  headerOf,
  headersToUpstream,
  problemResponse,
  splitUrl,
  upstreamProblem,
  withHeaders,
} from './http/http.ts';
import { type AnsweredRequest, pauseUnless, sendPrepared } from './send-with-retries.ts';
import { type ReceivedBody, peekBody, readBody, unpackBody } from './http/body.ts';
import {
  type OpenReceipt,
  type CostTracker,
  type Prices,
  type ReceiptLog,
  type GatewayLog,
  type GatewayMetrics,
  maxNameLength,
  openReceipt,
  logCompressions,
  logFold,
} from './receipts/receipts.ts';
import type { ReceiptArchive } from './receipts/archive.ts';
import { type Exchange, type RecallLimits, relayStream, relayWhole } from './recall-loop.ts';
import { type Route, type UpstreamUrls, promptUrl } from './routing/routes.ts';
import { type BackgroundSummarizer, addSummaryReceipt } from './background-summarizer.ts';
import type { Engine } from '../engine/types.ts';
import type { FoldSettings } from '../library/default-engine.ts';
import type { PageClients } from '../page/setup.ts';
import type { Controls } from '../store/controls.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import type { ReceiptTotals } from '../receipts/totals.ts';
import { type TenantRule, sessionOf } from './routing/tenant.ts';

type ModelRoute = Route & { readonly kind: 'model' | 'count' };

/** A model call in progress. */
type ModelCall = {
  readonly options: GatewayOptions;
  readonly request: GatewayRequest;
  readonly route: ModelRoute;
  readonly engineRequest: EngineRequest;
  readonly received: ReceivedBody;
  /** Time at which the whole body had arrived, in milliseconds since the epoch. */
  readonly started: number;
  readonly send: Exchange['send'];
};

/** Serves a model call, or a request that counts tokens. */
export async function serveModel(
  options: GatewayOptions,
  request: GatewayRequest,
  route: ModelRoute,
  tenant: string,
): Promise<GatewayResponse> {
  let received: ReceivedBody;
  try {
    const wire = await readBody(request.body, options.maxBodyBytes);
    received = await unpackBody(request.headers, wire, options.maxBodyBytes);
  } catch (error) {
    if (!LeporelloError.isInstance(error) || error.code !== 'body-too-large') throw error;
    return problemResponse(route.codec, { status: 413, message: error.message }, []);
  }
  const { body } = received;
  const controls = await options.controls?.find(tenant);
  const engineRequest = {
    codec: route.codec,
    body,
    tenant,
    upstream: splitUrl(route.url).origin,
    ...(controls && { controls }),
  };
  const started = options.clock();
  const send = sender(options, request, route, received);
  return forward({ options, request, route, engineRequest, received, started, send });
}

async function forward(call: ModelCall): Promise<GatewayResponse> {
  const { options, route } = call;
  const prepared = await prepare(call);
  const preparedAt = options.clock();
  let sent: AnsweredRequest;
  try {
    sent = await sendPrepared({
      codec: route.codec,
      body: call.engineRequest.body,
      prepared,
      send: call.send,
      prepareAgain: (refusal) =>
        options.engine.prepare({
          ...call.engineRequest,
          refusal,
          leftMs: timeLeft(options.prepareDeadlineMs),
        }),
      disableFolding: () => options.engine.disableFolding(call.engineRequest),
    });
  } catch (error) {
    const receipt = await receiptOf(call, prepared, preparedAt);
    return failed(call, receipt, error);
  }
  const receipt = await receiptOf(call, sent.prepared, preparedAt);
  receipt.note.upstreamStatus(sent.response.status);
  if (sent.response.status === 200) startSummary(call, sent.prepared, receipt);
  return respond(call, sent, receipt);
}

async function prepare({ options, request, engineRequest, received }: ModelCall): Promise<PreparedRequest> {
  if (headerOf(request.headers, 'x-leporello-bypass') === '1') {
    const prepared = await options.engine.unfolded(
      engineRequest,
      { status: 'untouched', reason: 'bypass' },
      bypassWaitMs,
    );
    // A bypassed request calibrates the counter too; it is read and counted only after its reply has arrived.
    return {
      ...prepared,
      reportPromptTokens: (reported) => void options.engine.reportPromptTokens(engineRequest, reported),
    };
  }
  if (received.unreadReason !== undefined)
    return passThrough(received.body, { status: 'untouched', reason: received.unreadReason });
  return options.engine.prepare({ ...engineRequest, leftMs: timeLeft(options.prepareDeadlineMs) });
}

/** Returns a function that says how many milliseconds are left of a deadline that starts now. */
function timeLeft(deadlineMs: number): () => number {
  const end = performance.now() + deadlineMs;
  return () => end - performance.now();
}

/** Milliseconds that a bypassed request waits at most for the store to resolve the reply it continues. */
const bypassWaitMs = 500;

async function respond(
  call: ModelCall,
  { prepared, response }: AnsweredRequest,
  receipt: OpenReceipt,
): Promise<GatewayResponse> {
  const { options, route, send } = call;
  const { codec, kind } = route;
  const exchange: Exchange = {
    codec,
    prepared,
    recall: options.recall,
    send,
    hasLeft: () => call.request.signal.aborted,
    pause: (ms) => pauseUnless(call.request.signal, ms),
    note: receipt.note,
  };
  const type = headerOf(response.headers, 'content-type') ?? '';
  if (response.status === 200 && kind === 'model' && type.startsWith('text/event-stream')) {
    return answer(response, 'changed', receipt.headers, receipt.closing(relayStream(exchange, response)));
  }
  if (response.status === 200 && kind === 'model' && /\bjson\b/.test(type)) {
    try {
      const last = await relayWhole(exchange, response);
      const body = last.body instanceof Uint8Array ? last.body : receipt.closing(last.body);
      if (body === last.body) receipt.close();
      return answer(last.response, 'changed', receipt.headers, body);
    } catch (error) {
      return failed(call, receipt, error);
    }
  }
  const { unfit: oversize } = prepared.report;
  if (response.status >= 400 && oversize !== undefined)
    return explained(call, { prepared, response }, receipt, oversize);
  return answer(response, 'same', receipt.headers, receipt.closing(response.body));
}

/** Adds to the provider's "too long" error which part of the request is too large, for a request that could not be folded into the window. */
async function explained(
  { route: { codec } }: ModelCall,
  { response }: AnsweredRequest,
  receipt: OpenReceipt,
  oversize: string,
): Promise<GatewayResponse> {
  const { text, body } = await peekBody(response.body, maxErrorBytes);
  const overflows = text !== undefined && codec.overflowIn(response.status, text) !== undefined;
  if (!overflows) return answer(response, 'same', receipt.headers, receipt.closing(body));
  receipt.close();
  const error = codec.explainError(
    new TextEncoder().encode(text),
    `Leporello could not fold the request any further: ${oversize}`,
  );
  return answer(response, 'changed', receipt.headers, error);
}

/** Bytes of an error body that are read at most. Providers send a few hundred. */
const maxErrorBytes = 1024 * 1024;

/** Starts to write the summary that a later fold will need. Nothing waits for it, and it continues after the client disconnects. */
function startSummary(
  { options, request, route, engineRequest }: ModelCall,
  { summary, report }: PreparedRequest,
  { id, session }: OpenReceipt,
): void {
  const { summaries: summarizer } = options;
  if (!summarizer || !summary || route.kind !== 'model') return;
  const model = summarizer.modelFor(report.model);
  const startedSummary = {
    tenant: engineRequest.tenant,
    at: options.clock(),
    path: pathOf(request),
    session,
    // The receipt of the request after which the summary is started.
    behind: id,
    model: model?.slice(0, maxNameLength),
    tokensBefore: summary.tokens,
  };
  const url = promptUrl(route.url, model);
  const headers = unpacked(upstreamHeaders(request));
  summarizer.start({
    job: summary,
    codec: engineRequest.codec,
    model,
    send: (body, signal) =>
      options.upstream.send({ method: 'POST', url, headers, body, signal, decode: true }),
    ended: (end) => void addSummaryReceipt(options, startedSummary, end),
  });
}

function failed({ route }: ModelCall, receipt: OpenReceipt, error: unknown): GatewayResponse {
  const problem = upstreamProblem(error);
  receipt.note.problem(problem.message);
  receipt.close();
  return problemResponse(route.codec, problem, receipt.headers);
}

/**
 * Sends a body upstream. An unchanged body is sent as the client sent it, compressed or not; a changed body is sent uncompressed. The
 * response is requested uncompressed, because it is read; some upstreams compress it anyway, and then it is decompressed.
 */
function sender(
  options: GatewayOptions,
  request: GatewayRequest,
  route: ModelRoute,
  received: ReceivedBody,
): Exchange['send'] {
  const all = upstreamHeaders(request);
  const unchanged = { headers: all, body: received.wire };
  const headers = unpacked(all);
  const { method, signal } = request;
  return (body) => {
    const sent = body === received.body ? unchanged : { headers, body };
    return options.upstream.send({ method, url: route.url, ...sent, signal, decode: true });
  };
}

/** Returns the headers for a body that the gateway wrote, which is not compressed. */
function unpacked(headers: HeaderList): HeaderList {
  return headers.filter(([name]) => name !== 'content-encoding');
}

function upstreamHeaders(request: GatewayRequest): HeaderList {
  return withHeaders(headersToUpstream(request.headers, 'changed'), [['accept-encoding', 'identity']]);
}

/** Returns the path without its query, which can contain keys. */
function pathOf({ target }: GatewayRequest): string {
  return target.split('?')[0] ?? '/';
}

async function receiptOf(
  { options, request, route, engineRequest, started }: ModelCall,
  prepared: PreparedRequest,
  preparedAt: number,
): Promise<OpenReceipt> {
  const receipt = openReceipt(options, {
    tenant: engineRequest.tenant,
    prepared,
    session: sessionOf(request.headers),
    path: pathOf(request),
    format: route.codec.name,
    isModelCall: route.kind === 'model',
    prices: await options.prices(),
    started,
    preparedAt,
  });
  const { outcome, report } = prepared;
  if (report.unstableFrom !== undefined) {
    options.log.warn(
      { receipt: receipt.id, message: report.unstableFrom },
      'the sent prefix changed without a fold, so the provider could not use its cache for it',
    );
  }
  logFold(options.log, receipt.id, report);
  logCompressions(options.log, receipt.id, report);
  const problem = outcome.status === 'failed' ? outcome.reason : prepared.problem;
  if (problem !== undefined) {
    receipt.note.problem(problem);
    options.log.warn(
      { receipt: receipt.id, reason: problem },
      'the request was sent without a new fold, or its fold could not be stored',
    );
  }
  return receipt;
}

// Dependencies of the gateway's core: its parts, limits, clock and source of ids

export type GatewayOptions = {
  readonly engine: Engine;
  readonly encryptedStore: EncryptedStore;
  /** The settings of the engine. */
  readonly foldSettings: FoldSettings;
  readonly upstream: Upstream;
  readonly urls: UpstreamUrls;
  readonly receipts: ReceiptLog;
  /** Keeps receipts beyond the process; undefined when they end with it. */
  readonly archive: ReceiptArchive | undefined;
  readonly pageClients: PageClients | undefined;
  /** Decisions of users; undefined when there is no page to decide on. */
  readonly controls: Controls | undefined;
  readonly totals: ReceiptTotals;
  readonly prices: Prices;
  readonly costs: CostTracker;
  /** Metrics of the gateway; undefined when none are kept. */
  readonly metrics: GatewayMetrics | undefined;
  /** True to show metrics to anyone when there is no `adminToken`. */
  readonly openMetrics: boolean;
  readonly log: GatewayLog;
  /** Writes summaries ahead of the folds that need them; undefined when no model writes summaries. */
  readonly summaries: BackgroundSummarizer | undefined;
  readonly recall: RecallLimits;
  /** Bytes of a request body at most. Larger bodies are answered with 413. */
  readonly maxBodyBytes: number;
  /**
   * Milliseconds that a request waits for the store, and for a fold that only saves money. After that, known folds are repeated, and only a
   * fold that the request needs to fit is made.
   */
  readonly prepareDeadlineMs: number;
  /** Credential that shows the receipts and originals of all tenants. */
  readonly adminToken: string | undefined;
  /** Decides which tenant each request belongs to. */
  readonly tenants: TenantRule;
  /** Host names (without a port) that requests may be addressed to; undefined allows any. Protects a loopback gateway from web pages. */
  readonly allowedHosts: readonly string[] | undefined;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly newId: () => string;
};
