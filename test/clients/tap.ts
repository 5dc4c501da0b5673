/**
 * Records the exchanges between a client and the gateway as they are on the wire. A WebSocket upgrade passes through as a plain request.
 */
import { createServer, request as ask } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { SecureContext } from 'node:tls';

export type Exchange = {
  readonly method: string;
  /** Path with query. */
  readonly target: string;
  /** Alternating names, as the client spells them, and values. */
  readonly headers: readonly string[];
  readonly request: string;
  readonly status: number;
  readonly response: string;
};

export type Tap = AsyncDisposable & { readonly url: string; readonly exchanges: readonly Exchange[] };

/** A vendor's end of a connection: TLS for every host, and WebSockets. */
export type VendorEnd = {
  readonly certificateOf: (host: string) => SecureContext;
  /** Serves an upgrade and reports each message of the client as an exchange. */
  readonly upgrade: (incoming: IncomingMessage, socket: Duplex, report: (exchange: Exchange) => void) => void;
};

/**
 * Starts on a free port, or with `vendor` as every TLS host on 127.0.0.1:443.
 * `gateway` returns each request's destination: a base URL, or a complete URL if the path differs, too.
 */
export async function startTap(gateway: (target: string) => string, vendor?: VendorEnd): Promise<Tap> {
  const exchanges: Exchange[] = [];
  const listener = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    serve(gateway(incoming.url ?? '/'), incoming, outgoing).then(
      (exchange) => exchanges.push(exchange),
      () => outgoing.destroy(),
    );
  };
  const server = vendor
    ? createSecureServer(
        { SNICallback: (host, done) => done(null, vendor.certificateOf(host)), ALPNProtocols: ['http/1.1'] },
        listener,
      )
    : createServer(listener);
  if (vendor) {
    server.on('upgrade', (incoming, socket) => {
      vendor.upgrade(incoming, socket, (exchange) => exchanges.push(exchange));
    });
  }
  await new Promise<void>((resolve) => {
    server.listen(vendor ? 443 : 0, '127.0.0.1', resolve);
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
  const url = new URL(gateway);
  const { host } = url;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const asked = ask(url.pathname === '/' ? new URL(target, url) : url, {
      method,
      headers: { ...incoming.headers, host },
    });
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
