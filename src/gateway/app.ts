/**
 * The gateway's core: a request as values and bytes in, a response as values and bytes out. Knows no transport and no clock of its
 * own. Routes, folds, sends, relays, and writes the receipt; whatever fails inside, the client's own bytes go upstream.
 */
import type { Codec, GatewayProblem } from '../codecs/codec.ts';
import type { Engine } from '../compact/engine.ts';
import { type Prepared, unprepared } from '../compact/prepared.ts';
import { LeporelloError } from '../errors.ts';
import type { Vault } from '../memory/vault.ts';
import { answerOwn } from './admin.ts';
import { headerOf, headersToClient, headersToUpstream, withHeaders } from './headers.ts';
import {
  type GatewayRequest,
  type GatewayResponse,
  type Handler,
  type HeaderList,
  readBody,
  type Upstream,
  type UpstreamResponse,
} from './http.ts';
import { jsonResponse } from './json-response.ts';
import { openReceipt, type OpenReceipt } from './open-receipt.ts';
import { prepareInTime } from './prepare.ts';
import type { ReceiptLog } from './receipts.ts';
import { type Exchange, type RecallLimits, relayStream, relayWhole } from './recall-loop.ts';
import { credentialOf, type Route, routeOf, sessionOf, type UpstreamUrls } from './routes.ts';

export type GatewayOptions = {
  readonly engine: Engine;
  readonly vault: Pick<Vault, 'tenantOf' | 'recall' | 'recallAny'>;
  readonly upstream: Upstream;
  readonly urls: UpstreamUrls;
  readonly receipts: ReceiptLog;
  readonly log: GatewayLog;
  readonly recall: RecallLimits;
  /** Larger bodies are answered 413. Bytes. */
  readonly maxBodyBytes: number;
  /** Folding that takes longer is given up, and the original goes out. Milliseconds. */
  readonly prepareDeadlineMs: number;
  /** With this token as credential, receipts and memories of all tenants are shown. */
  readonly adminToken: string | undefined;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly newId: () => string;
};

/** Where the gateway reports; fields hold names, counts and ids, never content and never credentials. */
export interface GatewayLog {
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
}

type ModelRoute = Route & { readonly kind: 'model' | 'count' };

export function createGateway(options: GatewayOptions): Handler {
  return async function handle(request) {
    const route = routeOf(request.method, request.target, request.headers, options.urls);
    switch (route.kind) {
      case 'own':
        return answerOwn(options, request, route);
      case 'unknown':
        return jsonResponse(404, {
          error: {
            type: 'not_found_error',
            message: `Leporello serves /v1/* and /_leporello/*, not ${request.target.split('?')[0]}. Point the client's base URL here.`,
          },
        });
      case 'pass':
        return pass(options, request, route.url, route.codec);
      case 'model':
      case 'count':
        return serveModel(options, request, route);
    }
  };
}

/** Bytes in, bytes out; nothing is read, nothing is buffered. */
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

async function serveModel(
  options: GatewayOptions,
  request: GatewayRequest,
  route: ModelRoute,
): Promise<GatewayResponse> {
  let body: Uint8Array;
  try {
    body = await readBody(request.body, options.maxBodyBytes);
  } catch (error) {
    if (!LeporelloError.isInstance(error) || error.code !== 'body-too-large') throw error;
    return problemResponse(route.codec, { status: 413, message: error.message }, []);
  }
  const started = options.clock();
  const tenant = options.vault.tenantOf(credentialOf(request.headers));
  const prepared = await prepareRequest(options, request, route, tenant, body);
  const receipt = openReceipt(options, {
    tenant,
    prepared,
    session: sessionOf(request.headers),
    path: pathOf(request),
    started,
  });
  if (prepared.outcome.status === 'failed') {
    options.log.warn(
      { receipt: receipt.id, reason: prepared.outcome.reason },
      'compaction failed; the original goes out',
    );
  }
  return forward(options, request, route, prepared, receipt);
}

function prepareRequest(
  options: GatewayOptions,
  request: GatewayRequest,
  route: ModelRoute,
  tenant: string,
  body: Uint8Array,
): Promise<Prepared> {
  if (headerOf(request.headers, 'x-leporello-bypass') === '1')
    return Promise.resolve(unprepared(body, { status: 'untouched', reason: 'bypass' }));
  if (headerOf(request.headers, 'content-encoding') !== undefined) {
    return Promise.resolve(unprepared(body, { status: 'untouched', reason: 'the body is compressed' }));
  }
  return prepareInTime(options.engine, { codec: route.codec, body, tenant }, options.prepareDeadlineMs);
}

async function forward(
  options: GatewayOptions,
  request: GatewayRequest,
  route: ModelRoute,
  prepared: Prepared,
  receipt: OpenReceipt,
): Promise<GatewayResponse> {
  const headers = withHeaders(
    headersToUpstream(request.headers, prepared.body.length === 0 ? 'same' : 'changed'),
    [['accept-encoding', 'identity']],
  );
  const send = (body: Uint8Array) =>
    options.upstream.send({
      method: request.method,
      url: route.url,
      headers,
      body,
      signal: request.signal,
      decode: true,
    });
  let first: UpstreamResponse;
  try {
    first = await send(prepared.body);
  } catch (error) {
    const problem = upstreamProblem(error);
    receipt.note.problem(problem.message);
    receipt.close();
    return problemResponse(route.codec, problem, receipt.headers);
  }
  receipt.note.upstreamStatus(first.status);
  const exchange: Exchange = {
    codec: route.codec,
    prepared,
    recall: options.recall,
    send,
    note: receipt.note,
  };
  return respond(exchange, first, route, receipt);
}

async function respond(
  exchange: Exchange,
  first: UpstreamResponse,
  route: ModelRoute,
  receipt: OpenReceipt,
): Promise<GatewayResponse> {
  const type = headerOf(first.headers, 'content-type') ?? '';
  if (first.status === 200 && route.kind === 'model' && type.startsWith('text/event-stream')) {
    return answer(first, 'changed', receipt, receipt.closing(relayStream(exchange, first)));
  }
  if (first.status === 200 && route.kind === 'model' && type.startsWith('application/json')) {
    try {
      const { response, body } = await relayWhole(exchange, first);
      receipt.close();
      return answer(response, 'changed', receipt, body);
    } catch (error) {
      const problem = upstreamProblem(error);
      receipt.note.problem(problem.message);
      receipt.close();
      return problemResponse(exchange.codec, problem, receipt.headers);
    }
  }
  const unfit = exchange.prepared.report.unfit;
  if (first.status >= 400 && unfit !== undefined) return explained(exchange, first, receipt, unfit);
  return answer(first, 'same', receipt, receipt.closing(first.body));
}

/** The provider found the request too long, as we feared: its own error, with what is too large. */
async function explained(
  { codec }: Exchange,
  first: UpstreamResponse,
  receipt: OpenReceipt,
  unfit: string,
): Promise<GatewayResponse> {
  const body = await readBody(first.body, maxErrorBytes);
  receipt.close();
  if (!codec.isOverflow(first.status, new TextDecoder().decode(body)))
    return answer(first, 'same', receipt, body);
  return answer(
    first,
    'changed',
    receipt,
    codec.explainError(body, `Leporello could fold no more: ${unfit}`),
  );
}

/** Error bodies are a few hundred bytes. */
const maxErrorBytes = 1024 * 1024;

function answer(
  from: UpstreamResponse,
  state: 'same' | 'changed',
  receipt: OpenReceipt,
  body: GatewayResponse['body'],
): GatewayResponse {
  return {
    status: from.status,
    headers: [...headersToClient(from.headers, state), ...receipt.headers],
    body,
  };
}

function upstreamProblem(error: unknown): GatewayProblem {
  if (!LeporelloError.isInstance(error))
    return { status: 502, message: 'The upstream could not be reached.' };
  return { status: error.code === 'deadline' ? 504 : 502, message: error.message };
}

function problemResponse(codec: Codec, problem: GatewayProblem, headers: HeaderList): GatewayResponse {
  return {
    status: problem.status,
    headers: [['content-type', 'application/json'], ...headers],
    body: codec.errorBody(problem),
  };
}

function pathOf(request: GatewayRequest): string {
  return request.target.split('?')[0] ?? '/';
}
