/** Implements `leporello mcp`: serves the memory to MCP clients, over standard input and output or over HTTP on this machine. */
import { Readable } from 'node:stream';
import type { McpServer } from '@modelcontextprotocol/server';
import { type Memory, memoryIn, registerMemoryTools } from '../adapters/mcp.ts';
import { LeporelloError } from '../errors.ts';
import { withResolvers } from '../es2024.ts';
import { refuseForeign } from '../gateway/routing/foreign-pages.ts';
import {
  type GatewayRequest,
  type GatewayResponse,
  type Handler,
  jsonResponse,
} from '../gateway/http/http.ts';
import { serveNode } from '../gateway/http/node-server.ts';
import type { McpArgs } from './command-args.ts';
import { loadConfig } from './config/load-config.ts';
import { packageVersion } from './home.ts';
import { openExistingStore } from './open-store.ts';
import type { Terminal } from './terminal.ts';

/**
 * Runs the command until the client ends or the process is stopped. Resolves with the exit code. A client starts it once, often before the
 * first request of a gateway, so it waits for a store that is not there yet.
 */
export async function mcp(args: McpArgs, terminal: Terminal): Promise<number> {
  const { config, dataDir } = await loadConfig(args.settings, terminal);
  const sdk = await loadSdk();
  // A program that starts this command may read the data folder. One that only reaches the port may not: it gets one tenant's originals.
  const tenant = args.tenant ?? (args.port === undefined ? undefined : 'local');
  const memory = memoryOnceThere(async () => {
    const opened = await openExistingStore(dataDir, terminal.env, config);
    return 'missing' in opened ? opened.missing : memoryIn(opened, { tenant });
  });
  const missing = await memory.missing();
  if (missing !== undefined)
    terminal.err(`leporello: ${missing} Or wait: a store is read as soon as there is one.\n`);
  const newServer = () => serverOver(sdk.McpServer, memory);
  const stopped = withResolvers<void>();
  const forget = terminal.onStop(() => stopped.resolve());
  try {
    if (args.port === undefined) {
      const transport = new sdk.StdioServerTransport();
      const handle = sdk.serveStdio(newServer, { transport });
      terminal.input().once('end', () => stopped.resolve());
      await stopped.promise;
      await handle.close();
      return 0;
    }
    const handler = sdk.createMcpHandler(newServer);
    const server = await serveNode(overHttp(handler), { host: '127.0.0.1', port: args.port });
    const url = `http://127.0.0.1:${server.port}/mcp`;
    await terminal.out(
      args.json ? `${JSON.stringify({ url })}\n` : `Leporello's memory is served at ${url}\n`,
    );
    await stopped.promise;
    await server.close(1_000);
    return 0;
  } finally {
    forget();
    await memory.close();
  }
}

/** Returns a memory that is opened by the first call that finds it. Until then, the answer of each call says why there is none. */
function memoryOnceThere(open: () => Promise<Memory | string>) {
  let opening: Promise<Memory | string> | undefined;
  async function opened(): Promise<Memory | string> {
    opening ??= open();
    const memory = await opening.catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    if (typeof memory === 'string') opening = undefined;
    return memory;
  }
  async function answer(of: (memory: Memory) => Promise<string>): Promise<string> {
    const memory = await opened();
    return typeof memory === 'string' ? memory : of(memory);
  }
  return {
    async missing(): Promise<string | undefined> {
      const memory = await opened();
      return typeof memory === 'string' ? memory : undefined;
    },
    readMemory: (args) => answer((memory) => memory.readMemory(args)),
    searchMemory: (args) => answer((memory) => memory.searchMemory(args)),
    listFolds: (args) => answer((memory) => memory.listFolds(args)),
    async close(): Promise<void> {
      const memory = await opening;
      if (typeof memory === 'object') await memory.close();
    },
  } satisfies Memory & { missing(): Promise<string | undefined> };
}

async function loadSdk() {
  try {
    const [server, stdio] = await Promise.all([
      import('@modelcontextprotocol/server'),
      import('@modelcontextprotocol/server/stdio'),
    ]);
    return { ...server, ...stdio };
  } catch (cause) {
    throw new LeporelloError(
      'bad-config',
      'The package @modelcontextprotocol/server is not installed. Install it: npm install @modelcontextprotocol/server',
      { cause },
    );
  }
}

function serverOver(Server: typeof McpServer, memory: Memory): McpServer {
  const server = new Server(
    { name: 'leporello', version: packageVersion() },
    { capabilities: { tools: {} } },
  );
  registerMemoryTools(server, memory);
  return server;
}

/** Host names under which this machine reaches the server. Others would be web pages. */
const hosts = ['localhost', '127.0.0.1', '[::1]'];

/** Serves `/mcp` with a handler of the SDK, which takes requests as `fetch` does. */
function overHttp(handler: { fetch(request: Request): Promise<Response> }): Handler {
  return async (request) => {
    const refused = refuseForeign(request, hosts);
    if (refused) return refused;
    if (!/^\/mcp(?:\?|$)/.test(request.target))
      return jsonResponse(404, { error: { type: 'not_found', message: 'Only /mcp is served here.' } });
    return responseOf(await handler.fetch(requestOf(request)));
  };
}

function requestOf({ method, target, headers, body, signal }: GatewayRequest): Request {
  const init: RequestInit & { duplex?: 'half' } = {
    method,
    headers: headers.map(([name, value]): [string, string] => [name, value]),
    signal,
  };
  if (method !== 'GET' && method !== 'HEAD' && body) {
    init.body = Readable.toWeb(Readable.from(body)) as ReadableStream<Uint8Array<ArrayBuffer>>;
    init.duplex = 'half';
  }
  return new Request(`http://127.0.0.1${target}`, init);
}

function responseOf({ status, headers, body }: Response): GatewayResponse {
  return { status, headers: [...headers], body: body ?? undefined };
}
