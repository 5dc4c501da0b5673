/**
 * Tests streams as they arrive over the wire: cut anywhere and with any line ends, they give the client the same bytes and the
 * model the same reply.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Codec, RelayEnd, ToolCall } from '../../../src/codecs/codec.ts';
import { splitEvents } from '../../../src/gateway/http/http.ts';
import { anyReply, onlyRecall, replyWithRecallsOnly } from './arbitrary.ts';
import { eachAnswer, isAbsent, skipped } from './each-answer.ts';
import type { Absent, CodecFixture } from './fixture.ts';
import { relayed, tailOf } from './relay.ts';
import { shown } from './views.ts';

const encoder = new TextEncoder();
const lineEnds = ['\n', '\r\n', '\r'] as const;
/** Sizes of chunks, used in turn, so that the cuts do not repeat at the same places. */
const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 12 });

export function chunkingCases(codec: Codec, fixture: CodecFixture): void {
  describe(`${codec.name} relays what real servers send:`, () => {
    eachAnswer(
      fixture.exchanges,
      (name) => `${name}, as one well-formed message`,
      ({ responses, client }) => {
        const { sse, usage } = exchanged(codec, responses);
        expect(fixture.client(sse)).toEqual(client);
        // The tokens of the provider's own tools are compared separately.
        expect(usage).toEqual(client.usage && expect.objectContaining(client.usage));
      },
    );

    const { official } = fixture;
    if (isAbsent(official)) skipped('any exchange, as an official client accumulates it', official);
    else officialCases(codec, fixture, official);

    eachAnswer(
      fixture.exchanges,
      (name) => `${name}, the same byte by byte and cut anywhere`,
      async ({ responses }) => {
        for (const lineEnd of lineEnds) {
          const streams = responses.map((sse) => withLineEnds(sse, lineEnd));
          const whole = await relayedInChunks(codec, streams, [Infinity]);
          expect(await relayedInChunks(codec, streams, [1])).toEqual(whole);
          await fc.assert(
            fc.asyncProperty(sizes, async (cut) => {
              expect(await relayedInChunks(codec, streams, cut)).toEqual(whole);
            }),
            { numRuns: 15 },
          );
        }
      },
    );
  });

  describe(`${codec.name} relays any stream`, () => {
    it('the same byte by byte and cut anywhere', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(replyWithRecallsOnly(), { maxLength: 2 }),
          anyReply(),
          fc.constantFrom(...lineEnds),
          sizes,
          async (rounds, last, lineEnd, cut) => {
            const sse = [...rounds, last].map((turn, number) => fixture.stream(turn, number));
            const streams = sse.map((text) => withLineEnds(text, lineEnd));
            const whole = await relayedInChunks(codec, streams, [Infinity]);
            expect(await relayedInChunks(codec, streams, [1])).toEqual(whole);
            expect(await relayedInChunks(codec, streams, cut)).toEqual(whole);
            const relay = codec.openStream({ privateTools: onlyRecall });
            const plain = sse.map((text) => relayed(relay, text).out);
            expect(whole.rounds.map(({ out }) => out.replaceAll(lineEnd, '\n'))).toEqual(plain);
          },
        ),
        { numRuns: 50 },
      );
    });
  });
}

function officialCases(
  codec: Codec,
  { exchanges }: CodecFixture,
  official: Exclude<CodecFixture['official'], Absent>,
): void {
  eachAnswer(
    exchanges,
    (name) => `${name}, as ${official.client} accumulates it`,
    async ({ responses, client }) => {
      const { text, calls, finish, usage } = client;
      const { calls: theirs, ...rest } = await official.read(exchanged(codec, responses).sse);
      expect(rest).toEqual({ text, finish, usage });
      expect(theirs.map(valued)).toEqual(calls.map(valued));
    },
  );
}

/** Returns the client's stream of a whole exchange, and its usage. */
function exchanged(codec: Codec, responses: readonly string[]) {
  const relay = codec.openStream({ privateTools: onlyRecall });
  const went = responses.map((sse, number) => {
    const { out, end } = relayed(relay, sse);
    expect(end.status).toBe(number < responses.length - 1 ? 'recall' : 'done');
    return end.status === 'done' ? out + tailOf(end) : out;
  });
  return { sse: went.join(''), usage: relay.usage() };
}

/**
 * Returns what the client gets of each response and how it ends, its turn as text, and what closes the message when nothing
 * follows.
 */
async function relayedInChunks(codec: Codec, streams: readonly Uint8Array[], cut: readonly number[]) {
  const relay = codec.openStream({ privateTools: onlyRecall });
  const rounds: { readonly out: string; readonly end: unknown }[] = [];
  for (const stream of streams) {
    let out = '';
    for await (const event of splitEvents(chunksOf(stream, cut)))
      out += relay.take(event).map(shown).join('');
    rounds.push({ out, end: readable(relay.end()) });
  }
  return { rounds, usage: relay.usage(), closing: relay.finish().map(shown).join('') };
}

function readable(end: RelayEnd): unknown {
  if (end.status === 'done') return { status: end.status, tail: tailOf(end) };
  return { ...end.reply, status: end.status, turn: shown(end.reply.turn) };
}

async function* chunksOf(bytes: Uint8Array, cut: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (let turn = 0; at < bytes.length; turn++) {
    const end = Math.min(bytes.length, at + cut[turn % cut.length]!);
    yield bytes.subarray(at, end);
    at = end;
  }
}

/** The data of a fixture hold no line ends of their own. */
function withLineEnds(sse: string, lineEnd: string): Uint8Array {
  return encoder.encode(sse.replaceAll('\n', lineEnd));
}

/** Clients that keep arguments as values lose their spelling. */
function valued({ id, name, argumentsJson }: ToolCall) {
  return { id, name, value: JSON.parse(argumentsJson) as unknown };
}
