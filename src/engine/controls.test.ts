import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { withFolds, withPin, withUndone, type TenantControls } from '../store/controls.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { chatBody } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';

const none: TenantControls = { pinnedTools: [], undone: [] };

const resultOf = (at: number) =>
  Array.from({ length: 90 }, (_, line) => `job ${at}, ${line * 7919 + at} rows`).join('\n');

const request = (turns: number, controls: TenantControls = none) => ({
  codec: openaiChat,
  body: chatBody(
    [
      { user: 'Run all jobs.' },
      ...Array.from({ length: turns }, (_, at) => ({
        calls: [{ name: at % 2 === 0 ? 'read' : 'run', input: `{"n":${at}}`, result: resultOf(at) }],
      })),
    ],
    { tools: ['run', 'read'], model: 'gpt-4o' },
  ),
  tenant: 'tenant',
  controls,
});

const budget = { tokenBudget: { triggerTokens: 8_000, targetTokens: 3_000, bufferTokens: 1 } };

/** Engines over one store, with a clock that the test sets. */
function shared(window = 128_000) {
  const store = inMemoryStore();
  let now = 1_000;
  return {
    open: () => testEngine({ window, store, triggerOptions: budget, clock: () => now }).engine,
    setTime: (to: number) => void (now = to),
  };
}

describe('a conversation whose folds the user undid', () => {
  it('is sent as the client sent it from the next request on, by every instance, until the user wants folds again', async () => {
    const { open, setTime } = shared();
    const engine = open();
    const folded = await engine.prepare(request(12));
    expect(folded.report.steps.length).toBeGreaterThan(0);
    setTime(2_000);
    const undone = withUndone(none, folded.identity.beginning!, 2_000);
    for (const one of [engine, open()]) {
      for (const turns of [12, 13, 20]) {
        const came = request(turns, undone);
        const sent = await one.prepare(came);
        expect(Buffer.from(sent.body).equals(came.body)).toBe(true);
        expect(sent.identity.beginning).toBe(folded.identity.beginning);
      }
    }
    const again = await open().prepare(request(13, withFolds(undone, folded.identity.beginning!)));
    expect(again.report.memories).toEqual(folded.report.memories);
  });

  it('is folded all the same if it would not fit, and that fold is repeated', async () => {
    const { open, setTime } = shared(20_000);
    const engine = open();
    const folded = await engine.prepare(request(12));
    const undone = withUndone(none, folded.identity.beginning!, 2_000);
    setTime(3_000);
    const forced = await engine.prepare(request(40, undone));
    expect(forced.report.trigger).toBe('must-fit');
    setTime(4_000);
    const bodies = await Promise.all([engine, open()].map((one) => one.prepare(request(40, undone))));
    for (const { body } of bodies) expect(Buffer.from(body).equals(forced.body)).toBe(true);
    const next = await open().prepare(request(41, undone));
    expect(next.report.memories).toEqual(expect.arrayContaining([...forced.report.memories]));
  });

  it('does not change other conversations', async () => {
    const { open } = shared();
    const undone = withUndone(none, 'another-beginning', 2_000);
    expect((await open().prepare(request(12, undone))).report.steps.length).toBeGreaterThan(0);
  });
});

describe('a pinned tool', () => {
  it('is not folded from the next request on; earlier folds of its results are repeated', async () => {
    const { open } = shared();
    const engine = open();
    const first = await engine.prepare(request(12));
    const pinned = withPin(none, 'read');
    const later = await engine.prepare(request(30, pinned));
    expect(later.report.memories).toEqual(expect.arrayContaining([...first.report.memories]));
    const detail = await later.detail!();
    const tools = new Set(detail!.edits.flatMap(({ by, tool }) => (by === 'fold' ? [tool] : [])));
    expect([...tools]).toEqual(['run']);
    expect(detail!.messages.filter(({ kept }) => kept === 'pinned').length).toBeGreaterThan(3);
  });
});
