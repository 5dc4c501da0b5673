/**
 * The gateway on a port: raw node:http around a handler, because objects of the fetch kind cost several times the CPU at this
 * place. Knows connections and their ends; reading a request is in node-request.ts, writing a response in node-response.ts.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import type { GatewayResponse, Handler } from './http.ts';
import { internalError } from './responses.ts';
import { breakOff, sendResponse, toGatewayRequest } from './node-exchange.ts';

export type NodeServerOptions = {
  /** 0 takes any free port. */
  readonly port: number;
  readonly host: string;
  /** How long an idle connection stays open, in ms. Longer than a proxy in front keeps its own. */
  readonly keepAliveMs?: number;
  /**
   * How long a client may send nothing while its body is read, in ms. Default 120 s. An upload that goes on, however slowly, is never cut.
   * The head of a request must be there within 60 s. Responses have no limit.
   */
  readonly uploadIdleMs?: number;
  /** Told of each error of a handler (the client sees a 500) or of a response body (the client sees it break off). */
  readonly onError?: (error: unknown, stage: 'handler' | 'body') => void;
};

export type NodeServer = {
  readonly port: number;
  readonly host: string;
  /**
   * Takes no more connections, closes idle ones, lets requests under way finish, and cuts those that are left after `graceMs`.
   * Resolves when all connections are closed. A second call can only shorten the wait.
   */
  close(graceMs: number): Promise<void>;
};

/** Listens and serves. Rejects when it cannot listen (the port is taken, say), with the system's own error. */
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
    // Node counts this from the beginning of a request, so a long upload would be cut however well it goes on: uploadIdleMs stands for it.
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
    const isTold = request.hasStalled() && !isStream(response);
    await sendResponse(outgoing, isTold ? stalled(uploadIdleMs) : response, request, isClosing());
  } catch (error) {
    // Nobody is left to tell, and what failed most likely failed because of that.
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

/** The client's upload came to a stop: whatever the handler made of that, this is what the client is told. */
function stalled(idleMs: number): GatewayResponse {
  const error = {
    type: 'timeout_error',
    message: `Nothing more of the request came for ${idleMs} ms. Send it again.`,
  };
  return {
    status: 408,
    headers: [['content-type', 'application/json']],
    body: new TextEncoder().encode(JSON.stringify({ error })),
  };
}

/** Other upgrades (h2c, say) may be ignored and are: clients then go on with HTTP/1.1. */
function isWebSocket(incoming: IncomingMessage): boolean {
  return incoming.headers.upgrade?.toLowerCase().includes('websocket') === true;
}

async function refuseWebSocket(): Promise<GatewayResponse> {
  const error = {
    type: 'upgrade_required',
    message: 'WebSockets are not served here. Use plain HTTP requests.',
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

/** Which connections are open and which of them serve a request, so that a shutdown can tell idle from busy. */
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
        // Not http's own close: that destroys connections whose response has ended but is not yet written out.
        NetServer.prototype.close.call(server, () => resolve());
        for (const socket of sockets) if (!busy.has(socket)) socket.destroy();
      });
      await closing;
      clearTimeout(timer);
    },
  };
}
