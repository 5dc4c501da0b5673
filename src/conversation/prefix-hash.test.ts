import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sha256 } from '../store/encrypted-store.ts';
import type { Conversation, Message } from './conversation.ts';
import { scanObject } from './json-scan.ts';
import { canonicalDigest, prefixLinks, significantBytes } from './messages.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

describe('prefix hashes', () => {
  it('are one more than the messages, and a longer conversation keeps those of its beginning', () => {
    const short = prefixLinks(conversation('a', 'b'), 'root', sha256);
    const long = prefixLinks(conversation('a', 'b', 'c'), 'root', sha256);
    expect(short).toHaveLength(3);
    expect(long).toHaveLength(4);
    expect(long.slice(0, 3)).toEqual(short);
    expect(new Set(long).size).toBe(4);
  });

  it('change for every prefix after a message that says something else', () => {
    const one = prefixLinks(conversation('a', 'b', 'c', 'd'), 'root', sha256);
    const other = prefixLinks(conversation('a', 'x', 'c', 'd'), 'root', sha256);
    expect(other.map((link, index) => link === one[index])).toEqual([true, true, false, false, false]);
  });

  it('of different roots are never equal', () => {
    const one = prefixLinks(conversation('a', 'a'), 'mine', sha256);
    const other = prefixLinks(conversation('a', 'a'), 'theirs', sha256);
    expect(one.filter((link) => other.includes(link))).toEqual([]);
  });

  it('depend on where messages begin and end', () => {
    const one = prefixLinks(conversation('ab', 'c'), 'root', sha256).at(-1);
    const other = prefixLinks(conversation('a', 'bc'), 'root', sha256).at(-1);
    expect(one).not.toBe(other);
  });
});

describe('the canonical digest', () => {
  it('depends on the role and on where pieces begin and end', () => {
    const said = (role: string, ...pieces: readonly string[]) =>
      canonicalDigest(
        role,
        pieces.map((piece) => encoder.encode(piece)),
        decoder.decode.bind(decoder),
      );
    expect([said('user', 'a', 'b'), said('user', 'ab'), said('system', 'ab'), said('user')]).toEqual([
      'user\na\nb',
      'user\nab',
      'system\nab',
      'user',
    ]);
  });

  it('takes the members of an object unchanged, without those that clients move', () => {
    const bytes = encoder.encode('{"a" : 1.0, "mark":{"x":1},"b":"\\u0062"}');
    const { members } = scanObject(bytes, 0);
    expect(decoder.decode(significantBytes(bytes, members, new Set(['mark'])))).toBe(
      '"a" : 1.0,"b":"\\u0062",',
    );
  });
});

function conversation(...canonicals: readonly string[]): Conversation {
  const span = { start: 0, end: 0 };
  const messages = canonicals.map(
    (canonical, index): Message => ({ index, role: 'user', parts: [], span, digest: '', canonical }),
  );
  const body = new Uint8Array();
  return {
    body,
    model: undefined,
    streaming: false,
    replies: 1,
    maxOutputTokens: undefined,
    toolNames: [],
    preamble: [],
    messages,
  };
}

describe('prefix hashes that are partly known', () => {
  it('are the same as those computed from the start, wherever two conversations differ', () => {
    const chain = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 8 });
    fc.assert(
      fc.property(chain, chain, fc.nat(8), fc.constantFrom('root', 'other'), (before, added, kept, root) => {
        const first = conversation(...before);
        prefixLinks(first, 'root', sha256);
        const shared = first.messages.slice(0, kept);
        const next = conversation(...shared.map(({ canonical }) => canonical), ...added);
        const branch = { ...next, messages: [...shared, ...next.messages.slice(shared.length)] };
        const fromTheStart = prefixLinks(
          conversation(...next.messages.map((one) => one.canonical)),
          root,
          sha256,
        );
        expect(prefixLinks(branch, root, sha256)).toEqual(fromTheStart);
        expect(prefixLinks(branch, root, sha256)).toEqual(fromTheStart);
      }),
    );
  });
});
