import { describe, expect, it } from 'vitest';
import { scanObject } from '../conversation/json-scan.ts';
import { memberPieces } from './read-body.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const moving = new Set(['mark']);

/** Returns the canonical text of a message, with its pieces joined as `canonicalDigest` joins them. */
function said(message: string): string {
  const bytes = encoder.encode(message);
  return memberPieces(bytes, scanObject(bytes, 0).members, moving)
    .map((piece) => decoder.decode(piece))
    .join('\n');
}

describe('what a message says', () => {
  it.each([
    ['a text as a string or as a block', '{"content":"a"}', '{"content":[{"type":"text","text":"a"}]}'],
    ['a block with a mark', '{"content":[{"type":"x","a":1}]}', '{"content":[{"mark":5,"type":"x","a":1}]}'],
    [
      'a result as a string or as a block with a mark',
      '{"content":[{"type":"tool_result","content":"a"}]}',
      '{"content":[{"type":"tool_result","content":[{"text":"a","mark":{},"type":"text"}],"mark":1}]}',
    ],
    ['a mark on the message', '{"content":"a"}', '{"mark":{"a":[1]},"content":"a"}'],
  ])('is the same with %s', (_, one, other) => {
    expect(said(one)).toBe(said(other));
  });

  it.each([
    // The parts differ, so an edit of one would name another place in the other.
    ['an empty string and an empty text', '{"content":""}', '{"content":[{"type":"text","text":""}]}'],
    ['one block and two', '{"content":[{"type":"x","a":1}]}', '{"content":[{"type":"x"},{"a":1}]}'],
    ['a text and another member', '{"content":"a"}', '{"content":[{"type":"text","text":"a","b":1}]}'],
    ['no content and none', '{"content":null}', '{"content":[]}'],
    [
      'a mark that is not on a block',
      '{"content":[{"type":"x","a":{"mark":1}}]}',
      '{"content":[{"type":"x","a":{}}]}',
    ],
    ['two messages of other keys', '{"content":"a","x":1}', '{"content":"a","x":2}'],
  ])('is not the same with %s', (_, one, other) => {
    expect(said(one)).not.toBe(said(other));
  });
});
