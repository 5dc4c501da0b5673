import { once } from 'node:events';
import { type AddressInfo, type Socket, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { undiciUpstream } from './undici-upstream.ts';

it('a request that is aborted while its connection is being made ends at once', async () => {
  // It accepts connections and never answers, so the TLS handshake never ends.
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const upstream = undiciUpstream({ connectTimeoutMs: 10 * 60_000 });
  const leaving = new AbortController();
  const sent = upstream.send({
    method: 'GET',
    url: `https://127.0.0.1:${port}/`,
    headers: [],
    body: undefined,
    signal: leaving.signal,
  });
  await once(silent, 'connection');
  leaving.abort();
  await expect(sent).rejects.toMatchObject({
    code: 'upstream-failed',
    message: `The request to https://127.0.0.1:${port} was canceled.`,
  });
  await upstream.cut();
  for (const socket of sockets) socket.destroy();
  silent.close();
});
