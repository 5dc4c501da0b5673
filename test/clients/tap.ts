/**
 * Stands between a client and the gateway and keeps what each said, as it was on the wire. An upgrade to WebSocket goes through as
 * the request it is.
 */
import { createServer, request as ask } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Exchange = {
  readonly method: string;
  /** Path with query. */
  readonly target: string;
  /** Names as the client spells them, and values, in turn. */
  readonly headers: readonly string[];
  readonly request: string;
  readonly status: number;
  readonly response: string;
};

export type Tap = AsyncDisposable & { readonly url: string; readonly exchanges: readonly Exchange[] };

/** `gateway` tells its address anew for each request. */
export async function startTap(gateway: () => string): Promise<Tap> {
  const exchanges: Exchange[] = [];
  const server = createServer((incoming, outgoing) => {
    serve(gateway(), incoming, outgoing).then(
      (exchange) => exchanges.push(exchange),
      () => outgoing.destroy(),
    );
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exchanges,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function serve(
  gateway: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<Exchange> {
  const { method = 'GET', url: target = '/', rawHeaders: headers } = incoming;
  const request = await bytesOf(incoming);
  const { host } = new URL(gateway);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const asked = ask(new URL(target, gateway), { method, headers: { ...incoming.headers, host } });
    asked.once('response', resolve).once('error', reject);
    outgoing.once('close', () => asked.destroy());
    asked.end(request);
  });
  outgoing.writeHead(response.statusCode ?? 502, response.headers);
  const received: Buffer[] = [];
  try {
    for await (const chunk of response) {
      received.push(chunk as Buffer);
      outgoing.write(chunk);
    }
  } finally {
    outgoing.end();
  }
  return {
    method,
    target,
    headers,
    request: request.toString(),
    status: response.statusCode ?? 502,
    response: Buffer.concat(received).toString(),
  };
}

async function bytesOf(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
