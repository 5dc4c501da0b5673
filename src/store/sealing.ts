/**
 * Turns bytes into a record that only the holder of the secret can read, and back: compressed, then AES-256-GCM under a
 * key of the tenant. No store, no clock. A record:
 *
 *     format (1 byte) | length of the tenant label (1) | tenant label | nonce (12) | ciphertext | tag (16)
 *
 * Format, label and the place in the store are authenticated: a record moved to another key does not open.
 */
import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { pack, unpack } from './compression.ts';

export type Sealer = {
  /** `tenant`: at most 255 ASCII characters. `place`: the key that the record is stored under. */
  seal(tenant: string, place: string, content: Uint8Array): Promise<Uint8Array>;
  /** Undefined for whatever was not sealed under this secret for this place: another secret, a changed bit, other bytes. */
  unseal(record: Uint8Array, place: string): Promise<Unsealed | undefined>;
};

export type Unsealed = { readonly tenant: string; readonly content: Uint8Array };

const cipherName = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function createSealer(secret: Uint8Array): Sealer {
  const keys = new LRUCache<string, KeyObject>({ max: 1_000 });

  function keyOf(tenant: string): KeyObject {
    const key = keys.get(tenant) ?? deriveKey(secret, `seal ${tenant}`);
    keys.set(tenant, key);
    return key;
  }

  return {
    async seal(tenant, place, content) {
      const { format, bytes } = await pack(content);
      const label = encoder.encode(tenant);
      const header = new Uint8Array([format, label.length, ...label]);
      // Random nonces are safe for 2^32 records of one tenant (NIST SP 800-38D, 8.3).
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(cipherName, keyOf(tenant), nonce, { authTagLength: tagBytes });
      cipher.setAAD(joined(header, encoder.encode(place)));
      const encrypted = cipher.update(bytes);
      cipher.final();
      return joined(header, nonce, encrypted, cipher.getAuthTag());
    },

    async unseal(record, place) {
      const format = record[0];
      const contentStart = 2 + (record[1] ?? 0) + nonceBytes;
      if (format === undefined || record.length < contentStart + tagBytes) return undefined;
      const header = record.subarray(0, contentStart - nonceBytes);
      const tenant = decoder.decode(header.subarray(2));
      const nonce = record.subarray(header.length, contentStart);
      try {
        const decipher = createDecipheriv(cipherName, keyOf(tenant), nonce, { authTagLength: tagBytes });
        decipher.setAAD(joined(header, encoder.encode(place)));
        decipher.setAuthTag(record.subarray(-tagBytes));
        const bytes = decipher.update(record.subarray(contentStart, -tagBytes));
        decipher.final();
        return { tenant, content: await unpack({ format, bytes: joined(bytes) }) };
      } catch {
        // What Node says of a wrong tag helps nobody: the record is not ours.
        return undefined;
      }
    },
  };
}

/** A key for one purpose, 32 bytes. An object: Node takes a key of bytes anew, four times as slowly, in each use. */
export function deriveKey(secret: Uint8Array, purpose: string): KeyObject {
  return createSecretKey(new Uint8Array(hkdfSync('sha256', secret, 'leporello memory 1', purpose, 32)));
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
