/** What is measured: each target starts a server that forwards to the upstream. One more is one more entry in this table. */
import { mkdtemp } from 'node:fs/promises';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assembleGateway } from '../../src/gateway/app.ts';
import { headersToClient, headersToUpstream } from '../../src/gateway/http/http.ts';
import { readBody } from '../../src/gateway/http/body.ts';
import { serveNode } from '../../src/gateway/http/node-server.ts';
import { undiciUpstream } from '../../src/gateway/http/undici-upstream.ts';
import { sqliteStore } from '../../src/store/sqlite/sqlite.ts';

/** Starts a server in front of `upstream` (an origin) and gives its port. */
export type Target = (upstream: string) => Promise<number>;

export const targets: Readonly<Record<string, Target>> = {
  'raw pipe': rawPipe,
  'node rim': (upstream) => nodeRim(upstream, (body) => body),
  'rim + parse + stringify': (upstream) =>
    nodeRim(upstream, (body) =>
      new TextEncoder().encode(JSON.stringify(JSON.parse(new TextDecoder().decode(body)))),
    ),
  gateway: wholeGateway,
};

/** node:http into node:http, nothing looked at: what any gateway on Node can hope for. */
async function rawPipe(upstream: string): Promise<number> {
  const server = createServer((incoming, outgoing) => {
    const { method, headers } = incoming;
    const onward = httpRequest(upstream + (incoming.url ?? '/'), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    incoming.pipe(onward);
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

/** Our rims with nothing between them but what is done to the whole body. */
async function nodeRim(upstream: string, change: (body: Uint8Array) => Uint8Array): Promise<number> {
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

/** Everything: routes, reading, counting, triggers, a SQLite store, the recall tool added, the receipt. */
async function wholeGateway(upstream: string): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'leporello-bench-'));
  const handler = assembleGateway(
    { urls: { openai: upstream, anthropic: upstream }, offerRecall: 'always' },
    {
      store: await sqliteStore({ file: join(folder, 'memory.db') }),
      secret: new Uint8Array(32).fill(1),
      upstream: undiciUpstream(),
      log: { info: () => undefined, warn: () => undefined },
    },
  );
  return (await serveNode(handler, { port: 0, host: '127.0.0.1' })).port;
}
