import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import type { Store } from '../store/store.ts';
import { asAnthropic } from '../../test/support/as-anthropic.ts';
import { chatBody, jobSteps } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';

const minute = 60_000;

const bodyOf = (turns: number) => chatBody(jobSteps(turns), { tools: ['run'], model: 'any' });
const request = (turns: number) => ({ codec: openaiChat, body: bodyOf(turns), tenant: 'tenant' });

/** One of several gateways on one store. Cache reads cost so little that they never trigger a fold. */
function gateway(store: Store, clock: () => number) {
  return testEngine({
    store,
    clock,
    window: 1_000_000,
    triggerOptions: { tokenBudget: false, coldCache: { keepForRequests: 4, minTokens: 500 } },
    pricesFor: () => Promise.resolve({ read: 0.000_1, write: 1.25, keptMs: 5 * minute }),
  }).engine;
}

function start() {
  let now = 1_000_000;
  const store = inMemoryStore();
  const clock = () => now;
  return {
    another: () => gateway(store, clock),
    engine: gateway(store, clock),
    pass: (ms: number) => {
      now += ms;
    },
  };
}

type GatewayEngine = ReturnType<typeof gateway>;

async function triggerOf(engine: GatewayEngine, turns: number): Promise<string | undefined> {
  const { report } = await engine.prepare(request(turns));
  return report.steps.some(({ edits }) => edits > 0) ? report.trigger : undefined;
}

describe('a conversation that continues after a pause', () => {
  it('is folded when its cache has expired, and stays folded', async () => {
    const { engine, pass } = start();
    expect(await triggerOf(engine, 12)).toBeUndefined();
    pass(5 * minute);
    expect(await triggerOf(engine, 13)).toBeUndefined();
    pass(5 * minute + 1);
    const { body, report } = await engine.prepare(request(14));
    expect(report.trigger).toBe('cold-cache');
    expect(report.tokensAfter).toBeLessThan(report.tokensBefore! / 2);
    expect((await engine.prepare(request(14))).body).toEqual(body);
    expect(await triggerOf(engine, 15)).toBeUndefined();
  });

  it('measures the pause from the last time that the same request was sent or counted', async () => {
    const { engine, pass } = start();
    await engine.prepare(request(12));
    pass(4 * minute);
    await engine.prepare(request(12));
    pass(4 * minute);
    expect(await triggerOf(engine, 13)).toBeUndefined();
  });

  it('is not folded by a gateway that may have missed requests', async () => {
    const { engine, another, pass } = start();
    const other = another();
    await engine.prepare(request(12));
    for (const turns of [13, 14, 15]) {
      pass(3 * minute);
      await other.prepare(request(turns));
    }
    expect(await triggerOf(engine, 16)).toBeUndefined();
    expect(await triggerOf(another(), 16)).toBeUndefined();
  });

  it('is folded by any gateway directly after a fold, because the time of a fold is stored', async () => {
    const { engine, another, pass } = start();
    await engine.prepare(request(12));
    pass(6 * minute);
    expect(await triggerOf(engine, 13)).toBe('cold-cache');
    pass(6 * minute);
    // Two replies later, another gateway sent the previous request at an unknown time.
    expect(await triggerOf(another(), 15)).toBeUndefined();
    expect(await triggerOf(another(), 14)).toBe('cold-cache');
  });

  it('is never folded for a pause with a constant clock', async () => {
    const { engine } = start();
    for (const turns of [12, 13, 14]) expect(await triggerOf(engine, turns)).toBeUndefined();
  });

  it('counts as cached for as long as the client asks for', async () => {
    const ask = async (ttl: string, pause: number) => {
      const { engine, pass } = start();
      const mark = { cache_control: { type: 'ephemeral', ...(ttl === '' ? {} : { ttl }) } };
      const send = (turns: number) => {
        const body = JSON.parse(new TextDecoder().decode(asAnthropic(bodyOf(turns)))) as {
          messages: { content: unknown }[];
        };
        body.messages[0]!.content = [{ type: 'text', text: 'Run all jobs.', ...mark }];
        return engine.prepare({
          codec: anthropicMessages,
          body: new TextEncoder().encode(JSON.stringify(body)),
          tenant: 'tenant',
        });
      };
      await send(12);
      pass(pause);
      return (await send(13)).report.trigger;
    };
    expect(await ask('', 6 * minute)).toBe('cold-cache');
    expect(await ask('5m', 6 * minute)).toBe('cold-cache');
    expect(await ask('1h', 6 * minute)).toBeUndefined();
    expect(await ask('1h', 61 * minute)).toBe('cold-cache');
  });
});
