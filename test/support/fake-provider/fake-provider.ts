/**
 * Public entry `leporello/testing/provider`: a provider for tests and benchmarks, without vitest and fast-check. It is a real HTTP server on the
 * loopback that speaks Chat Completions, Messages, Responses and generateContent, plain and streamed, refuses what the real ones refuse, answers
 * what its script says, and records every request.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAnswerer } from './answer.ts';
import { type Endpoint, endpointOf } from './endpoints.ts';
import type { FakeProviderOptions, RecordedRequest } from './options.ts';

export type { FakeProviderOptions, RecordedRequest } from './options.ts';
export type { Reply, Script, ScriptRequest, Turn, TurnPart } from './script.ts';

export type FakeProvider = {
  /** `http://127.0.0.1:PORT`, without a path. */
  readonly url: string;
  /** All requests so far, including refused ones. */
  readonly requests: readonly RecordedRequest[];
  /** Resolves when this many requests have arrived. */
  received(count: number): Promise<void>;
  /** Breaks off responses in progress and frees the port. */
  close(): Promise<void>;
};

/**
 * Starts on a free port.
 * @example
 * const provider = await startFakeProvider({ script: [{ type: 'turn', parts: [{ type: 'text', text: 'Hello' }] }] });
 * const client = new SomeSdk({ baseURL: `${provider.url}/v1`, apiKey: 'any' });
 */
export async function startFakeProvider(options: FakeProviderOptions): Promise<FakeProvider> {
  const requests: RecordedRequest[] = [];
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const answer = createAnswerer(options);
  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const endpoint = endpointOf(incoming.method ?? 'GET', incoming.url ?? '/');
    const request = await record(incoming, outgoing, labelOf(endpoint));
    requests.push(request);
    for (const { count, resolve } of waiting) if (requests.length >= count) resolve();
    await answer(endpoint, request, outgoing);
  };
  // The usual 5 s would end on a machine that stalls, and the next request would be sent on a connection that is just being closed.
  const server = createServer({ keepAliveTimeout: 600_000 }, (incoming, outgoing) => {
    serve(incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    received: (count) =>
      new Promise((resolve) => {
        if (requests.length >= count) resolve();
        else waiting.push({ count, resolve });
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function record(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  format: RecordedRequest['format'],
): Promise<RecordedRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const { rawHeaders, method = 'GET', url = '/' } = incoming;
  return {
    format,
    method,
    target: url,
    headers: rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), rawHeaders[i + 1]!]] : [])),
    body: Buffer.concat(chunks),
    receivedAt: Date.now(),
    ended: new Promise((resolve) => {
      outgoing.once('close', () => resolve(outgoing.writableFinished ? 'complete' : 'broken-off'));
    }),
  };
}

function labelOf({ kind, format }: Endpoint): RecordedRequest['format'] {
  switch (kind) {
    case 'reply':
      return format;
    case 'count':
      return 'count-tokens';
    case 'compact':
      return 'compact';
    case 'read':
    case 'delete':
    case 'alive':
    case 'other':
      return 'other';
  }
}
