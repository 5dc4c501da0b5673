import { describe, expect, it } from 'vitest';
import type { Edit } from '../../conversation/edit.ts';
import type { FoldView } from '../../strategies/strategy.ts';
import { chatBody, readChat, type Step } from '../../../test/support/chat-conversation.ts';
import { foldView } from '../../../test/support/strategy-suite.ts';
import { stubsSuffice } from './summary.ts';

/** Texts of about 1,000 tokens each, by their characters. */
const read: Step = { calls: [{ name: 'read_file', input: '{}', result: 'x'.repeat(4_000) }] };
const said: Step = { assistant: 'y'.repeat(4_000) };

function willDo(steps: readonly Step[], amount: number, more: number, change: Partial<FoldView> = {}) {
  const view = foldView(readChat(chatBody([{ user: 'Go' }, ...steps])), {
    excess: { unit: 'tokens', amount },
    ...change,
  });
  return stubsSuffice(view, more);
}

describe('stubs of results', () => {
  it('are enough when they save the excess, including that of the expected growth', () => {
    const results = Array.from({ length: 10 }, () => read);
    // They save 9,400 of about 10,400 tokens now, and the same share of the growth.
    expect(willDo(results, 9_000, 0)).toBe(true);
    expect(willDo(results, 11_000, 0)).toBe(false);
    expect(willDo(results, 11_000, 5_000)).toBe(true);
    expect(willDo(results, 15_000, 5_000)).toBe(false);
  });

  it('are not enough for prose, nor when messages are counted', () => {
    const mixed = Array.from({ length: 5 }, () => [read, said]).flat();
    expect(willDo(mixed, 9_000, 0)).toBe(false);
    expect(willDo(mixed, 9_000, 5_000)).toBe(false);
    expect(willDo(mixed, 9_000, 10_000)).toBe(true);
    expect(willDo([read], 1, 0, { excess: { unit: 'messages', amount: 1 } })).toBe(false);
  });

  it('are estimated from the messages since the last fold: an existing stub saves nothing more', () => {
    const stub: Edit = {
      kind: 'replace-text',
      at: { message: 2, part: 0, text: 0 },
      stub: 'x',
      memory: 'mem_1',
    };
    expect(willDo([read], 900, 0)).toBe(true);
    expect(willDo([read], 900, 0, { edits: [stub] })).toBe(false);
    // All messages after the stub are prose, so the growth is expected to be prose, too.
    expect(willDo([read, said, said], 900, 50_000, { edits: [stub] })).toBe(false);
  });
});
