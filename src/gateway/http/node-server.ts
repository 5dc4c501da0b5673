/**
 * Serves a handler on a port with plain node:http, because fetch objects would cost several times the CPU here. This file manages
 * connections and shutdown; node-exchange.ts reads requests and writes responses.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { type GatewayResponse, type Handler, internalError } from './http.ts';
import { breakOff, sendResponse, toGatewayRequest } from './node-exchange.ts';

export type NodeServerOptions = {
  /** Port to listen on; 0 uses any free port. */
  readonly port: number;
  readonly host: string;
  /** Milliseconds that an idle connection stays open. Default: 75,000, longer than proxies in front usually keep theirs. */
  readonly keepAliveMs?: number;
  /**
   * Milliseconds that a client may send nothing while its body is read. Default: 120,000. A slow upload that continues is never cut. The
   * headers of a request must arrive within 60 seconds. Responses have no limit.
   */
  readonly uploadIdleMs?: number;
  /** Called with each error of a handler (the client gets a 500) or of a response body (the client's response breaks off). */
  readonly onError?: (error: unknown, stage: 'handler' | 'body') => void;
};

export type NodeServer = {
  readonly port: number;
  readonly host: string;
  /**
   * Stops accepting connections, closes idle ones, lets requests in progress finish, and cuts the remaining ones after `graceMs`
   * milliseconds. Resolves when all connections are closed. A second call can only shorten the wait.
   */
  close(graceMs: number): Promise<void>;
};

/** Listens and serves. Rejects with the system's error when it cannot listen, for example because the port is in use. */
export async function serveNode(handler: Handler, options: NodeServerOptions): Promise<NodeServer> {
  const connections = trackConnections();
  const take = (incoming: IncomingMessage, outgoing: ServerResponse, waitsToSend: boolean): void => {
    connections.begin(outgoing);
    serveOne(handler, incoming, outgoing, waitsToSend, {
      ...options,
      isClosing: connections.isClosing,
    }).catch(() => outgoing.destroy());
  };
  const server = createServer({
    keepAliveTimeout: options.keepAliveMs ?? 75_000,
    headersTimeout: 60_000,
    // Off, because Node counts it from the beginning of a request and would cut long uploads. `uploadIdleMs` replaces it.
    requestTimeout: 0,
  });
  server.on('connection', connections.open);
  server.on('request', (incoming, outgoing) => take(incoming, outgoing, false));
  server.on('checkContinue', (incoming, outgoing) => take(incoming, outgoing, true));
  await listen(server, options);
  const { port, address } = server.address() as AddressInfo;
  return { port, host: address, close: (graceMs) => connections.close(server, graceMs) };
}

type Serving = Pick<NodeServerOptions, 'onError' | 'uploadIdleMs'> & { readonly isClosing: () => boolean };

async function serveOne(
  handler: Handler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  waitsToSend: boolean,
  { onError, isClosing, uploadIdleMs = 120_000 }: Serving,
): Promise<void> {
  const gone = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) gone.abort();
  });
  const request = toGatewayRequest(incoming, outgoing, { waitsToSend, uploadIdleMs, signal: gone.signal });
  const serve = isWebSocket(incoming) ? refuseWebSocket : handler;
  try {
    const response = await serve(request.request);
    const isTimeout = request.hasStalled() && !isStream(response);
    await sendResponse(outgoing, isTimeout ? stalled(uploadIdleMs) : response, request, isClosing());
  } catch (error) {
    // The client has disconnected, which most likely caused the failure.
    if (gone.signal.aborted) return;
    if (request.hasStalled() && !outgoing.headersSent) {
      await sendResponse(outgoing, stalled(uploadIdleMs), request, isClosing());
      return;
    }
    onError?.(error, outgoing.headersSent ? 'body' : 'handler');
    if (outgoing.headersSent) breakOff(outgoing);
    else await sendResponse(outgoing, internalError(), request, isClosing());
  }
}

function isStream({ body }: GatewayResponse): boolean {
  return body !== undefined && !(body instanceof Uint8Array);
}

/** Returns the response to a client whose upload stalled. It replaces the handler's own response. */
function stalled(idleMs: number): GatewayResponse {
  const error = {
    type: 'timeout_error',
    message: `The gateway received nothing of the request body for ${idleMs} ms. Send the request again.`,
  };
  return {
    status: 408,
    headers: [['content-type', 'application/json']],
    body: new TextEncoder().encode(JSON.stringify({ error })),
  };
}

/** True for a WebSocket request. Other upgrades, such as h2c, are ignored: these clients continue with HTTP/1.1. */
function isWebSocket(incoming: IncomingMessage): boolean {
  return incoming.headers.upgrade?.toLowerCase().includes('websocket') === true;
}

async function refuseWebSocket(): Promise<GatewayResponse> {
  const error = {
    type: 'upgrade_required',
    message: 'The gateway does not serve WebSockets. Use plain HTTP requests.',
  };
  return {
    status: 426,
    headers: [
      ['upgrade', 'HTTP/1.1'],
      ['connection', 'upgrade, close'],
      ['content-type', 'application/json'],
    ],
    body: new TextEncoder().encode(JSON.stringify({ error })),
  };
}

async function listen(server: Server, { port, host }: NodeServerOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Tracks which connections are open and which of them serve a request, so that a shutdown can close the idle ones. */
function trackConnections() {
  const sockets = new Set<Socket>();
  const busy = new Map<Socket, number>();
  let closing: Promise<void> | undefined;

  const end = (socket: Socket): void => {
    const left = (busy.get(socket) ?? 1) - 1;
    if (left > 0) busy.set(socket, left);
    else busy.delete(socket);
    if (left <= 0 && closing !== undefined) socket.destroySoon();
  };
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };

  return {
    isClosing: () => closing !== undefined,
    open: (socket: Socket): void => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    },
    begin: (outgoing: ServerResponse): void => {
      const { socket } = outgoing.req;
      busy.set(socket, (busy.get(socket) ?? 0) + 1);
      outgoing.once('close', () => end(socket));
    },
    close: async (server: Server, graceMs: number): Promise<void> => {
      const timer = setTimeout(cut, graceMs);
      closing ??= new Promise((resolve) => {
        // Not the `close` of http.Server, which destroys connections whose response has ended but is not yet written.
        NetServer.prototype.close.call(server, () => resolve());
        for (const socket of sockets) if (!busy.has(socket)) socket.destroy();
      });
      await closing;
      clearTimeout(timer);
    },
  };
}
