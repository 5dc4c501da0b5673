/** Tests complete responses and errors: the model's reply, what the client may see of it, and its format. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Codec, GatewayProblem } from '../../../src/codecs/codec.ts';
import {
  anyReply,
  bothPrivate,
  privateOrders,
  onlyRecall,
  recallName,
  replyWithoutRecall,
  replyWithRecallsOnly,
} from './arbitrary.ts';
import { LeporelloError } from '../../../src/errors.ts';
import type { CodecFixture, ScriptedTurn } from './fixture.ts';
import { jsonValueText, replacedValue } from './json-text.ts';
import { callsIn, expectedView, reasoningIn, saidIn } from './turns.ts';
import { shown } from './views.ts';

const encoder = new TextEncoder();

export function responseCases(codec: Codec, fixture: CodecFixture): void {
  describe(`${codec.name} reads a complete response`, () => {
    it('whatever the model said', () => {
      fc.assert(
        fc.property(anyReply(), (turn) => {
          const reply = codec.readResponse(fixture.response(turn), onlyRecall);
          expect(reply.text).toBe(saidIn(turn, 'text'));
          expect(reply.recalls).toEqual(callsIn(turn).filter((call) => call.name === recallName));
          expect(reply.calls).toEqual(callsIn(turn).filter((call) => call.name !== recallName));
          expect(reply.usage).toEqual(turn.usage);
          expect(reply.finish).toBeTypeOf('string');
          expect(codec.isTruncated(reply)).toBe(turn.finish === 'length');
        }),
        { numRuns: 300 },
      );
    });

    it('without the recall tool, every call is for the client', () => {
      const turn: ScriptedTurn = { parts: [recall('c1')], finish: 'calls', usage };
      const reply = codec.readResponse(fixture.response(turn), new Set());
      expect([reply.recalls, reply.calls.map((call) => call.name)]).toEqual([[], [recallName]]);
    });

    it('or throws bad-response, whatever it holds', () => {
      const first = codec.readResponse(
        fixture.response({ parts: [recall('c1')], finish: 'calls', usage }),
        onlyRecall,
      );
      const sent = fixture.body({ turns: [{ say: 'user', text: 'a' }], tools: ['read'] });
      fc.assert(
        fc.property(anyReply(), fc.nat(), jsonValueText(), (turn, seed, value) => {
          const body = encoder.encode(replacedValue(shown(fixture.response(turn)), seed, value));
          const reply = attempt(() => codec.readResponse(body, onlyRecall));
          if (reply instanceof Error)
            expect(LeporelloError.isInstance(reply) && reply.code).toBe('bad-response');
          else {
            codec.writeResponse(body, [first], reply);
            codec.continueWith(
              sent,
              reply,
              reply.recalls.map((call) => ({ call, text: 'a' })),
            );
          }
        }),
        { numRuns: 1000 },
      );
    });

    it.each(Object.entries(fixture.badResponses))('or throws bad-response: %s', (_, text) => {
      const failed = { name: 'LeporelloError', code: 'bad-response' };
      expect(() => codec.readResponse(encoder.encode(text), onlyRecall)).toThrow(
        expect.objectContaining(failed),
      );
    });
  });

  describe(`${codec.name} writes a complete response for the client`, () => {
    it('as the same array when nothing in it is private', () => {
      fc.assert(
        fc.property(replyWithoutRecall(), (turn) => {
          const body = fixture.response(turn);
          expect(codec.writeResponse(body, [], codec.readResponse(body, onlyRecall))).toBe(body);
          expect(fixture.clientResponse(body)).toEqual(expectedView([turn]));
        }),
      );
    });

    it('as one message of all rounds, without private calls and with the usage of all', () => {
      fc.assert(
        fc.property(fc.array(replyWithRecallsOnly(), { maxLength: 3 }), anyReply(), (rounds, last) => {
          const earlier = rounds.map((turn) => codec.readResponse(fixture.response(turn), onlyRecall));
          const body = fixture.response(last);
          const before = shown(body);
          const seen = codec.writeResponse(body, earlier, codec.readResponse(body, onlyRecall));
          const client = fixture.clientResponse(seen);
          const turns = [...rounds, last];
          const reasoning = reasoningIn(turns, fixture.reasoningShown);
          expect(client).toEqual({ ...expectedView(turns), reasoning });
          expect(shown(body)).toBe(before);
        }),
        { numRuns: 300 },
      );
    });

    it.each(privateOrders)('without the calls of both private tools: %s, then %s', (...names) => {
      const both = names.map((name, at) => ({ ...recall(`c${at}`), name }));
      const rounds: readonly ScriptedTurn[] = [
        { parts: [{ type: 'text', pieces: ['a'] }, ...both], finish: 'calls', usage },
        { parts: [...both, { ...recall('c2'), name: 'run' }], finish: 'calls', usage },
      ];
      const [first, last] = rounds.map((turn) => codec.readResponse(fixture.response(turn), bothPrivate));
      expect([first, last].map((reply) => reply?.recalls.map(({ name }) => name))).toEqual([names, names]);
      const seen = fixture.clientResponse(codec.writeResponse(fixture.response(rounds[1]!), [first!], last!));
      expect([seen.text, seen.calls.map(({ name }) => name), seen.finish]).toEqual(['a', ['run'], 'calls']);
    });

    it('that was cut off inside a recall', () => {
      const parts: ScriptedTurn['parts'] = [{ type: 'text', pieces: ['so'] }, recall('c1')];
      const body = fixture.response({ parts, finish: 'length', usage });
      const seen = fixture.clientResponse(
        codec.writeResponse(body, [], codec.readResponse(body, onlyRecall)),
      );
      expect([seen.text, seen.calls, seen.finish]).toEqual(['so', [], 'length']);
    });
  });

  describe(`${codec.name} spells errors`, () => {
    const statuses: readonly GatewayProblem['status'][] = [400, 401, 404, 405, 408, 413, 500, 502, 503, 504];

    it.each(statuses)('of status %i so that the official client makes its own error of them', (status) => {
      const message = 'The request is "too" large: 3 > 2.\n';
      const error = fixture.parseError(status, codec.errorBody({ status, message }));
      expect(error.isTyped).toBe(true);
      expect(error.message).toContain(message);
    });

    it.each(Object.entries(fixture.overflows))('and knows an overflow: %s', (_, { status, body, means }) => {
      expect(codec.overflowIn(status, body)).toEqual(means);
      expect(codec.overflowIn(200, body)).toBeUndefined();
      expect(codec.overflowIn(500, body)).toBeUndefined();
    });

    it.each(Object.entries(fixture.otherErrors))(
      'and reports no overflow for anything else: %s',
      (_, { status, body }) => {
        expect(codec.overflowIn(status, body)).toBeUndefined();
      },
    );

    it.each(statuses)('of status %i that are not read as an overflow', (status) => {
      const body = shown(codec.errorBody({ status, message: 'The upstream cannot be reached.' }));
      expect(codec.overflowIn(status, body)).toBeUndefined();
    });
  });
}

function attempt<T>(run: () => T): T | Error {
  try {
    return run();
  } catch (error) {
    return error as Error;
  }
}

const usage = { input: 10, cacheRead: 0, cacheWrite: 0, output: 2 };

function recall(id: string) {
  return { type: 'call', id, name: recallName, pieces: ['{"id":"m1"}'] } as const;
}
