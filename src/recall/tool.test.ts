import { describe, expect, it } from 'vitest';
import { recallToolFor } from './tool.ts';

const name = (...taken: string[]): string => recallToolFor(taken).name;

describe('the recall tool', () => {
  it('is the same every time, so that the prefix it stands in stays cached', () => {
    expect(recallToolFor(['search'])).toEqual({
      name: 'read_memory',
      description:
        'Parts of this conversation were moved to memory to save space; a stub with an id stands in their place. ' +
        'Read the original whenever you need more than the stub says; never guess it. Use query, lines or path to get only a part.',
      parameters: {
        type: 'object',
        properties: {
          id: { type: 'string', description: 'Id in the stub' },
          query: { type: 'string', description: 'Words or exact value to find' },
          lines: { type: 'string', description: 'Line range: "10-40", "100-", "-20" (last 20)' },
          path: { type: 'string', description: 'JSON path: $.items[0].name' },
        },
        required: ['id'],
        additionalProperties: false,
      },
    });
    expect(JSON.stringify(recallToolFor([]))).toBe(JSON.stringify(recallToolFor(['a', 'b'])));
  });

  it('takes another name where the client already offers a tool of that name', () => {
    expect(name('read_memory')).toBe('leporello_read_memory');
    expect(name('read_memory', 'leporello_read_memory')).toBe('leporello_read_memory_2');
    expect(name('read_memory', 'leporello_read_memory', 'leporello_read_memory_2')).toBe(
      'leporello_read_memory_3',
    );
    expect(name('leporello_read_memory')).toBe('read_memory');
  });
});
