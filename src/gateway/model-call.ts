/** One model call through the gateway: read, fold, send, relay, receipt. Whatever fails inside, the client's own bytes go upstream. */
import type { EngineRequest } from '../engine/request.ts';
import { type Prepared, unprepared } from '../engine/prepared.ts';
import { LeporelloError } from '../errors.ts';
import { answer, problemResponse, upstreamProblem } from './http/responses.ts';
import { sendPrepared, type Sent } from './send-with-retries.ts';
import { pauseUnless } from './waiting.ts';
import { headerOf, headersToUpstream, withHeaders } from './http/headers.ts';
import { type GatewayRequest, type GatewayResponse, type HeaderList, splitUrl } from './http/http.ts';
import { peekBody, readBody } from './http/body.ts';
import { longestName, openReceipt, type OpenReceipt, tellCompressions } from './receipts/request-receipt.ts';
import type { GatewayOptions } from './options.ts';
import { type Exchange, relayStream, relayWhole } from './recall-loop.ts';
import { promptUrl, type Route, sessionOf } from './routing/routes.ts';
import { addSummaryReceipt } from './background-summarizer.ts';
import { type Arrived, unpackBody } from './http/unpack-body.ts';

type ModelRoute = Route & { readonly kind: 'model' | 'count' };

/** A model call under way. */
type Call = {
  readonly options: GatewayOptions;
  readonly request: GatewayRequest;
  readonly route: ModelRoute;
  readonly engineRequest: EngineRequest;
  readonly arrived: Arrived;
  /** When the whole body was there: milliseconds since the epoch. */
  readonly started: number;
  readonly send: Exchange['send'];
};

export async function serveModel(
  options: GatewayOptions,
  request: GatewayRequest,
  route: ModelRoute,
  tenant: string,
): Promise<GatewayResponse> {
  let arrived: Arrived;
  try {
    const wire = await readBody(request.body, options.maxBodyBytes);
    arrived = await unpackBody(request.headers, wire, options.maxBodyBytes);
  } catch (error) {
    if (!LeporelloError.isInstance(error) || error.code !== 'body-too-large') throw error;
    return problemResponse(route.codec, { status: 413, message: error.message }, []);
  }
  const { body } = arrived;
  const engineRequest = { codec: route.codec, body, tenant, upstream: splitUrl(route.url).origin };
  const started = options.clock();
  const send = sender(options, request, route, arrived);
  return forward({ options, request, route, engineRequest, arrived, started, send });
}

async function forward(call: Call): Promise<GatewayResponse> {
  const { options, route } = call;
  const prepared = await prepare(call);
  const preparedAt = options.clock();
  let sent: Sent;
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
      leaveAlone: () => options.engine.leaveAlone(call.engineRequest),
    });
  } catch (error) {
    const receipt = await receiptOf(call, prepared, preparedAt);
    return failed(call, receipt, error);
  }
  const receipt = await receiptOf(call, sent.prepared, preparedAt);
  receipt.note.upstreamStatus(sent.response.status);
  if (sent.response.status === 200) writeAhead(call, sent.prepared, receipt);
  return respond(call, sent, receipt);
}

async function prepare({ options, request, engineRequest, arrived }: Call): Promise<Prepared> {
  if (headerOf(request.headers, 'x-leporello-bypass') === '1') {
    const prepared = await options.engine.unfolded(
      engineRequest,
      { status: 'untouched', reason: 'bypass' },
      bypassWaitMs,
    );
    // It teaches, too; it is read and counted only when its reply is there.
    return { ...prepared, learn: (reported) => void options.engine.learn(engineRequest, reported) };
  }
  if (arrived.unread !== undefined)
    return unprepared(arrived.body, { status: 'untouched', reason: arrived.unread });
  return options.engine.prepare({ ...engineRequest, leftMs: timeLeft(options.prepareDeadlineMs) });
}

/** Milliseconds until the deadline, which begins now. */
function timeLeft(deadlineMs: number): () => number {
  const end = performance.now() + deadlineMs;
  return () => end - performance.now();
}

/** The longest that a bypassed request waits for a store to say which reply it goes on from, where this process does not know. */
const bypassWaitMs = 500;

async function respond(
  call: Call,
  { prepared, response }: Sent,
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
  const { unfit } = prepared.report;
  if (response.status >= 400 && unfit !== undefined)
    return explained(call, { prepared, response }, receipt, unfit);
  return answer(response, 'same', receipt.headers, receipt.closing(response.body));
}

/** The provider found the request too long, as we feared: its own error, with what is too large. */
async function explained(
  { route: { codec } }: Call,
  { response }: Sent,
  receipt: OpenReceipt,
  unfit: string,
): Promise<GatewayResponse> {
  const { text, body } = await peekBody(response.body, maxErrorBytes);
  const overflows = text !== undefined && codec.overflowIn(response.status, text) !== undefined;
  if (!overflows) return answer(response, 'same', receipt.headers, receipt.closing(body));
  receipt.close();
  const told = codec.explainError(new TextEncoder().encode(text), `Leporello could fold no more: ${unfit}`);
  return answer(response, 'changed', receipt.headers, told);
}

/** Error bodies are a few hundred bytes. */
const maxErrorBytes = 1024 * 1024;

/** The summary that a fold to come will need; nothing waits for it, and it goes on when the client has gone. */
function writeAhead(
  { options, request, route, engineRequest }: Call,
  { summary, report }: Prepared,
  { id, session }: OpenReceipt,
): void {
  const { summaries: desk } = options;
  if (!desk || !summary || route.kind !== 'model') return;
  const model = desk.modelFor(report.model);
  const begun = {
    tenant: engineRequest.tenant,
    at: options.clock(),
    path: pathOf(request),
    session,
    behind: id,
    model: model?.slice(0, longestName),
    tokensBefore: summary.tokens,
  };
  const url = promptUrl(route.url, model);
  const headers = unpackedHeaders(request);
  desk.start({
    job: summary,
    codec: engineRequest.codec,
    model,
    send: (body, signal) =>
      options.upstream.send({ method: 'POST', url, headers, body, signal, decode: true }),
    ended: (end) => void addSummaryReceipt(options, begun, end),
  });
}

function failed({ route }: Call, receipt: OpenReceipt, error: unknown): GatewayResponse {
  const problem = upstreamProblem(error);
  receipt.note.problem(problem.message);
  receipt.close();
  return problemResponse(route.codec, problem, receipt.headers);
}

/**
 * A response that must be read is asked for as it is; some upstreams compress all the same, so it is unpacked if need be. A body that
 * nobody changed goes out packed as it came, and every other one unpacked.
 */
function sender(
  options: GatewayOptions,
  request: GatewayRequest,
  route: ModelRoute,
  arrived: Arrived,
): Exchange['send'] {
  const asItCame = { headers: upstreamHeaders(request), body: arrived.wire };
  const headers = unpackedHeaders(request);
  const { method, signal } = request;
  return (body) => {
    const sent = body === arrived.body ? asItCame : { headers, body };
    return options.upstream.send({ method, url: route.url, ...sent, signal, decode: true });
  };
}

/** Headers for a body of ours, which is not packed. */
function unpackedHeaders(request: GatewayRequest): HeaderList {
  return upstreamHeaders(request).filter(([name]) => name !== 'content-encoding');
}

function upstreamHeaders(request: GatewayRequest): HeaderList {
  return withHeaders(headersToUpstream(request.headers, 'changed'), [['accept-encoding', 'identity']]);
}

/** Without its query, which can hold keys. */
function pathOf({ target }: GatewayRequest): string {
  return target.split('?')[0] ?? '/';
}

async function receiptOf(
  { options, request, route, engineRequest, started }: Call,
  prepared: Prepared,
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
      'sent otherwise than in the request before, without a fold',
    );
  }
  tellCompressions(options.log, receipt.id, report);
  const problem = outcome.status === 'failed' ? outcome.reason : prepared.problem;
  if (problem !== undefined) {
    receipt.note.problem(problem);
    options.log.warn(
      { receipt: receipt.id, reason: problem },
      'the request was sent without a new fold, or without storing it',
    );
  }
  return receipt;
}
