import { describe, expect, it } from 'vitest';
import { isMemoryId } from './encrypted-store.ts';
import { base32Of } from './encrypted-store.ts';

describe('isMemoryId', () => {
  it('recognizes the form of an id', () => {
    expect(isMemoryId('mem_0123456789abcdef')).toBe(true);
    expect(isMemoryId('mem_ghjkmnpqrstvwxyz')).toBe(true);
  });

  it.each([
    'mem_0123456789abcde',
    'mem_0123456789abcdefg',
    'mem_0123456789ABCDEF',
    'mem_0123456789abcdei',
    'mem_0123456789abcdel',
    'mem_0123456789abcdeo',
    'mem_0123456789abcdeu',
    'mem-0123456789abcdef',
    ' mem_0123456789abcdef',
    'mem_0123456789abcdef\n',
    '',
  ])('refuses %j', (text) => expect(isMemoryId(text)).toBe(false));
});

describe('base32Of', () => {
  it('encodes 80 bits, five at a time, highest first', () => {
    expect(base32Of(new Uint8Array(10))).toBe('0000000000000000');
    expect(base32Of(new Uint8Array(32).fill(255))).toBe('zzzzzzzzzzzzzzzz');
    expect(base32Of(new Uint8Array([0x08, 0x42, 0x10, 0x84, 0x21, 0, 0, 0, 0, 0x1f, 0xff]))).toBe(
      '111111110000000z',
    );
  });
});
