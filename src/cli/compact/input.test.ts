import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { byteLines, type InputLine } from './input.ts';

async function linesOf(chunks: readonly Uint8Array[]): Promise<readonly InputLine[]> {
  const lines: InputLine[] = [];
  for await (const line of byteLines(chunksOf(chunks))) lines.push(line);
  return lines;
}

async function* chunksOf(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (array: Uint8Array) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(array);

describe('byteLines', () => {
  it('splits at line feeds and numbers the lines', async () => {
    const lines = await linesOf([bytes('a\n\nb\r'), bytes('\nc')]);
    expect(lines.map((line) => [line.number, text(line.bytes), text(line.end)])).toEqual([
      [1, 'a', '\n'],
      [2, '', '\n'],
      [3, 'b\r', '\n'],
      [4, 'c', ''],
    ]);
  });

  it('removes a byte order mark only from the first line', async () => {
    const lines = await linesOf([bytes('\uFEFFa\n\uFEFFb\n')]);
    expect(lines.map((line) => text(line.bytes))).toEqual(['a', '\uFEFFb']);
  });

  it('yields nothing for empty input', async () => {
    expect(await linesOf([])).toEqual([]);
    expect(await linesOf([bytes('')])).toEqual([]);
  });

  it('loses no byte, however the input is split', async () => {
    const piece = fc.constantFrom('\n', 'a', '\r\n', '{"k": 1}', 'ü');
    await fc.assert(
      fc.asyncProperty(fc.array(piece), fc.array(fc.nat(40)), async (pieces, cuts) => {
        const whole = bytes(pieces.join(''));
        const places = [0, ...cuts.filter((cut) => cut < whole.length).sort((a, b) => a - b), whole.length];
        const chunks = places.slice(1).map((end, i) => whole.subarray(places[i], end));
        const lines = await linesOf(chunks);
        expect(text(Buffer.concat(lines.flatMap((line) => [line.bytes, line.end])))).toBe(text(whole));
        expect(lines.every((line) => !line.bytes.includes(10))).toBe(true);
      }),
    );
  });
});
