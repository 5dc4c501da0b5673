/**
 * Tests through whole gateways that a conversation stays in its arm, without the name of a session by which the draw would repeat itself: after a restart, in a
 * second gateway and on a branch. On a SQLite file, and on a real Redis where one is installed.
 */
import { describe, expect, it } from 'vitest';
import type { GatewaySettings } from '../../src/gateway/app.ts';
import type { Script } from '../support/fake-provider/script.ts';
import { redisStore } from '../../src/store/redis/redis.ts';
import { isRedisMissing, startRedis } from '../support/redis-server.ts';
import { post } from './bodies.ts';
import { countedBody, countedSettings } from './counted-results.ts';
import { startStack } from './stack.ts';

const settings: GatewaySettings = {
  ...countedSettings,
  experiment: { holdout: 0.5, control: 'untouched' },
};

const script: Script = () => ({ type: 'turn', parts: [{ type: 'text', text: 'Done.' }] });

/** Conversations: if an arm were drawn again, nearly always some of them would change it. */
const conversations = Array.from({ length: 12 }, (_, at) => at);

/** Starts a gateway on a store that a restart leaves as it is. */
async function startOn(name: string) {
  if (name === 'SQLite') return startStack(script, settings);
  const redis = await startRedis();
  const store = await redisStore({ port: redis.port });
  const stack = await startStack(script, settings, { store: { ...store, close: async () => undefined } });
  return {
    provider: stack.provider,
    get url() {
      return stack.url;
    },
    restart: () => stack.restart(),
    another: () => stack.another(),
    async [Symbol.asyncDispose]() {
      await stack[Symbol.asyncDispose]();
      await store.close();
      await redis[Symbol.asyncDispose]();
    },
  };
}

describe.each(isRedisMissing ? ['SQLite'] : ['SQLite', 'Redis'])(
  'a conversation without a session, on %s',
  (name) => {
    it('keeps its arm after a restart, in a second gateway and on branches', async () => {
      await using stack = await startOn(name);
      /** Sends a request of each conversation. Returns which went out as the client sent them. */
      const untouched = async (url: string, jobs: number, branch = '') => {
        const arms: boolean[] = [];
        for (const at of conversations) {
          const parsed = JSON.parse(countedBody(jobs).replace('Run all jobs.', `Conversation ${at}`)) as {
            messages: object[];
          };
          if (branch !== '') parsed.messages.push({ role: 'user', content: branch });
          const body = JSON.stringify(parsed);
          await (await post(url, 'messages', body)).text();
          arms.push(Buffer.from(stack.provider.requests.at(-1)!.body).equals(Buffer.from(body)));
        }
        return arms;
      };
      expect(await untouched(stack.url, 3)).toEqual(conversations.map(() => true));
      const arms = await untouched(stack.url, 4);
      expect(new Set(arms)).toEqual(new Set([true, false]));
      const second = await stack.another();
      expect(await untouched(second, 5)).toEqual(arms);
      await stack.restart();
      expect(await untouched(stack.url, 6)).toEqual(arms);
      for (const branch of ['One way.', 'Another way.']) {
        expect(await untouched(second, 5, branch)).toEqual(arms);
        expect(await untouched(stack.url, 6, branch)).toEqual(arms);
      }
    });
  },
);
