/** Counts the round trips to a real Redis of requests that need more of the store than most: at most one to read and one to write. */
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { redisStore } from '../../src/store/redis/redis.ts';
import type { JsonObject, ScriptRequest, Turn, TurnPart } from '../support/fake-provider/script.ts';
import { isRedisMissing, startRedis } from '../support/redis-server.ts';
import { longBody, post } from './bodies.ts';
import { type CountingProxy, startCountingProxy } from './counting-proxy.ts';
import { startStack } from './stack.ts';

describe.skipIf(isRedisMissing)('round trips to a Redis store', () => {
  it('for a summary that was written in the background: no more than without one, in a new process', async () => {
    await using redis = await startRedis();
    await using proxy = await startCountingProxy(redis.port);
    const settings = {
      summaries: { kind: 'model' },
      shrinks: false,
      calibration: false,
      models: { '*': { tokenizer: { encoding: 'o200k_base' } } },
      triggers: {
        tokenBudget: { triggerTokens: 20_000, targetTokens: 600, bufferTokens: 1 },
        cacheRent: false,
        coldCache: false,
      },
    } as const;
    const script = ({ body }: ScriptRequest) => says(isForSummary(body) ? 'Job ZEBRA-17 is next.' : 'Hello.');
    {
      await using stack = await startStack(script, settings, { store: await connected(proxy) });
      await (await post(stack.url, 'chat', longBody('chat', 14))).text();
      await eventually(() => expect(stack.logged.join('\n')).toContain('a summary is ready'));
    }
    await using fresh = await startStack(script, settings, { store: await connected(proxy) });
    const count = async (jobs: number): Promise<number> => {
      proxy.taken();
      const response = await post(fresh.url, 'chat', longBody('chat', jobs));
      expect(response.status).toBe(200);
      await response.text();
      return proxy.taken();
    };
    expect(await count(15)).toBe(2);
    expect(await count(25)).toBe(2);
    expect(fresh.provider.requests.map(({ body }) => Buffer.from(body).toString()).at(-1)).toContain(
      'ZEBRA-17',
    );
  });

  it('for a request that continues a reply that the provider stores', async () => {
    await using redis = await startRedis();
    await using proxy = await startCountingProxy(redis.port);
    const settings = { models: { '*': { windowTokens: 12_000 } } };
    let asked = 0;
    const script = ({ body }: ScriptRequest): Turn => {
      const id = /mem_[0-9a-z]{16}/.exec(JSON.stringify(body))?.[0] ?? 'mem_none';
      const turns = [call('read_memory', { id }), call('run'), text('Done.')];
      return { type: 'turn', parts: [turns[asked++]!] };
    };
    await using one = await startStack(script, settings, { store: await connected(proxy) });
    await using other = await startStack(script, settings, {
      store: await connected(proxy),
      upstreamUrl: one.provider.url,
    });
    const count = async (url: string, body: JsonObject) => {
      proxy.taken();
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'dummy', maxRetries: 0 });
      const reply = await client.responses.stream(body).finalResponse();
      return { reply, trips: proxy.taken() };
    };
    const long = JSON.parse(longBody('responses', 30)) as JsonObject;
    const nextOf = (reply: OpenAI.Responses.Response, output: string): JsonObject => ({
      model: long['model'],
      tools: long['tools'],
      previous_response_id: reply.id,
      input: reply.output.flatMap((item) =>
        item.type === 'function_call'
          ? [{ type: 'function_call_output', call_id: item.call_id, output }]
          : [],
      ),
    });
    // The request folds; at the end of its reply the recall is stored together with how to continue it.
    const first = await count(one.url, { ...long, store: true });
    expect(first.trips).toBe(3);
    const second = await count(other.url, nextOf(first.reply, 'ok'));
    expect(second.trips).toBe(1);
    const names = one.provider.requests.map(({ body }) => {
      const { previous_response_id: name } = JSON.parse(Buffer.from(body).toString()) as JsonObject;
      return name;
    });
    expect(names[2]).not.toBe(first.reply.id);
  });
});

const isForSummary = (body: unknown) =>
  JSON.stringify(body).includes('You write down what an agent has done');

const text = (said: string): TurnPart => ({ type: 'text', text: said });
const call = (name: string, args: JsonObject = {}): TurnPart => ({
  type: 'tool-call',
  name,
  arguments: args,
});
const says = (said: string): Turn => ({ type: 'turn', parts: [text(said)] });

/** Opens a store as another process would, and waits for its connection. */
async function connected(proxy: CountingProxy) {
  const store = await redisStore({ port: proxy.port });
  await store.get('connected');
  return store;
}
