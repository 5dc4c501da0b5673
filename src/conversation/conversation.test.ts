import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonStringText } from '../../test/support/codec-suite/json-text.ts';
import type { Part } from './conversation.ts';
import { decodeLiteral, textOf, textsOf } from './messages.ts';

const encoder = new TextEncoder();

describe('decoding a literal', () => {
  it('gives what JSON.parse gives, with every escape and lone surrogate', () => {
    fc.assert(
      fc.property(jsonStringText(), (text) => {
        expect(decodeLiteral(encoder.encode(text))).toBe(JSON.parse(text));
      }),
      { numRuns: 500 },
    );
  });

  it('keeps a byte order mark and throws for bytes that are not UTF-8', () => {
    expect(decodeLiteral(encoder.encode('"\ufeffa"'))).toBe('\ufeffa');
    expect(() => decodeLiteral(new Uint8Array([34, 0xff, 34]))).toThrow(TypeError);
  });
});

describe('spans', () => {
  it('are relative to their block', () => {
    const body = encoder.encode('[{"a":"b"},{"a":"\\u0063"}]');
    const block = { span: { start: 11, end: 25 } };
    expect(textOf(body, block, { start: 5, end: 13 })).toBe('c');
  });

  it('of texts come from texts, results and reasoning only', () => {
    const span = { start: 0, end: 9 };
    const texts = [{ start: 1, end: 3 }];
    const media = { kind: 'image', span, data: undefined } as const;
    const parts: readonly Part[] = [
      { type: 'text', span, texts },
      { type: 'tool-result', span, callId: 'a', texts, media: [], isError: undefined },
      { type: 'reasoning', span, texts, signed: true },
      { type: 'tool-call', span, id: 'a', name: 'b', input: span },
      { type: 'media', span, media },
      { type: 'tool-definition', span, name: undefined },
      { type: 'opaque', span, kind: 'x' },
    ];
    expect(parts.map(textsOf)).toEqual([texts, texts, texts, [], [], [], []]);
  });
});
