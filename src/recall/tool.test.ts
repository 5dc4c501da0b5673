import { describe, expect, it } from 'vitest';
import { recallToolFor } from './tool.ts';

const name = (...taken: string[]): string => recallToolFor(taken).name;

describe('the recall tool', () => {
  it('is the same every time, so that the prefix stays cached', () => {
    expect(recallToolFor(['search'])).toEqual({
      name: 'read_memory',
      description:
        'Older parts of this conversation are folded into [bracketed notes]; nothing is lost. Ask before you redo a step or guess. ' +
        'id: shows what a note stands for, with lines "10-40" or path "$.content" a part of it, with query the places that share its words. ' +
        'query alone searches all notes.',
      parameters: {
        type: 'object',
        properties: {
          id: { type: 'string' },
          query: { type: 'string' },
          lines: { type: 'string' },
          path: { type: 'string' },
        },
      },
    });
    expect(JSON.stringify(recallToolFor([]))).toBe(JSON.stringify(recallToolFor(['a', 'b'])));
  });

  it('requires an id when the stubs of the conversation are unknown', () => {
    const { description, parameters } = recallToolFor([], 'id');
    expect(description).not.toContain('query alone');
    expect(parameters).toMatchObject({ required: ['id'] });
  });

  it('uses another name when the client already offers a tool of that name', () => {
    expect(name('read_memory')).toBe('leporello_read_memory');
    expect(name('read_memory', 'leporello_read_memory')).toBe('leporello_read_memory_2');
    expect(name('read_memory', 'leporello_read_memory', 'leporello_read_memory_2')).toBe(
      'leporello_read_memory_3',
    );
    expect(name('leporello_read_memory')).toBe('read_memory');
  });
});
