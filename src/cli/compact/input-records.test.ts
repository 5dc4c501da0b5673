import { describe, expect, it } from 'vitest';
import { byteLines, recordsOf } from './input.ts';

const text = (array: Uint8Array) => new TextDecoder().decode(array);

async function* one(input: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(input);
}

async function records(input: string): Promise<readonly (readonly [number, string, string])[]> {
  const found: (readonly [number, string, string])[] = [];
  for await (const { number, bytes, end } of recordsOf(byteLines(one(input)))) {
    found.push([number, text(bytes), text(end)]);
  }
  return found;
}

describe('recordsOf', () => {
  it('reads each line as a record when the first line is an object by itself', async () => {
    expect(await records('{"messages":[]}\nbad\n\n{}\n')).toEqual([
      [1, '{"messages":[]}', '\n'],
      [2, 'bad', '\n'],
      [3, '', '\n'],
      [4, '{}', '\n'],
    ]);
  });

  it('reads a document over many lines as one record', async () => {
    const document = '{\n  "messages": [\n{"role":"user","content":"hi"}\n  ]\n}';
    expect(await records(`${document}\n`)).toEqual([[1, document, '\n']]);
    expect(await records(`\n \n${document}`)).toEqual([
      [1, '', '\n'],
      [2, ' ', '\n'],
      [3, document, ''],
    ]);
  });

  it('recognizes lines when the first ones are broken', async () => {
    expect(await records('{"messages":[{"ro\nnothing\n{"messages":[]}\n{"a":1}')).toEqual([
      [1, '{"messages":[{"ro', '\n'],
      [2, 'nothing', '\n'],
      [3, '{"messages":[]}', '\n'],
      [4, '{"a":1}', ''],
    ]);
  });

  it('reads input that is not JSON as one record', async () => {
    expect(await records('a\nb\n')).toEqual([[1, 'a\nb', '\n']]);
    expect(await records('')).toEqual([]);
  });
});
