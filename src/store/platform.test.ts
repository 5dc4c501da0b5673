/** Tests what stands in for Node's modules, against Node's own. */
import { createCipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { fromBase64, node, toBase64, web } from './platform.ts';
import { deriveKey } from './records.ts';

const texts = [0, 1, 63, 64, 65, 4_096, 1_000_003].map((length) => new Uint8Array(randomBytes(length)));

describe('without modules of Node', () => {
  it('digests are those of Node', () => {
    expect(node).toBeDefined();
    for (const bytes of texts)
      expect(Buffer.from(web.sha256(bytes))).toEqual(createHash('sha256').update(bytes).digest());
  });

  it('a record is encrypted as by Node, and none is read after a bit changed', async () => {
    for (const bytes of texts) {
      const [key, nonce, header] = [32, 12, 40].map((length) => new Uint8Array(randomBytes(length)));
      const given = { key: key!, nonce: nonce!, header: header! };
      const cipher = createCipheriv('aes-256-gcm', key!, nonce!).setAAD(header!);
      const expected = Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
      const encrypted = await web.encrypt(given, bytes);
      expect(Buffer.compare(encrypted, expected)).toBe(0);
      expect(Buffer.compare(await web.decrypt(given, encrypted), bytes)).toBe(0);
      encrypted[0]! ^= 1;
      await expect(web.decrypt(given, encrypted)).rejects.toThrow();
    }
  });

  it('content is compressed so that Node can read it, and the other way round', async () => {
    for (const bytes of texts) {
      expect(Buffer.compare(inflateRawSync(await web.deflate(bytes)), bytes)).toBe(0);
      expect(Buffer.compare(await web.inflate(deflateRawSync(bytes)), bytes)).toBe(0);
    }
    await expect(web.inflate(new Uint8Array(5).fill(255))).rejects.toThrow();
  });

  it('base64 is spelled and read as by Node', () => {
    for (const bytes of texts) {
      const spelled = Buffer.from(bytes).toString('base64');
      expect(web.toBase64(bytes)).toBe(spelled);
      expect(Buffer.compare(web.fromBase64(spelled), bytes)).toBe(0);
      expect(toBase64(bytes)).toBe(spelled);
      expect(Buffer.compare(fromBase64(spelled), bytes)).toBe(0);
    }
  });

  it('the common length of two byte arrays is found', () => {
    const bytes = texts.at(-1)!;
    for (const at of [0, 1, 4_097, bytes.length - 1]) {
      const other = bytes.slice();
      other[at]! ^= 1;
      expect(web.commonLength(bytes, other)).toBe(at);
    }
    expect(web.commonLength(bytes, bytes.slice(0, 10))).toBe(10);
  });
});

it('keys are derived as by HKDF-SHA256', () => {
  const secret = new Uint8Array(randomBytes(48));
  const expected = hkdfSync('sha256', secret, 'leporello memory 1', 'seal local', 32);
  expect(Buffer.from(deriveKey(secret, 'seal local'))).toEqual(Buffer.from(expected));
});
