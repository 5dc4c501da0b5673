import { expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { chatBody, type Step } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';

const steps = (turns: number): readonly Step[] => [
  { user: 'Run all jobs.' },
  ...Array.from({ length: turns }, (_, at) => ({
    calls: [{ name: 'run', input: `{"n":${at}}`, result: `job ${at} took ${at} ms\n`.repeat(100) }],
  })),
];
const request = (turns: number) => ({
  codec: openaiChat,
  body: chatBody(steps(turns), { tools: ['run'], model: 'gpt-4o' }),
  tenant: 'tenant',
});

it("an engine in observe mode sends the client's body, and reports turn by turn what folding would have sent", async () => {
  const observing = testEngine({ window: 20_000, mode: 'observe' }).engine;
  const folding = testEngine({ window: 20_000 }).engine;
  for (const turns of [5, 30, 31, 60]) {
    const came = request(turns);
    const observed = await observing.prepare(came);
    const folded = await folding.prepare(came);
    expect(observed.body).toBe(came.body);
    expect([observed.outcome, observed.recallTool]).toEqual([{ status: 'observed' }, undefined]);
    // Each engine has a fold of its own.
    expect({ ...observed.report, fold: undefined }).toEqual({ ...folded.report, fold: undefined });
  }
});

it('a folding engine finds nothing that was only observed', async () => {
  const store = inMemoryStore();
  const { engine, encryptedStore } = testEngine({ window: 20_000, mode: 'observe', store });
  const { report } = await engine.prepare(request(30));
  expect(report.memories.length).toBeGreaterThan(1);
  expect(await encryptedStore.recall('tenant', report.memories[0]!)).toEqual({ status: 'missing' });
  const folding = testEngine({ window: 1_000_000, store }).engine;
  expect((await folding.prepare(request(30))).report.replayed).toBe(0);
});
