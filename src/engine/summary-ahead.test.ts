import { describe, expect, it } from 'vitest';
import type { Edit } from '../conversation/edit.ts';
import type { FoldView } from '../strategies/strategy.ts';
import { chatBody, readChat, type Step } from '../../test/support/chat-conversation.ts';
import { foldView } from '../../test/support/strategy-suite.ts';
import { stubsSuffice } from './summary-ahead.ts';

/** About 1,000 tokens each, by characters. */
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
  it('will do where they save what will be too much, what is to come counted in', () => {
    const results = Array.from({ length: 10 }, () => read);
    // 9,400 of some 10,400 tokens now, and as large a part of what comes.
    expect(willDo(results, 9_000, 0)).toBe(true);
    expect(willDo(results, 11_000, 0)).toBe(false);
    expect(willDo(results, 11_000, 5_000)).toBe(true);
    expect(willDo(results, 15_000, 5_000)).toBe(false);
  });

  it('will not do for what was said, nor where messages are counted', () => {
    const mixed = Array.from({ length: 5 }, () => [read, said]).flat();
    expect(willDo(mixed, 9_000, 0)).toBe(false);
    expect(willDo(mixed, 9_000, 5_000)).toBe(false);
    expect(willDo(mixed, 9_000, 10_000)).toBe(true);
    expect(willDo([read], 1, 0, { excess: { unit: 'messages', amount: 1 } })).toBe(false);
  });

  it('are taken for what they were since the last fold: what is a stub already saves nothing more', () => {
    const stub: Edit = {
      kind: 'replace-text',
      at: { message: 2, part: 0, text: 0 },
      stub: 'x',
      memory: 'mem_1',
    };
    expect(willDo([read], 900, 0)).toBe(true);
    expect(willDo([read], 900, 0, { edits: [stub] })).toBe(false);
    // What came behind the stub is all prose, so what comes is taken to be prose, too.
    expect(willDo([read, said, said], 900, 50_000, { edits: [stub] })).toBe(false);
  });
});
