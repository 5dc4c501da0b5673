import { expect, it } from 'vitest';
import { sha256 } from './encrypted-store.ts';

it('sha256 is the published value for "abc", as base64url', () => {
  const published = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
  expect(sha256(new TextEncoder().encode('abc'))).toBe(Buffer.from(published, 'hex').toString('base64url'));
});
