/**
 * Finds Node's modules for digests, encryption and compression, and stands in for them where there are none, as in browsers and on edge runtimes:
 * with Web Crypto, compression streams, and a digest in JavaScript, because Web Crypto has no synchronous one. Digests and ciphers have the same bytes on all
 * platforms; compressed bytes differ, and Node reads both. Nothing is imported from `node:`, so bundlers for browsers need no settings.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import type * as BufferModule from 'node:buffer';
import type * as Crypto from 'node:crypto';
import type * as Util from 'node:util';
import type * as Zlib from 'node:zlib';

type NodeModules = {
  readonly Buffer: typeof BufferModule.Buffer;
  readonly crypto: typeof Crypto;
  readonly promisify: typeof Util.promisify;
  readonly zlib: typeof Zlib;
};

/** Node's modules; undefined on platforms without them. Some platforms have only parts of `node:crypto`. */
export const node: NodeModules | undefined = nodeModules();

function nodeModules(): NodeModules | undefined {
  type ModuleGetter = { readonly getBuiltinModule?: (name: string) => unknown };
  const { process } = globalThis as { readonly process?: ModuleGetter };
  const get = (name: string) => process?.getBuiltinModule?.(`node:${name}`);
  const buffer = get('buffer') as typeof BufferModule | undefined;
  const crypto = get('crypto') as typeof Crypto | undefined;
  const util = get('util') as typeof Util | undefined;
  const zlib = get('zlib') as typeof Zlib | undefined;
  if (!buffer || !crypto || !util || !zlib) return undefined;
  if (typeof crypto.hash !== 'function' || typeof crypto.createSecretKey !== 'function') return undefined;
  return { Buffer: buffer.Buffer, crypto, promisify: util.promisify, zlib };
}

/** Spells bytes in base64. */
export function toBase64(bytes: Uint8Array): string {
  if (node) return node.Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  return web.toBase64(bytes);
}

/** Reads bytes that are spelled in base64. */
export function fromBase64(text: string): Uint8Array {
  return node ? new Uint8Array(node.Buffer.from(text, 'base64')) : web.fromBase64(text);
}

/** Does the same without Node's modules. Ciphers: AES-256-GCM with a tag of 16 bytes after the ciphertext. Compression: raw deflate, without a header. */
export const web = {
  sha256,
  commonLength,
  encrypt,
  decrypt,
  deflate,
  inflate,
  toBase64: (bytes: Uint8Array): string => btoa(binaryOf(bytes)),
  fromBase64: (text: string): Uint8Array => Uint8Array.from(atob(text), (unit) => unit.charCodeAt(0)),
};

/** Returns a text with a character for each byte. A function takes only some ten thousand arguments. */
function binaryOf(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += 32_768)
    binary += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  return binary;
}

/** Returns the length of the common prefix of two byte arrays. */
function commonLength(one: Uint8Array, other: Uint8Array): number {
  const length = Math.min(one.length, other.length);
  let at = 0;
  while (at < length && one[at] === other[at]) at++;
  return at;
}

type WebCipher = { readonly key: Uint8Array; readonly nonce: Uint8Array; readonly header: Uint8Array };

/** Encrypts bytes; the header is authenticated. */
async function encrypt(cipher: WebCipher, bytes: Uint8Array): Promise<Uint8Array> {
  const [key, algorithm] = [await webKey(cipher.key), algorithmOf(cipher)];
  return new Uint8Array(await crypto.subtle.encrypt(algorithm, key, webBytes(bytes)));
}

/** Decrypts bytes. Rejects if a bit of them or of the header changed. */
async function decrypt(cipher: WebCipher, bytes: Uint8Array): Promise<Uint8Array> {
  const [key, algorithm] = [await webKey(cipher.key), algorithmOf(cipher)];
  return new Uint8Array(await crypto.subtle.decrypt(algorithm, key, webBytes(bytes)));
}

function algorithmOf({ nonce, header }: WebCipher) {
  return { name: 'AES-GCM', iv: webBytes(nonce), additionalData: webBytes(header), tagLength: 128 };
}

function webKey(bytes: Uint8Array) {
  return crypto.subtle.importKey('raw', webBytes(bytes), 'AES-GCM', false, ['encrypt', 'decrypt']);
}

/** Tells the types of web interfaces that the bytes are not shared with other threads. */
function webBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes as Uint8Array<ArrayBuffer>;
}

/** Compresses bytes. */
function deflate(bytes: Uint8Array): Promise<Uint8Array> {
  return throughStream(bytes, new CompressionStream('deflate-raw'));
}

/** Decompresses bytes. Rejects if they are damaged. */
function inflate(bytes: Uint8Array): Promise<Uint8Array> {
  return throughStream(bytes, new DecompressionStream('deflate-raw'));
}

async function throughStream(
  bytes: Uint8Array,
  stream: CompressionStream | DecompressionStream,
): Promise<Uint8Array> {
  const packed = new Blob([webBytes(bytes)]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(packed).arrayBuffer());
}
