/**
 * Opens the spans of a request, through the API of OpenTelemetry. The request that is being served is found by the asynchronous context, so
 * that no part of the gateway passes spans on. Without a request, nothing is traced. Attributes are names, counts and ids.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Attributes,
  type Context,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  context as contexts,
  isSpanContextValid,
  trace,
} from '@opentelemetry/api';
import type { Codec } from '../../codecs/codec.ts';
import { LeporelloError } from '../../errors.ts';
import type { Receipt } from '../../receipts/receipt.ts';
import { type HeaderList, headerOf } from '../http/http.ts';

/** A request that is being traced. */
export type TracedRequest = {
  readonly root: Span;
  readonly codec: Codec;
  readonly isModelCall: boolean;
  /** Known after the request has been prepared. */
  model: string | undefined;
  /** Calls of the provider whose spans wait for the usage in the receipt. */
  readonly calls: ProviderCall[];
  receipt: Receipt | undefined;
  hasEnded: boolean;
};

/** A call of the provider. Its span ends with its response, but is written when its usage is known. */
export type ProviderCall = { readonly span: Span; status: number | undefined; endedAt: number | undefined };

/** The place at which the next span is opened: below `context`. */
export type SpanScope = {
  readonly request: TracedRequest;
  readonly context: Context;
  /** True while a summary is written for a later fold. */
  readonly isSummary?: boolean;
};

const scopes = new AsyncLocalStorage<SpanScope>();

/** Returns the scope of the request that is being served. */
export function scopeNow(): SpanScope | undefined {
  return scopes.getStore();
}

/** Runs the work in a scope, for our own spans and for those of other libraries. */
export function runIn<T>(scope: SpanScope, work: () => T): T {
  return scopes.run(scope, () => contexts.with(scope.context, work));
}

/** Runs the work in a span; without a request, runs only the work. */
export async function inSpan<T>(
  tracer: Tracer,
  name: string,
  attributes: Attributes,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> {
  const scope = scopeNow();
  if (!scope) return work(undefined);
  const span = tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes }, scope.context);
  try {
    const below = { ...scope, context: trace.setSpan(scope.context, span) };
    return await runIn(below, () => work(span));
  } catch (error) {
    markFailed(span, errorType(error));
    throw error;
  } finally {
    span.end();
  }
}

/** Marks a span as failed. An error's message can quote content, so only its kind is recorded. */
export function markFailed(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** Returns the kind of an error. */
export function errorType(error: unknown): string {
  if (LeporelloError.isInstance(error)) return error.code;
  return error instanceof Error ? error.name : 'unknown';
}

/** Returns the same body, read in a scope: a generator would run in that of its reader. `ended` is called once, at the end. */
export function bodyIn(
  scope: SpanScope | undefined,
  body: AsyncIterable<Uint8Array>,
  ended: (error: unknown) => void,
): AsyncIterable<Uint8Array> {
  const run = <T>(work: () => T): T => (scope ? runIn(scope, work) : work());
  return {
    [Symbol.asyncIterator]() {
      const chunks = body[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const step = await run(() => chunks.next());
            if (step.done) ended(undefined);
            return step;
          } catch (error) {
            ended(error);
            throw error;
          }
        },
        async return() {
          try {
            await run(() => chunks.return?.());
          } finally {
            ended(undefined);
          }
          return { done: true, value: undefined };
        },
      };
    },
  };
}

// W3C Trace Context: the header `traceparent` names the span above a request.

/** Returns the context that the client's headers name; without one, the context of the program. */
export function contextOf(headers: HeaderList): Context {
  const parent = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})/.exec(
    headerOf(headers, 'traceparent') ?? '',
  );
  const [, traceId = '', spanId = '', flags = '0'] = parent ?? [];
  const spanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
  const current = contexts.active();
  return isSpanContextValid(spanContext) ? trace.setSpanContext(current, spanContext) : current;
}

/** Returns the headers with a `traceparent` that names the span. A span of a tracer that is off names nothing. */
export function headersBelow(headers: HeaderList, span: Span): HeaderList {
  const { traceId, spanId, traceFlags } = span.spanContext();
  if (!isSpanContextValid(span.spanContext())) return headers;
  const flags = traceFlags.toString(16).padStart(2, '0');
  const others = headers.filter(([name]) => name !== 'traceparent');
  return [...others, ['traceparent', `00-${traceId}-${spanId}-${flags}`]];
}
