/** A proxy that counts round trips to a server. A round trip begins with the first data sent after an answer. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export type CountingProxy = AsyncDisposable & {
  readonly port: number;
  /** Returns the round trips since the last call. */
  taken(): number;
};

export async function startCountingProxy(target: number): Promise<CountingProxy> {
  let trips = 0;
  let last: 'sent' | 'answered' = 'answered';
  const open = new Set<Socket>();

  function pass(from: Socket, to: Socket, direction: typeof last): void {
    open.add(from);
    from.on('data', (chunk) => {
      if (direction === 'sent' && last === 'answered') trips += 1;
      last = direction;
      to.write(chunk);
    });
    from.on('error', () => to.destroy());
    from.on('close', () => {
      open.delete(from);
      to.destroy();
    });
  }

  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    pass(client, upstream, 'sent');
    pass(upstream, client, 'answered');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    taken() {
      const count = trips;
      trips = 0;
      return count;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
