import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { chatBody, type Step } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import type { TriggerState } from '../triggers/trigger.ts';

/** Counts one token for each number, and 1,000 for a tool. */
const counter: TokenCounter = {
  name: 'numbers',
  exact: true,
  count: (text) => text.match(/\b\d+\b/g)?.length ?? 0,
  image: () => 0,
  overhead: { message: 0, tool: 1_000, request: 0 },
};

const numbers = (count: number) => Array.from({ length: count }, (_, at) => `${at}`).join(' ');
const result = (tokens: number): Step => ({ calls: [{ name: 'run', result: numbers(tokens) }] });

/** Returns the state that triggers see. */
async function stateOf(
  steps: readonly Step[],
  { tools = ['run'], texts = [] as readonly string[] } = {},
): Promise<Pick<TriggerState, 'tokens' | 'fixed'>> {
  let seen: TriggerState | undefined;
  const { engine } = testEngine({
    counterFor: () => Promise.resolve(counter),
    pins: { tools: [], texts },
    offerRecall: 'never',
    triggers: [
      {
        name: 'onlooker',
        demand(state) {
          seen = state;
          return undefined;
        },
      },
    ],
  });
  const body = chatBody(steps, { tools, model: 'm' });
  await engine.prepare({ codec: openaiChat, body, tenant: 'tenant' });
  return { tokens: seen!.tokens, fixed: seen!.fixed };
}

describe('the tokens that no fold can remove', () => {
  const talk: readonly Step[] = [
    { system: numbers(100) },
    { user: numbers(50) },
    ...[400, 500, 600].map(result),
    { user: numbers(30) },
    result(700),
  ];

  it('are tools, system, the last user message and the newest results', async () => {
    expect(await stateOf(talk)).toMatchObject({ tokens: 3_380, fixed: 1_000 + 100 + 30 + 700 });
  });

  it('grow with the tools, and the foldable tokens do not', async () => {
    const states = [await stateOf(talk, { tools: ['run', 'look', 'write'] }), await stateOf(talk)];
    expect(states.map(({ tokens, fixed = 0 }) => [tokens, tokens - fixed])).toEqual([
      [5_380, 1_550],
      [3_380, 1_550],
    ]);
  });

  it('include pinned results and their calls', async () => {
    expect((await stateOf(talk, { texts: ['498 499'] })).fixed).toBe(1_830 + 500 + 600);
  });

  it('are all tokens when nothing may be dropped', async () => {
    const all = await stateOf([{ system: numbers(10) }, { user: numbers(20) }, result(30)]);
    expect(all).toMatchObject({ tokens: 1_060, fixed: 1_060 });
  });
});
