/**
 * Public entry `leporello/opentelemetry`: traces the requests of a gateway with OpenTelemetry. One trace has spans for the request, for its
 * preparation, the fold, each recall, each call of the store, and each call of the provider (GenAI semantic conventions). It wraps the parts of the
 * gateway, so a gateway without tracing runs none of this. docs/tracing.md describes each span.
 */
import { type Attributes, SpanKind, type Tracer, trace } from '@opentelemetry/api';
import type { Engine, PreparedRequest } from '../../engine/types.ts';
import type { Receipt } from '../../receipts/receipt.ts';
import { type Handler, type Upstream, splitUrl } from '../http/http.ts';
import type { GatewayOptions, GatewayTracing } from '../options.ts';
import { clock } from '../model-call.ts';
import { type ReceiptLog, maxNameLength } from '../receipts/receipts.ts';
import { routeOf } from '../routing/routes.ts';
import {
  type ProviderCall,
  type SpanScope,
  type TracedRequest,
  bodyIn,
  contextOf,
  errorType,
  headersBelow,
  inSpan,
  markFailed,
  runIn,
  scopeNow,
} from './spans.ts';

/**
 * Creates the tracing of one gateway. The tracer is that of the program's OpenTelemetry SDK.
 * @example
 * const handler = assembleGateway(settings, { ...deps, tracing: openTelemetryTracing() });
 */
export function openTelemetryTracing(tracer: Tracer = trace.getTracer('leporello')): GatewayTracing {
  return {
    handler: (handler, urls) => tracedHandler(tracer, handler, urls),
    storeCall: (call, work) => inSpan(tracer, `store ${call}`, { 'leporello.store.call': call }, work),
    parts: (parts) => ({
      ...parts,
      engine: tracedEngine(tracer, parts.engine),
      upstream: tracedUpstream(tracer, parts.upstream),
      summaries: parts.summaries && tracedSummaries(parts.summaries),
      receipts: tracedReceipts(parts.receipts),
      watchRecall: (tool, work) =>
        inSpan(
          tracer,
          `execute_tool ${tool}`,
          {
            'gen_ai.operation.name': 'execute_tool',
            'gen_ai.tool.name': tool,
            'gen_ai.tool.type': 'function',
          },
          async (span) => {
            const answer = await work();
            span?.setAttributes({
              'leporello.recall.found': answer.found,
              'leporello.recall.tokens': answer.tokens,
            });
            return answer;
          },
        ),
    }),
  };
}

function tracedHandler(tracer: Tracer, handler: Handler, urls: GatewayOptions['urls']): Handler {
  return async function handle(request) {
    const route = routeOf(request.method, request.target, request.headers, urls);
    if (route.kind === 'own' || route.kind === 'refused') return handler(request);
    const { codec, kind } = route;
    const name = kind === 'model' ? codec.name : `${codec.name} ${kind}`;
    const attributes = { 'http.request.method': request.method, 'leporello.format': codec.name };
    const above = contextOf(request.headers);
    const root = tracer.startSpan(`leporello ${name}`, { kind: SpanKind.SERVER, attributes }, above);
    const traced: TracedRequest = {
      root,
      codec,
      isModelCall: kind === 'model',
      model: undefined,
      calls: [],
      receipt: undefined,
      hasEnded: false,
    };
    const scope: SpanScope = { request: traced, context: trace.setSpan(above, root) };
    const end = (error?: unknown): void => {
      if (error !== undefined) markFailed(root, errorType(error));
      endRequest(traced);
    };
    try {
      const response = await runIn(scope, () => handler(request));
      root.setAttribute('http.response.status_code', response.status);
      if (response.status >= 500) markFailed(root, String(response.status));
      const { body } = response;
      if (body !== undefined && !(body instanceof Uint8Array))
        return { ...response, body: bodyIn(scope, body, end) };
      end();
      return response;
    } catch (error) {
      end(error);
      throw error;
    }
  };
}

/** Ends the span of the request, and those of its calls of the provider, with what the receipt says. */
function endRequest(request: TracedRequest): void {
  if (request.hasEnded) return;
  request.hasEnded = true;
  const { root, calls, receipt } = request;
  const answered = calls.filter(({ status }) => status === 200);
  const rounds = receipt?.rounds ?? [];
  if (rounds.length === answered.length)
    for (const [at, { input, cacheRead, cacheWrite, output }] of rounds.entries())
      answered[at]!.span.setAttributes({
        'gen_ai.usage.input_tokens': input,
        'gen_ai.usage.output_tokens': output,
        'gen_ai.usage.cache_read.input_tokens': cacheRead,
        'gen_ai.usage.cache_creation.input_tokens': cacheWrite,
      });
  for (const { span, endedAt } of calls) if (endedAt !== undefined) span.end(endedAt);
  if (receipt) root.setAttributes(receiptAttributes(receipt));
  root.end();
}

function receiptAttributes({ id, outcome, recalls, money, problem }: Receipt): Attributes {
  return {
    'leporello.receipt': id,
    'leporello.outcome': outcome.status,
    'leporello.recalls': recalls.length,
    'leporello.recalls.missed': recalls.filter(({ found }) => !found).length,
    'leporello.failed': outcome.status === 'failed' || problem !== undefined,
    ...(money && {
      'leporello.usd.paid': money.paid.total,
      'leporello.usd.untouched': money.untouched.total,
    }),
  };
}

/** Notes the receipt of the request that is being served. It is written when the response ends, which ends the request's span, too. */
function tracedReceipts(receipts: ReceiptLog): ReceiptLog {
  return {
    ...receipts,
    add(tenant, receipt, source) {
      const scope = scopeNow();
      if (scope && receipt.kind === 'request') scope.request.receipt = receipt;
      receipts.add(tenant, receipt, source);
    },
  };
}

function tracedEngine(tracer: Tracer, engine: Engine): Engine {
  return {
    ...engine,
    prepare: (request) =>
      inSpan(tracer, 'prepare', { 'leporello.body.bytes': request.body.length }, async (span) => {
        const prepared = await engine.prepare(request);
        const scope = scopeNow();
        if (!span || !scope) return prepared;
        scope.request.model = prepared.report.model?.slice(0, maxNameLength);
        span.setAttributes(preparedAttributes(prepared));
        addFoldSpan(tracer, scope, prepared);
        return prepared;
      }),
  };
}

function preparedAttributes({ outcome, report }: PreparedRequest): Attributes {
  const { tokensBefore, tokensAfter, replayed, shrunk, hiddenRecalls } = report;
  return {
    'leporello.outcome': outcome.status,
    'leporello.edits.replayed': replayed,
    'leporello.results.shrunk': shrunk,
    'leporello.hidden_recalls': hiddenRecalls,
    ...(tokensBefore !== undefined && { 'leporello.tokens.before': tokensBefore }),
    ...(tokensAfter !== undefined && { 'leporello.tokens.after': tokensAfter }),
  };
}

/** Adds the span of a new fold afterwards: the engine, which may run in another thread, says when it planned the fold. */
function addFoldSpan(tracer: Tracer, { context }: SpanScope, { planTime, report }: PreparedRequest): void {
  if (!planTime) return;
  const { trigger, steps } = report;
  const made = steps.filter(({ edits }) => edits > 0);
  const attributes = {
    'leporello.trigger': trigger ?? 'none',
    'leporello.strategies': made.map(({ strategy }) => strategy),
    'leporello.edits': made.reduce((sum, { edits }) => sum + edits, 0),
    'leporello.tokens.saved': made.reduce((sum, { tokensSaved }) => sum + tokensSaved, 0),
  };
  const span = tracer.startSpan('fold', { startTime: new Date(planTime.from), attributes }, context);
  span.end(new Date(planTime.to));
}

function tracedUpstream(tracer: Tracer, upstream: Upstream): Upstream {
  return {
    close: () => upstream.close(),
    async send(sent) {
      const scope = scopeNow();
      if (!scope) return upstream.send(sent);
      const { request, isSummary = false } = scope;
      const { provider, operation } = request.codec.genAi;
      const model = request.model;
      const isCall = request.isModelCall || isSummary;
      const name = isCall ? `${operation} ${model ?? ''}`.trim() : sent.method;
      const attributes = {
        ...serverOf(sent.url),
        'http.request.method': sent.method,
        ...(isCall && {
          'gen_ai.operation.name': operation,
          'gen_ai.provider.name': provider,
          ...(model !== undefined && { 'gen_ai.request.model': model }),
        }),
        ...(isSummary && { 'leporello.purpose': 'summary' }),
      };
      const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, scope.context);
      const call: ProviderCall = { span, status: undefined, endedAt: undefined };
      if (!isSummary) request.calls.push(call);
      const end = (error?: unknown): void => {
        if (call.endedAt !== undefined) return;
        call.endedAt = clock();
        if (error !== undefined) markFailed(span, errorType(error));
        if (isSummary || request.hasEnded) span.end();
      };
      try {
        const response = await upstream.send({ ...sent, headers: headersBelow(sent.headers, span) });
        call.status = response.status;
        span.setAttribute('http.response.status_code', response.status);
        if (response.status >= 400) markFailed(span, String(response.status));
        return { ...response, body: bodyIn(undefined, response.body, end) };
      } catch (error) {
        end(error);
        throw error;
      }
    },
  };
}

/** Returns the host of a URL. Its path and query can contain keys. */
function serverOf(url: string): Attributes {
  const { origin } = splitUrl(url);
  if (!URL.canParse(origin)) return {};
  const { hostname, port, protocol } = new URL(origin);
  return { 'server.address': hostname, 'server.port': Number(port) || (protocol === 'https:' ? 443 : 80) };
}

type Summaries = NonNullable<GatewayOptions['summaries']>;

/** A summary is written after its request, by calls of the provider that are none of the request's own. */
function tracedSummaries(summaries: Summaries): Summaries {
  return {
    ...summaries,
    start(started) {
      const scope = scopeNow();
      if (!scope) return summaries.start(started);
      const request = {
        ...scope.request,
        model: started.model?.slice(0, maxNameLength) ?? scope.request.model,
      };
      return runIn({ ...scope, request, isSummary: true }, () => summaries.start(started));
    },
  };
}
