/** Lists the targets to measure. Each starts a server that forwards to the upstream. */
import { mkdtemp } from 'node:fs/promises';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assembleGateway, type GatewaySettings } from '../../src/gateway/app.ts';
import { foldThread } from '../../src/gateway/fold-thread/fold-thread.ts';
import { headersToClient, headersToUpstream } from '../../src/gateway/http/http.ts';
import { type ReceiptArchive, receiptArchive } from '../../src/gateway/receipts/archive.ts';
import { readBody } from '../../src/gateway/http/body.ts';
import { idleMoment, serveNode } from '../../src/gateway/http/node-server.ts';
import { undiciUpstream } from '../../src/gateway/http/undici-upstream.ts';
import { sqliteStore } from '../../src/store/sqlite/sqlite.ts';

/** Starts a server in front of `upstream` (an origin) and resolves to its port. */
export type Target = (upstream: string) => Promise<number>;

export const targets: Readonly<Record<string, Target>> = {
  'raw pipe': rawPipe,
  'HTTP layer': (upstream) => httpLayer(upstream, (body) => body),
  'HTTP layer + parse + stringify': (upstream) =>
    httpLayer(upstream, (body) =>
      new TextEncoder().encode(JSON.stringify(JSON.parse(new TextDecoder().decode(body)))),
    ),
  gateway: (upstream) => wholeGateway(upstream),
  'gateway with page': (upstream) => wholeGateway(upstream, { tenant: 'local' }, receiptArchive()),
  'gateway that folds': (upstream) => wholeGateway(upstream, folding),
  // So few conversations are controls that the one of the benchmark is not.
  'gateway with holdout': (upstream) =>
    wholeGateway(upstream, { ...folding, experiment: { holdout: 0.001 } }),
  'gateway with shadow': (upstream) =>
    wholeGateway(upstream, {
      ...folding,
      experiment: { shadow: { share: 0.1, usdPerDay: 1_000_000, billShare: 1 } },
    }),
};

/** Pipes node:http into node:http without reading the body: the lower bound for a gateway on Node. */
async function rawPipe(upstream: string): Promise<number> {
  const server = createServer((incoming, outgoing) => {
    const { method, headers } = incoming;
    const forwarded = httpRequest(upstream + (incoming.url ?? '/'), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.on('error', () => outgoing.destroy());
    incoming.pipe(forwarded);
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

/** Leporello's HTTP server and client, with only `change` applied to the body. */
async function httpLayer(upstream: string, change: (body: Uint8Array) => Uint8Array): Promise<number> {
  const pool = undiciUpstream();
  const { port } = await serveNode(
    async ({ method, target, headers, body, signal }) => {
      const answer = await pool.send({
        method,
        url: upstream + target,
        headers: headersToUpstream(headers, 'changed'),
        body: change(await readBody(body, 64 * 1024 * 1024)),
        signal,
      });
      return { ...answer, headers: headersToClient(answer.headers, 'same') };
    },
    { port: 0, host: '127.0.0.1' },
  );
  return port;
}

/** Settings with which conversations of 20,000 tokens are folded. */
const folding: GatewaySettings = {
  tenant: 'local',
  triggers: { tokenBudget: { triggerTokens: 10_000, targetTokens: 5_000, bufferTokens: 1 } },
};

/** The whole gateway: routes, reading, counting, triggers, a SQLite store, the recall tool, threads for large bodies, receipts. */
async function wholeGateway(
  upstream: string,
  settings: GatewaySettings = {},
  archive?: ReceiptArchive,
): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'leporello-bench-'));
  const handler = assembleGateway(
    {
      urls: { openai: upstream, anthropic: upstream, gemini: upstream },
      offerRecall: 'always',
      ...settings,
    },
    {
      store: await sqliteStore({ file: join(folder, 'memory.db') }),
      secret: new Uint8Array(32).fill(1),
      upstream: undiciUpstream(),
      foldThread: foldThread(),
      whenIdle: idleMoment,
      log: { info: () => undefined, warn: () => undefined },
      ...(archive && { archive }),
    },
  );
  return (await serveNode(handler, { port: 0, host: '127.0.0.1' })).port;
}
