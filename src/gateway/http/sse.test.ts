import { createParser } from 'eventsource-parser';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { splitEvents } from './http.ts';

const utf8 = new TextEncoder();
const text = (bytes: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);

type Seen = { raw: string; event: string | undefined; data: string };

async function* streamOf(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield await Promise.resolve(chunk);
}

async function split(...chunks: (string | Uint8Array)[]): Promise<Seen[]> {
  const seen: Seen[] = [];
  const bytes = chunks.map((chunk) => (typeof chunk === 'string' ? utf8.encode(chunk) : chunk));
  for await (const { raw, event, data } of splitEvents(streamOf(bytes))) {
    seen.push({ raw: text(raw), event, data });
  }
  return seen;
}

const message = (raw: string, data: string, event?: string): Seen => ({ raw, event, data });

describe('splitEvents', () => {
  it('splits after each blank line and reads event and data', async () => {
    expect(await split('data: {"a":1}\n\nevent: ping\ndata: x\ndata: y\n\n')).toEqual([
      message('data: {"a":1}\n\n', '{"a":1}'),
      message('event: ping\ndata: x\ndata: y\n\n', 'x\ny', 'ping'),
    ]);
  });

  it('accepts every line ending, also mixed ones', async () => {
    expect(await split('data: a\r\n\r\ndata: b\r\rdata: c\n\r\ndata: d\r\n\rdata: e\r\n\n')).toEqual([
      message('data: a\r\n\r\n', 'a'),
      message('data: b\r\r', 'b'),
      message('data: c\n\r\n', 'c'),
      message('data: d\r\n\r', 'd'),
      message('data: e\r\n\n', 'e'),
    ]);
  });

  it('keeps a line feed that follows a bare carriage return with the next event', async () => {
    expect(await split('data: a\r\r\ndata: b\r\r')).toEqual([
      message('data: a\r\r', 'a'),
      message('\ndata: b\r\r', 'b'),
    ]);
  });

  it('yields comments and stray blank lines as events without data', async () => {
    expect(await split(': ping\n\n\ndata: a\n\n')).toEqual([
      message(': ping\n\n', ''),
      message('\n', ''),
      message('data: a\n\n', 'a'),
    ]);
  });

  it('skips a byte order mark only at the start', async () => {
    expect(await split('\uFEFFdata: a\n\n\uFEFFdata: b\n\n')).toEqual([
      message('\uFEFFdata: a\n\n', 'a'),
      message('\uFEFFdata: b\n\n', ''),
    ]);
    expect(await split('\uFEFF\ndata: a\n\n')).toEqual([
      message('\uFEFF\n', ''),
      message('data: a\n\n', 'a'),
    ]);
  });

  it('yields the bytes after the last blank line', async () => {
    expect(await split('data: a\n\nevent: e\ndata: b')).toEqual([
      message('data: a\n\n', 'a'),
      message('event: e\ndata: b', 'b', 'e'),
    ]);
    expect(await split('data: a\r\n\r')).toEqual([message('data: a\r\n\r', 'a')]);
    expect(await split('', '')).toEqual([]);
  });

  it('survives bytes that are not UTF-8', async () => {
    const raw = Uint8Array.of(0xef, 0xbb, 0x0a, 0xff, 0x0a, 0x0a);
    const events = [];
    for await (const event of splitEvents(streamOf([raw]))) events.push(event);
    expect(events).toEqual([{ raw, event: undefined, data: '' }]);
  });

  it.each(['\n\n', '\r\n\r\n', '\r\r'])(
    'yields an event before the next chunk is asked for (%j)',
    async (end) => {
      let asked = 0;
      async function* counted(): AsyncGenerator<Uint8Array> {
        for (const part of ['data: a', end, 'data: b']) {
          asked += 1;
          yield await Promise.resolve(utf8.encode(part));
        }
      }
      const events = splitEvents(counted());
      expect((await events.next()).value).toMatchObject({ data: 'a' });
      expect(asked).toBe(2);
      await events.return();
    },
  );

  it('ends the upstream when the reader stops', async () => {
    let ended = false;
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) yield await Promise.resolve(utf8.encode('data: a\n\n'));
      } finally {
        ended = true;
      }
    }
    for await (const event of splitEvents(endless())) {
      expect(event.data).toBe('a');
      break;
    }
    expect(ended).toBe(true);
  });

  it('reads an event of 4 MB that arrives in chunks of 16 bytes', async () => {
    const data = 'x'.repeat(4_000_000);
    const all = utf8.encode(`data: ${data}\n\n`);
    const chunks = Array.from({ length: Math.ceil(all.length / 16) }, (_, i) =>
      all.subarray(i * 16, i * 16 + 16),
    );
    const sizes: number[] = [];
    for await (const event of splitEvents(streamOf(chunks))) sizes.push(event.data.length);
    expect(sizes).toEqual([data.length]);
  });
});

describe('an event that is too long', () => {
  const splitAt = async (maxBytes: number, ...chunks: string[]): Promise<Seen[]> => {
    const seen: Seen[] = [];
    for await (const { raw, event, data } of splitEvents(
      streamOf(chunks.map((chunk) => utf8.encode(chunk))),
      maxBytes,
    ))
      seen.push({ raw: text(raw), event, data });
    return seen;
  };

  it('is relayed unread, piece by piece, and the next event is read', async () => {
    expect(
      await splitAt(12, 'data: a\n\ndata: 45678', '9012', '3', '45\n', '\nevent: e\n', 'data: b\n\n'),
    ).toEqual([
      message('data: a\n\n', 'a'),
      message('data: 456789012', ''),
      message('3', ''),
      message('45\n', ''),
      message('\n', ''),
      message('event: e\ndata: b\n\n', ''),
    ]);
    expect(await splitAt(12, 'data: 45678901\n\n', 'data: b\n\n')).toEqual([
      message('data: 45678901\n\n', ''),
      message('data: b\n\n', 'b'),
    ]);
  });

  it('is read up to the allowed length, however it is split', async () => {
    const event = 'data: 4567890\n\n';
    for (const chunks of [[event], Array.from(event), [event.slice(0, 9), event.slice(9)]]) {
      expect(await splitAt(event.length, ...chunks)).toEqual([message(event, '4567890')]);
      expect((await splitAt(event.length - 1, ...chunks)).map(({ data }) => data).join('')).toBe('');
    }
  });

  it('that never ends is relayed as it arrives, and none of it is kept', async () => {
    const chunk = new Uint8Array(1024 * 1024).fill(120);
    let given = 0;
    async function* endless(): AsyncGenerator<Uint8Array> {
      yield utf8.encode('data: ');
      for (;;) {
        given += 1;
        yield await Promise.resolve(chunk);
      }
    }
    let taken = 0;
    for await (const { raw } of splitEvents(endless())) {
      taken += raw.length;
      // Only bytes that were read and not yet yielded can be held in memory.
      expect(given * chunk.length + 6 - taken).toBeLessThanOrEqual(16 * 1024 * 1024 + chunk.length);
      if (taken > 200 * chunk.length) break;
    }
    expect(given).toBeLessThan(203);
  });
});

const piece = fc.constantFrom(
  '\n',
  '\r',
  '\r\n',
  ':',
  ': ping',
  'data:',
  'data: é漢😀',
  'event: e',
  'x',
  '\uFEFF',
  '',
);

describe('any chunking', () => {
  it('yields the same events, and their bytes together are the input', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 24 }), fc.array(fc.nat(12)), async (pieces, sizes) => {
        const input = utf8.encode(pieces.join(''));
        const whole = await split(input);
        const single = await split(...Array.from(input, (byte) => Uint8Array.of(byte)));
        const random = await split(...chop(input, sizes));
        expect(whole.map(({ raw }) => raw).join('')).toBe(text(input));
        expect(single).toEqual(whole);
        expect(random).toEqual(whole);
        expect(whole.map(({ data }) => data).filter(Boolean)).toEqual(dataOf(input));
      }),
      { numRuns: 500 },
    );
  });

  it('holds for arbitrary bytes, and for events of any length', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 40 }),
        fc.array(fc.nat(5)),
        fc.nat(9),
        async (input, sizes, most) => {
          const raw: number[] = [];
          for await (const event of splitEvents(streamOf(chop(input, sizes)), most)) raw.push(...event.raw);
          expect(raw).toEqual([...input]);
        },
      ),
    );
  });
});

/** Returns what a parser of the whole text finds. The end of the stream counts as a blank line. */
function dataOf(input: Uint8Array): string[] {
  const found: string[] = [];
  createParser({ onEvent: ({ data }) => found.push(data) }).feed(`${new TextDecoder().decode(input)}\n\n`);
  return found.filter(Boolean);
}

/** Splits into pieces of these sizes, repeatedly; zero gives an empty chunk. */
function chop(input: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  let at = 0;
  for (let i = 0; at < input.length; i += 1) {
    const size = i < sizes.length ? sizes[i]! : 3;
    chunks.push(input.subarray(at, at + size));
    at += size;
  }
  return chunks;
}
