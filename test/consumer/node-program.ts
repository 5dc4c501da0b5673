/** The entry points that need Node: stores, and the gateway in a server of the user's own. */
import { assembleGateway } from 'leporello/gateway';
import { serveNode, undiciUpstream } from 'leporello/gateway/node';
import { openMemory } from 'leporello/mcp';
import { httpStore } from 'leporello/stores/http';
import { redisStore } from 'leporello/stores/redis';
import { sqliteStore } from 'leporello/stores/sqlite';

export async function folds(data: string): Promise<string> {
  const memory = await openMemory({ data });
  return memory.listFolds({ limit: 3 });
}

export async function serve(): Promise<void> {
  const url = process.env['MEMORY_URL'];
  const store = url
    ? httpStore({ url })
    : process.env['REDIS_HOST'] === undefined
      ? await sqliteStore({ file: 'memory.sqlite' })
      : await redisStore({ host: process.env['REDIS_HOST'] });
  const handler = assembleGateway(
    { mode: 'observe', models: { 'qwen3*': { windowTokens: 32_000 } } },
    { store, secret: new Uint8Array(32), upstream: undiciUpstream(), log: console },
  );
  await serveNode(handler, { port: 0, host: '127.0.0.1' });
}
