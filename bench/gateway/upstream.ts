/** Serves the upstream of benchmarks: it answers every request with the same small completion. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Starts an upstream that reads the body and answers as fast as node:http can. Returns its origin. */
export async function startUpstream(): Promise<string> {
  const message = { role: 'assistant', content: 'The build is red because of the lockfile.' };
  const usage = { prompt_tokens: 60_000, completion_tokens: 12, total_tokens: 60_012 };
  const choices = [{ index: 0, message, finish_reason: 'stop' }];
  const answer = JSON.stringify({
    id: 'x',
    object: 'chat.completion',
    created: 0,
    model: 'm',
    choices,
    usage,
  });
  // A target waits for its turn for longer than the usual 5 s, and would then send on a connection that is just being closed.
  const server = createServer({ keepAliveTimeout: 600_000 }, (incoming, outgoing) => {
    incoming.resume().once('end', () => {
      outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length });
      outgoing.end(answer);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
