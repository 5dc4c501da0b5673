/** Tests the traces of a real gateway: the spans of a folded request with recalls, W3C trace context, and that no span contains content. */
import { SpanStatusCode } from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { describe, expect, it } from 'vitest';
import { headerOf } from '../../src/gateway/http/http.ts';
import { openTelemetryTracing } from '../../src/gateway/tracing/open-telemetry.ts';
import { eventually } from '../support/eventually.ts';
import { formats, post, requestBody } from './bodies.ts';
import { foldedWithRecalls, secrets } from './folded-with-recalls.ts';
import { startStack } from './stack.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;

function openTracing() {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  const spans = (): readonly ReadableSpan[] => exporter.getFinishedSpans();
  return {
    tracing: openTelemetryTracing(provider.getTracer('test')),
    spans,
    /** Resolves with all spans when that of the request has ended. */
    ended: (name: string) =>
      eventually(() => {
        expect(spans().map((span) => span.name)).toContain(name);
        return spans();
      }),
  };
}

const nameOf = (spans: readonly ReadableSpan[], id: string | undefined): string | undefined =>
  spans.find((span) => span.spanContext().spanId === id)?.name;

describe('a traced gateway', () => {
  it('has spans for prepare, fold, recalls, store and provider, below the span of the client', async () => {
    const { tracing, ended } = openTracing();
    await using scene = await foldedWithRecalls({ traceparent, tracestate: 'vendor=1' }, { tracing });
    const spans = await ended('leporello openai-chat');
    expect(spans.every((span) => span.spanContext().traceId === traceId)).toBe(true);
    const tree = spans.map(
      (span) => `${nameOf(spans, span.parentSpanContext?.spanId) ?? 'client'} > ${span.name}`,
    );
    const calls = tree.filter((line) => !line.includes('> store '));
    expect(calls.toSorted()).toEqual([
      'client > leporello openai-chat',
      'leporello openai-chat > chat gpt-4o',
      'leporello openai-chat > chat gpt-4o',
      'leporello openai-chat > execute_tool read_memory',
      'leporello openai-chat > execute_tool read_memory',
      'leporello openai-chat > prepare',
      'prepare > fold',
    ]);
    expect(tree).toContain('prepare > store putUnless');
    const attributes = (name: string) =>
      spans.filter((span) => span.name === name).map((span) => span.attributes);
    expect(attributes('leporello openai-chat')).toEqual([
      expect.objectContaining({
        'http.response.status_code': 200,
        'leporello.outcome': 'compacted',
        'leporello.recalls': 2,
        'leporello.recalls.missed': 1,
        'leporello.failed': false,
      }),
    ]);
    expect(attributes('fold')).toEqual([
      expect.objectContaining({
        'leporello.trigger': 'token-budget',
        'leporello.strategies': ['offload-results'],
      }),
    ]);
    expect(attributes('execute_tool read_memory').map((one) => one['leporello.recall.found'])).toEqual([
      true,
      false,
    ]);
    for (const call of attributes('chat gpt-4o'))
      expect(call).toMatchObject({
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'openai',
        'gen_ai.request.model': 'gpt-4o',
        'gen_ai.usage.input_tokens': expect.any(Number) as number,
        'gen_ai.usage.output_tokens': expect.any(Number) as number,
        'http.response.status_code': 200,
        'server.address': '127.0.0.1',
      });
    // Each call of the provider got the id of its own span.
    const providerCalls = spans.filter((span) => span.name === 'chat gpt-4o');
    expect(scene.stack.provider.requests.map(({ headers }) => headerOf(headers, 'traceparent'))).toEqual(
      providerCalls.map((span) => `00-${traceId}-${span.spanContext().spanId}-01`),
    );
    expect(scene.stack.provider.requests.map(({ headers }) => headerOf(headers, 'tracestate'))).toEqual([
      'vendor=1',
      'vendor=1',
    ]);
    const all = JSON.stringify(
      spans.map(({ name, attributes: own, events, links, status }) => ({ name, own, events, links, status })),
    );
    for (const secret of secrets) expect(all).not.toContain(secret);
  });

  it.each(formats)(
    'names provider and operation of %s, and begins a trace without the header',
    async (format) => {
      const { tracing, spans } = openTracing();
      await using stack = await startStack(
        [{ type: 'turn', parts: [{ type: 'text', text: 'Hello.' }] }],
        {},
        { tracing },
      );
      await (await post(stack.url, format, requestBody(format))).text();
      const [root] = await eventually(() => {
        const roots = spans().filter((span) => span.name.startsWith('leporello '));
        expect(roots).toHaveLength(1);
        return roots;
      });
      const call = spans().find((span) => span.attributes['gen_ai.operation.name'] !== undefined)!;
      expect(call.parentSpanContext?.spanId).toBe(root!.spanContext().spanId);
      expect(root!.parentSpanContext).toBeUndefined();
      const names = { chat: 'openai', responses: 'openai', messages: 'anthropic', gemini: 'gcp.gemini' };
      expect(call.attributes['gen_ai.provider.name']).toBe(names[format]);
    },
  );

  it('marks refused requests as failed with the status, without the message of the error', async () => {
    const { tracing, ended } = openTracing();
    const error = { type: 'error', status: 500, message: 'SECRET-error' } as const;
    await using stack = await startStack([error], {}, { tracing });
    await (await post(stack.url, 'chat', requestBody('chat'))).text();
    const spans = await ended('leporello openai-chat');
    const failed = spans.filter((span) => span.status.code === SpanStatusCode.ERROR);
    expect(failed.map(({ name, attributes }) => [name, attributes['error.type']])).toEqual([
      ['chat gpt-4o', '500'],
      ['leporello openai-chat', '500'],
    ]);
    expect(JSON.stringify(failed.map(({ attributes, status }) => [attributes, status]))).not.toContain(
      'SECRET',
    );
  });
});

it('a gateway without tracing passes the headers of the trace context unchanged', async () => {
  await using scene = await foldedWithRecalls({ traceparent, tracestate: 'vendor=1' });
  for (const { headers } of scene.stack.provider.requests)
    expect([headerOf(headers, 'traceparent'), headerOf(headers, 'tracestate')]).toEqual([
      traceparent,
      'vendor=1',
    ]);
});
