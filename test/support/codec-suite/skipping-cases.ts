/**
 * Tests that a relay skips only deltas that it need not read: a relay that skips gives the client the same bytes, the model the same turn and
 * the receipt the same usage as one that takes every event.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Codec, RelayEnd, StreamRelay } from '../../../src/codecs/codec.ts';
import type { PrivateTools } from '../../../src/conversation/turns.ts';
import { createEventSplitter } from '../../../src/gateway/http/http.ts';
import { relayChunk } from '../../../src/gateway/recall-loop.ts';
import { anyReply, anyText, onlyRecall } from './arbitrary.ts';
import { eachAnswer } from './each-answer.ts';
import type { CodecFixture, ScriptedPart, ScriptedTurn } from './fixture.ts';

const encoder = new TextEncoder();

/** A long reply of small pieces, then any other parts: recalls, calls, texts. */
const talkative = fc
  .record({
    type: fc.constantFrom<('text' | 'reasoning')[]>('text', 'reasoning'),
    pieces: fc.array(
      fc.oneof(
        anyText.filter((text) => text !== ''),
        fc.constantFrom('\uFEFF', ' word'),
      ),
      { minLength: 3, maxLength: 12 },
    ),
    rest: anyReply(),
  })
  .map(({ type, pieces, rest }): ScriptedTurn => {
    const part: ScriptedPart = { type, pieces };
    return { ...rest, parts: [part, ...rest.parts] };
  });

/** Bytes that change the meaning of JSON, of UTF-8 or of an event. */
const oddBytes = Array.from('"\\{}[]:,nu019. \t\n\rd', (character) => character.charCodeAt(0));
const changes = fc.array(
  fc.record({ at: fc.nat(), byte: fc.oneof(fc.constantFrom(...oddBytes), fc.nat(255)) }),
  { maxLength: 6 },
);
const lineEnds = fc.constantFrom('\n', '\r\n', '\r');
const sizes = fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 6 });
const tools = fc.constantFrom(onlyRecall, new Set<string>());

export function skippingCases(codec: Codec, fixture: CodecFixture): void {
  describe(`${codec.name} skips only what it need not read:`, () => {
    it('most deltas of a text', () => {
      const pieces = Array.from({ length: 50 }, (_, at) => ` word${at}`);
      const usage = { input: 100, cacheRead: 0, cacheWrite: 0, output: 50 };
      const sse = fixture.stream({ parts: [{ type: 'text', pieces }], finish: 'stop', usage }, 0);
      for (const lineEnd of ['\n', '\r\n']) {
        const { taken } = followed(codec, [bytesOf(sse, lineEnd)], { size: [Infinity] });
        const all = followed(codec, [bytesOf(sse, lineEnd)], { size: [Infinity], takesAll: true }).taken;
        expect(all - taken).toBeGreaterThanOrEqual(pieces.length - 2);
      }
    });

    it('in any replies, however they are cut and spelled', () => {
      fc.assert(
        fc.property(fc.array(talkative, { minLength: 1, maxLength: 2 }), lineEnds, sizes, tools, sameWhenCut),
        { numRuns: 100 },
      );
    });

    it('in streams with any wrong bytes', () => {
      fc.assert(
        fc.property(
          talkative,
          lineEnds,
          sizes,
          tools,
          changes,
          (turn, lineEnd, size, privateTools, changed) => {
            const bytes = bytesOf(fixture.stream(turn, 0), lineEnd);
            for (const { at, byte } of changed) bytes[at % bytes.length] = byte;
            same(codec, [bytes], size, privateTools);
          },
        ),
        { numRuns: 500 },
      );
    });

    eachAnswer(
      fixture.exchanges,
      (name) => `in ${name}`,
      ({ responses }) => {
        fc.assert(
          fc.property(lineEnds, sizes, (lineEnd, size) => {
            const streams = responses.map((sse) => bytesOf(sse, lineEnd));
            same(codec, streams, size, onlyRecall);
          }),
          { numRuns: 20 },
        );
      },
    );

    function sameWhenCut(
      turns: readonly ScriptedTurn[],
      lineEnd: string,
      size: readonly number[],
      privateTools: PrivateTools,
    ): void {
      const streams = turns.map((turn, number) => bytesOf(fixture.stream(turn, number), lineEnd));
      same(codec, streams, size, privateTools);
    }
  });
}

function bytesOf(sse: string, lineEnd: string): Uint8Array {
  return encoder.encode(sse.replaceAll('\n', lineEnd));
}

function same(
  codec: Codec,
  streams: readonly Uint8Array[],
  size: readonly number[],
  privateTools: PrivateTools,
): void {
  const expected = followed(codec, streams, { size, privateTools, takesAll: true });
  expect(followed(codec, streams, { size, privateTools }).seen).toEqual(expected.seen);
  expect(followed(codec, streams, { size: [Infinity], privateTools }).seen).toEqual(expected.seen);
}

/** Returns what can be observed of a relay, and the number of events that it took. */
function followed(
  codec: Codec,
  streams: readonly Uint8Array[],
  {
    size,
    privateTools = onlyRecall,
    takesAll = false,
  }: {
    readonly size: readonly number[];
    readonly privateTools?: PrivateTools;
    readonly takesAll?: boolean;
  },
) {
  let taken = 0;
  const opened = codec.openStream({ privateTools });
  const relay: StreamRelay = {
    ...opened,
    take(event) {
      taken += 1;
      return opened.take(event);
    },
    skip: (bytes, from) => (takesAll ? from : opened.skip(bytes, from)),
  };
  const rounds = streams.map((stream) => {
    const splitter = createEventSplitter();
    const out: Uint8Array[] = [];
    for (let at = 0, turn = 0; at < stream.length; turn += 1) {
      const chunk = stream.subarray(at, at + size[turn % size.length]!);
      out.push(...relayChunk(splitter, relay, chunk));
      at += chunk.length;
    }
    const rest = splitter.end();
    if (rest !== undefined) out.push(...relay.take(rest));
    const end = readable(relay.end());
    return { out: out.map(latin).join(''), end, usage: relay.usage() };
  });
  const closing = relay.finish().map(latin).join('');
  return { seen: { rounds, closing }, taken };
}

function readable(end: RelayEnd): unknown {
  const reply = end.reply && { ...end.reply, turn: latin(end.reply.turn) };
  return { status: end.status, reply, tail: end.status === 'done' ? end.tail.map(latin) : undefined };
}

/** Returns one character for each byte: the bytes need not be UTF-8. */
function latin(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1');
}
