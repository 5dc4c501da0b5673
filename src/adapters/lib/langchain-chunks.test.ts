import { AIMessageChunk } from '@langchain/core/messages';
import { describe, expect, it } from 'vitest';
import { openChunks } from './langchain-chunks.ts';

const chunk = (content: AIMessageChunk['content'], name?: string) =>
  new AIMessageChunk({
    content,
    tool_call_chunks: name === undefined ? [] : [{ index: 0, id: 'c', name, args: '{}' }],
  });

describe('the text of a stream that holds it back', () => {
  const textsOf = (show: ReturnType<typeof openChunks>, chunks: readonly AIMessageChunk[]) =>
    chunks.map((one) => show.take(one).message.content);

  it('is shown once it begins like JSON', () => {
    const show = openChunks(new Set(['read_memory']), true);
    expect(textsOf(show, [chunk(' '), chunk('\n{"a'), chunk('":1}')])).toEqual(['', ' \n{"a', '":1}']);
    expect([show.isHolding(), show.end().message.content]).toEqual([false, '']);
  });

  it('is dropped when the reply goes on after a recall, and shown at the end of the last round', () => {
    const show = openChunks(new Set(['read_memory']), true);
    expect(textsOf(show, [chunk('Let me'), chunk(' look.'), chunk('', 'read_memory')])).toEqual(['', '', '']);
    expect(show.isHolding()).toBe(true);
    show.endRound(undefined, true);
    expect(textsOf(show, [chunk('All '), chunk('well.')])).toEqual(['', '']);
    show.endRound(undefined, false);
    expect(show.end().message.content).toBe('All well.');
  });

  it('is shown ahead of a call of the program', () => {
    const show = openChunks(new Set(['read_memory']), true);
    const parts = [{ type: 'text', text: 'Reading.', index: 0 }];
    const thought = [{ type: 'thinking', thinking: 'Which?', index: 1 }];
    const shown = textsOf(show, [chunk(parts), chunk(thought), chunk([], 'read'), chunk('Then.')]);
    expect(shown).toEqual([[], thought, parts, 'Then.']);
  });
});

describe('reasoning beside the content', () => {
  it('is that of the last round: joined sealed copies would be refused', () => {
    const show = openChunks(new Set(['read_memory']), false);
    const sealed = (copy: string) =>
      new AIMessageChunk({ content: '', additional_kwargs: { reasoning: { encrypted_content: copy } } });
    for (const copy of ['one', 'two']) {
      expect(show.take(sealed(copy)).message.additional_kwargs).toEqual({});
      show.endRound(sealed(copy), copy === 'one');
    }
    expect(show.end().message.additional_kwargs).toEqual({ reasoning: { encrypted_content: 'two' } });
  });
});
