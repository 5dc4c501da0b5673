/**
 * Serves each request: guards and routes it, and serves model calls: read the body, fold, send, relay the response, write the receipt. Values and
 * bytes in, values and bytes out; it has no transport. If preparing a request fails, the client's own bytes are sent; a failure of the
 * upstream, or in the middle of a response, is reported to the client as an error. admin.ts serves the gateway's own paths.
 */
import type { Codec, GatewayProblem } from '../codecs/codec.ts';
import { type EngineRequest, type PreparedRequest, passThrough } from '../engine/types.ts';
import { LeporelloError } from '../errors.ts';
import { answerOwn } from './admin.ts';
import { addSummaryReceipt } from './background-summarizer.ts';
import { type ReceivedBody, maxErrorBytes, peekBody, receiveBody, replyKindOf } from './http/body.ts';
import {
  type GatewayRequest,
  type GatewayResponse,
  type Handler,
  answer,
  headerOf,
  headersToClient,
  headersToUpstream,
  splitUrl,
} from './http/http.ts';
import { logOwnError, problemResponse, upstreamProblem } from './http/problems.ts';
import type { Exchange, GatewayOptions } from './options.ts';
import {
  type OpenReceipt,
  type Resender,
  logCompressions,
  logFold,
  maxNameLength,
  openReceipt,
} from './receipts/receipts.ts';
import { relayStream, relayWhole } from './recall-loop.ts';
import { refuseForeign } from './routing/foreign-pages.ts';
import { asArray, eventsUrl, promptUrl } from './routing/named-model.ts';
import { type Route, routeOf } from './routing/routes.ts';
import { carriesToken, sessionOf } from './routing/tenant.ts';
import {
  type AnsweredRequest,
  pauseUnless,
  sender,
  sendPrepared,
  unpacked,
  upstreamHeaders,
  withoutKey,
} from './send-with-retries.ts';

/** Creates the handler of all requests. */
export function createGateway(options: GatewayOptions): Handler {
  return async function handle(request) {
    const refused = options.allowedHosts && refuseForeign(request, options.allowedHosts);
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
    return problemResponse(codec, upstreamProblem(error, url, options), []);
  }
}

// Model calls

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
  asked: ModelRoute,
  tenant: string,
): Promise<GatewayResponse> {
  const isNamedStream = asked.kind === 'model' && asked.codec.route?.streaming === true;
  const url = isNamedStream ? eventsUrl(asked.url) : asked.url;
  const response = await serve(options, request, { ...asked, url }, tenant);
  return url === asked.url ? response : asArray(response);
}

async function serve(
  options: GatewayOptions,
  request: GatewayRequest,
  route: ModelRoute,
  tenant: string,
): Promise<GatewayResponse> {
  let received: ReceivedBody;
  try {
    received = await receiveBody(request, options.maxBodyBytes);
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
    ...options.experiment?.requestFields(tenant, request.headers),
  };
  const started = options.clock();
  const send = sender(options, request, route.url, received);
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
    return unsent(call, receipt, error);
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
    watchRecall: options.watchRecall,
    send,
    hasLeft: () => call.request.signal.aborted,
    pause: (ms) => pauseUnless(call.request.signal, ms),
    note: receipt.note,
    failed: (error) => logOwnError(options.log, receipt.id, error),
  };
  const isRead = response.status === 200 && kind === 'model';
  const reply = isRead ? replyKindOf(response.headers, codec, prepared.body) : undefined;
  if (reply === 'stream')
    return answer(response, 'changed', receipt.headers, receipt.closing(relayStream(exchange, response)));
  if (reply === 'whole') {
    try {
      const last = await relayWhole(exchange, response);
      const body = last.body instanceof Uint8Array ? last.body : receipt.closing(last.body);
      if (body === last.body) receipt.close();
      return answer(last.response, 'changed', receipt.headers, body);
    } catch (error) {
      return unsent(call, receipt, error);
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
  const headers = withoutKey(unpacked(upstreamHeaders(request)));
  summarizer.start({
    job: summary,
    codec: engineRequest.codec,
    model,
    send: (body, signal) =>
      options.upstream.send({ method: 'POST', url, headers, body, signal, decode: true }),
    ended: (end) => void addSummaryReceipt(options, startedSummary, end).catch(() => undefined),
  });
}

/** Answers a request that did not reach its provider, and closes its receipt. */
function unsent({ route, options }: ModelCall, receipt: OpenReceipt, error: unknown): GatewayResponse {
  const problem = upstreamProblem(error, route.url, options, receipt.id);
  receipt.note.problem(problem.message);
  receipt.close();
  return problemResponse(route.codec, problem, receipt.headers);
}

/** Returns the path without its query, which can contain keys. */
function pathOf({ target }: GatewayRequest): string {
  return target.split('?')[0] ?? '/';
}

/** Returns what sends the request again, after the client has left. */
function resenderOf({ options, request, route, received }: ModelCall): Resender {
  const headers = withoutKey(request.headers);
  const send: Resender['send'] = (body, signal) =>
    sender(options, { ...request, headers, signal }, route.url, received)(body);
  return { headers, send };
}

async function receiptOf(
  call: ModelCall,
  prepared: PreparedRequest,
  preparedAt: number,
): Promise<OpenReceipt> {
  const { options, request, route, engineRequest, started } = call;
  const receipt = openReceipt(options, {
    tenant: engineRequest.tenant,
    prepared,
    request: options.experiment && route.kind === 'model' ? engineRequest : undefined,
    resender: options.experiment && resenderOf(call),
    session: sessionOf(request.headers),
    path: pathOf(request),
    format: route.codec.name,
    isModelCall: route.kind === 'model',
    prices: await options.prices(),
    started,
    preparedAt,
    hasLeft: () => request.signal.aborted,
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

/** Milliseconds by which the time of day may be ahead. */
const maxLagMs = 1_000;

/** Returns a clock of milliseconds since the epoch, finer than `Date.now`, that never goes back. `fine` stands still while the machine sleeps. */
export function openClock(fine: () => number, now: () => number): () => number {
  let origin = now() - fine();
  return () => {
    const passed = fine();
    if (now() - origin - passed > maxLagMs) origin = now() - passed;
    return origin + passed;
  };
}

/** The clock of this process. */
export const clock = openClock(() => performance.now(), Date.now);

/** Makes the id of a receipt. */
export const newId = (): string => crypto.randomUUID();
