import { describe, expect, it } from 'vitest';
import { formats, pack, unpack } from './records.ts';

const sizes = [0, 1, 10, 1_000, 65_536, 65_537, 3_000_000];

describe('pack', () => {
  it.each(Object.entries(formats))('restores text of any size from format %s', async (_, format) => {
    for (const size of sizes) {
      const text = new TextEncoder().encode('GET /users/17 200\n'.repeat(size / 18 + 1)).subarray(0, size);
      const packed = await pack(text, format);
      if (size >= 1_000) expect(packed.format).toBe(format);
      expect(Buffer.compare(await unpack(packed), text)).toBe(0);
    }
  });

  it.each(Object.entries(formats))(
    'stores content unchanged if %s does not make it smaller',
    async (_, format) => {
      let state = 1;
      const noise = Uint8Array.from(
        { length: 100_000 },
        () => (state = (state * 48_271) % 2_147_483_647) & 255,
      );
      const packed = await pack(noise, format);
      expect(packed.format).toBe(formats.stored);
      expect(Buffer.compare(await unpack(packed), noise)).toBe(0);
    },
  );

  it('restores content that is compressed to more than half of its size', async () => {
    let state = 1;
    // Seven random bits in each byte.
    const content = Uint8Array.from(
      { length: 200_000 },
      () => (state = (state * 48_271) % 2_147_483_647) & 127,
    );
    for (const size of [3_000, 60_000, 200_000]) {
      const packed = await pack(content.subarray(0, size));
      expect(packed.format).toBe(formats.zstd);
      expect(packed.bytes.length).toBeGreaterThan(size / 2);
      expect(Buffer.compare(await unpack(packed), content.subarray(0, size))).toBe(0);
    }
  });

  it('uses zstd by default, and makes text much smaller', async () => {
    const packed = await pack(new TextEncoder().encode('GET /users/17 200\n'.repeat(100)));
    expect(packed.format).toBe(formats.zstd);
    expect(packed.bytes.length).toBeLessThan(100);
  });
});

describe('unpack', () => {
  it('throws for an unknown format and for damaged content', async () => {
    await expect(unpack({ format: 0x20, bytes: new Uint8Array(5) })).rejects.toThrow('unknown format 32');
    await expect(unpack({ format: formats.zstd, bytes: new Uint8Array(5) })).rejects.toThrow();
    await expect(unpack({ format: formats.deflated, bytes: new Uint8Array(5).fill(255) })).rejects.toThrow();
  });
});
