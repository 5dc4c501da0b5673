import { describe, expect, it } from 'vitest';
import { chatBody, readChat } from '../../test/support/chat-conversation.ts';
import { foldView, strategySuite } from '../../test/support/strategy-suite.ts';
import { clipNewest } from './clip-newest.ts';

strategySuite(clipNewest());

const lines = Array.from({ length: 1_000 }, (_, at) => `line ${at + 1}`).join('\n');

function clipped(result: string, amount: number): string {
  const conversation = readChat(chatBody([{ user: 'Go' }, { calls: [{ name: 'run', result }] }]));
  const view = foldView(conversation, {
    idOf: () => 'mem_0123456789abcdef',
    excess: { unit: 'tokens', amount },
  });
  const [edit] = clipNewest().propose(view);
  return edit?.kind === 'replace-text' ? edit.stub : '';
}

describe('clip-newest', () => {
  it('keeps whole lines of the beginning and the end, and says what is missing', () => {
    const text = clipped(lines, 1_800);
    expect(text).toBe(
      lines.slice(0, lines.indexOf('\nline 92') + 1) +
        '[Folded 7696 characters with lines 92-947 of this text. To read it again call read_memory with {"id":"mem_0123456789abcdef"}.]\n' +
        lines.slice(lines.indexOf('line 948')),
    );
  });

  it('saves the requested amount', () => {
    expect(Math.ceil(clipped(lines, 1_800).length / 4)).toBeLessThanOrEqual(
      Math.ceil(lines.length / 4) - 1_800,
    );
  });

  it('keeps only the stub if nothing else would fit', () => {
    expect(clipped(lines, 1_000_000)).toBe(
      `[Folded ${lines.length} characters with lines 1-1000 of this text. To read it again call read_memory with {"id":"mem_0123456789abcdef"}.]`,
    );
  });

  it('never splits a character of a text without lines', () => {
    const text = clipped('😀'.repeat(3_000), 700);
    expect(text.isWellFormed()).toBe(true);
    expect(text.startsWith('😀')).toBe(true);
  });

  it('clips results before user messages', () => {
    const conversation = readChat(chatBody([{ user: lines }, { calls: [{ name: 'run', result: lines }] }]));
    const edits = clipNewest().propose(foldView(conversation, { excess: { unit: 'tokens', amount: 100 } }));
    expect(edits.map((edit) => edit.kind === 'replace-text' && edit.at.message)).toEqual([2]);
  });

  it('never clips a system text', () => {
    const conversation = readChat(chatBody([{ system: lines }]));
    expect(clipNewest().propose(foldView(conversation))).toEqual([]);
  });
});
