/** Tests streams: nothing is held back, private calls are not seen, and all rounds make one well-formed message. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Codec, ModelReply } from '../../../src/codecs/codec.ts';
import {
  anyReply,
  bothPrivate,
  privateOrders,
  onlyRecall,
  recallName,
  replyWithoutRecall,
  replyWithRecallsOnly,
} from './arbitrary.ts';
import { eventOf, eventsOf, relayed, tailOf } from './relay.ts';
import { jsonValueText, replacedValue } from './json-text.ts';
import type { CodecFixture, ScriptedPart, ScriptedTurn } from './fixture.ts';
import { callsIn, expectedView, saidIn, sumOf } from './turns.ts';
import { shown, view } from './views.ts';

export function streamCases(codec: Codec, fixture: CodecFixture): void {
  describe(`${codec.name} relays a stream`, () => {
    it('event by event unchanged when nothing is private', () => {
      fc.assert(
        fc.property(
          replyWithoutRecall(),
          fc.constantFrom(onlyRecall, new Set<string>()),
          (turn, privateTools) => {
            const relay = codec.openStream({ privateTools });
            for (const event of eventsOf(fixture.stream(turn, 0))) {
              const out = relay.take(event);
              expect(out).toHaveLength(1);
              expect(out[0]).toBe(event.raw);
            }
            expect(relay.end()).toMatchObject({ status: 'done', tail: [] });
            expect(relay.usage()).toEqual(turn.usage);
          },
        ),
        { numRuns: 300 },
      );
    });

    it('event by event unchanged when the recall tool was not injected, whatever is called', () => {
      fc.assert(
        fc.property(anyReply(), (turn) => {
          const sse = fixture.stream(turn, 0);
          const { out, end } = relayed(codec.openStream({ privateTools: new Set() }), sse);
          expect(out).toBe(sse);
          expect(end).toMatchObject({ status: 'done', tail: [] });
        }),
      );
    });

    it('and holds back only the private call, at any moment', () => {
      fc.assert(
        fc.property(anyReply(), (turn) => {
          const relay = codec.openStream({ privateTools: onlyRecall });
          let upstream = '';
          let went = '';
          for (const event of eventsOf(fixture.stream(turn, 0))) {
            upstream += shown(event.raw);
            went += relay.take(event).map(shown).join('');
            expect(fixture.heard(went, recallName)).toEqual(fixture.heard(upstream, recallName));
          }
        }),
        { numRuns: 300 },
      );
    });

    it('so that the client sees one well-formed message, whatever is private and however many rounds it takes', () => {
      fc.assert(
        fc.property(fc.array(replyWithRecallsOnly(), { maxLength: 3 }), anyReply(), (rounds, last) => {
          const relay = codec.openStream({ privateTools: onlyRecall });
          const isPending = callsIn(last).some((call) => call.name === recallName) && clientCalls(last) === 0;
          const turns = [...rounds, last];
          let went = '';
          turns.forEach((turn, number) => {
            const { out, end } = relayed(relay, fixture.stream(turn, number));
            went += out;
            const isRecall = number < rounds.length || isPending;
            expect(end.status).toBe(isRecall ? 'recall' : 'done');
            if (end.status === 'recall') sameReply(codec, fixture, end.reply, turn);
            else went += tailOf(end);
          });
          if (isPending) went += relay.finish().map(shown).join('');
          expect(fixture.client(went)).toEqual(expectedView(turns));
          expect(relay.usage()).toEqual(sumOf(turns));
        }),
        { numRuns: 500 },
      );
    });

    it.each(privateOrders)('without the calls of both private tools: %s, then %s', (...names) => {
      const both = names.map((name, at) => ({ type: 'call' as const, id: `c${at}`, name, pieces: ['{}'] }));
      const usage = { input: 1, cacheRead: 0, cacheWrite: 0, output: 1 };
      const words: ScriptedPart = { type: 'text', pieces: ['a'] };
      const run: ScriptedPart = { type: 'call', id: 'c2', name: 'run', pieces: ['{}'] };
      const relay = codec.openStream({ privateTools: bothPrivate });
      const first = relayed(relay, fixture.stream({ parts: [words, ...both], finish: 'calls', usage }, 0));
      const last = relayed(relay, fixture.stream({ parts: [...both, run], finish: 'calls', usage }, 1));
      const seen = fixture.client(first.out + last.out + tailOf(last.end));
      expect([seen.text, seen.calls.map(({ name }) => name), seen.finish]).toEqual(['a', ['run'], 'calls']);
      for (const { reply } of [first.end, last.end])
        expect(reply?.recalls.map(({ name }) => name)).toEqual(names);
    });

    it('and rebuilds the same turn from any pieces', () => {
      fc.assert(
        fc.property(replyWithRecallsOnly(), (turn) => {
          const joined = {
            ...turn,
            parts: turn.parts.map((part) => ({ ...part, pieces: [part.pieces.join('')] })),
          };
          const [one, other] = [turn, joined].map((said) => {
            const { end } = relayed(codec.openStream({ privateTools: onlyRecall }), fixture.stream(said, 0));
            return end.status === 'recall' ? shown(end.reply.turn) : undefined;
          });
          expect(one).toBe(other);
          expect(one).toBeTypeOf('string');
        }),
      );
    });
  });

  scriptedCases(codec, fixture);
  brokenCases(codec, fixture);
}

/** The turns that every relay must have seen, written out. */
function scriptedCases(codec: Codec, fixture: CodecFixture): void {
  const text = (...pieces: readonly string[]): ScriptedPart => ({ type: 'text', pieces });
  const reasoning: ScriptedPart = { type: 'reasoning', pieces: ['hm', ', so'] };
  const call = (id: string, name: string, ...pieces: readonly string[]): ScriptedPart => ({
    type: 'call',
    id,
    name,
    pieces,
  });
  const recall = (id: string) => call(id, recallName, '{"id"', ':"m1"}');
  const usage = { input: 100, cacheRead: 60, cacheWrite: 0, output: 20 };
  const turn = (finish: ScriptedTurn['finish'], ...parts: readonly ScriptedPart[]): ScriptedTurn => ({
    parts,
    finish,
    usage,
  });

  const turns: Readonly<Record<string, ScriptedTurn>> = {
    'a text': turn('stop', text('Hel', 'lo')),
    'a text without a character': turn('stop'),
    'a tool call': turn('calls', call('c1', 'run', '{"a"', ':1}')),
    'a call of a tool whose name begins like ours': turn('calls', call('c1', 'read', '{}')),
    'a call of a tool whose name goes on after ours': turn(
      'calls',
      call('c1', `${recallName}_of_mine`, '{}'),
    ),
    'parallel calls': turn(
      'calls',
      text('Both.'),
      call('c1', 'run', '{}'),
      call('c2', 'read', '{"b":[1', ',2]}'),
    ),
    'a recall together with calls of the client': turn(
      'calls',
      call('c1', 'run', '{}'),
      recall('c2'),
      call('c3', 'read', '{}'),
    ),
    'a recall before a call of the client': turn('calls', recall('c1'), call('c2', 'run', '{}')),
    'a recall cut off by the token limit': turn('length', text('So'), call('c1', recallName, '{"id":"m')),
    'a call cut off by the token limit': turn('length', call('c1', 'run', '{"id":"m')),
  };

  describe(`${codec.name} relays and finishes after`, () => {
    it.each(Object.entries(turns))('%s', (_, scripted) => {
      const relay = codec.openStream({ privateTools: onlyRecall });
      const { out, end } = relayed(relay, fixture.stream(scripted, 0));
      expect(end.status).toBe('done');
      expect(fixture.client(out + tailOf(end))).toEqual(expectedView([scripted]));
    });
  });

  const pending: Readonly<Record<string, ScriptedTurn>> = {
    'a recall only': turn('calls', recall('c1')),
    'two recalls': turn('calls', recall('c1'), recall('c2')),
    'text, then a recall': turn('calls', text('Let me ', 'look.'), recall('c1')),
    'a recall, then text': turn('calls', recall('c1'), text('Looking.')),
    'reasoning, then a recall': turn('calls', reasoning, recall('c1')),
    'text, a recall, reasoning, a recall, text': turn(
      'calls',
      text('a'),
      recall('c1'),
      reasoning,
      recall('c2'),
      text('b'),
    ),
  };

  describe(`${codec.name} relays and asks to continue after`, () => {
    it.each(Object.entries(pending))('%s', (_, scripted) => {
      const relay = codec.openStream({ privateTools: onlyRecall });
      const first = relayed(relay, fixture.stream(scripted, 0));
      expect(first.end.status).toBe('recall');
      if (first.end.status === 'recall') sameReply(codec, fixture, first.end.reply, scripted);
      const last = turn('calls', text('Now ', 'this.'), call('c9', 'run', '{"x":1}'));
      const second = relayed(relay, fixture.stream(last, 1));
      expect(second.end.status).toBe('done');
      expect(fixture.client(first.out + second.out + tailOf(second.end))).toEqual(
        expectedView([scripted, last]),
      );
    });

    it.each(Object.entries(pending))('%s, and can be closed when nothing follows', (_, scripted) => {
      const relay = codec.openStream({ privateTools: onlyRecall });
      const { out } = relayed(relay, fixture.stream(scripted, 0));
      const closed = fixture.client(out + relay.finish().map(shown).join(''));
      expect(closed).toEqual({ ...expectedView([scripted]), finish: 'stop' });
    });

    it.each(Object.entries(pending))('%s, and can report that it failed', (_, scripted) => {
      const relay = codec.openStream({ privateTools: onlyRecall });
      const { out } = relayed(relay, fixture.stream(scripted, 0));
      const tail = relay.fail({ status: 502, message: 'The upstream "cannot" be reached.' });
      const seen = fixture.client(out + tail.map(shown).join(''));
      expect(seen.error).toContain('The upstream "cannot" be reached.');
      expect(seen.text).toBe(saidIn(scripted, 'text'));
    });
  });
}

function brokenCases(codec: Codec, fixture: CodecFixture): void {
  describe(`${codec.name} relays streams that break off`, () => {
    it('and passes on an error of the provider, and nothing after it, in any round', () => {
      fc.assert(
        fc.property(
          fc.array(replyWithRecallsOnly(), { maxLength: 2 }),
          anyReply(),
          fc.nat(),
          (rounds, last, seed) => {
            const relay = codec.openStream({ privateTools: onlyRecall });
            const before = rounds
              .map((turn, number) => relayed(relay, fixture.stream(turn, number)).out)
              .join('');
            const events = eventsOf(fixture.stream(last, rounds.length));
            // The error replaces the end of the message, or precedes it.
            const some = events
              .slice(0, seed % Math.max(1, events.length - 2))
              .map((event) => shown(event.raw))
              .join('');
            const { out, end } = relayed(relay, some + fixture.streamError);
            expect(end).toMatchObject({ status: 'done', tail: [] });
            expect(out.endsWith(fixture.streamError)).toBe(true);
            if (before + some !== '') expect(fixture.client(before + out).error).toBeTypeOf('string');
          },
        ),
      );
    });

    it('and ends quietly wherever the stream is cut off', () => {
      fc.assert(
        fc.property(anyReply(), fc.nat(), (turn, seed) => {
          const relay = codec.openStream({ privateTools: onlyRecall });
          const events = eventsOf(fixture.stream(turn, 0));
          const some = events.slice(0, seed % (events.length + 1));
          const went = some
            .flatMap((event) => relay.take(event))
            .map(shown)
            .join('');
          expect(() => relay.end()).not.toThrow();
          expect(fixture.heard(went, recallName)).toEqual(
            fixture.heard(some.map((event) => shown(event.raw)).join(''), recallName),
          );
        }),
      );
    });

    it('and never throws, whatever its events hold', () => {
      fc.assert(
        fc.property(
          fc.array(anyReply(), { minLength: 1, maxLength: 2 }),
          fc.nat(),
          jsonValueText(),
          (turns, seed, value) => {
            const relay = codec.openStream({ privateTools: onlyRecall });
            turns.forEach((turn, number) => {
              const events = eventsOf(fixture.stream(turn, number));
              const odd = seed % events.length;
              events.forEach((event, at) => {
                const data = at === odd ? replacedValue(event.data, seed, value) : event.data;
                relay.take({ ...event, data });
              });
              relay.end();
            });
            relay.finish();
            relay.usage();
          },
        ),
        { numRuns: 1000 },
      );
    });

    it('and lets comments and unknown events through, also between rounds', () => {
      const odd = [
        ': ping\n\n',
        'event: new\ndata: {"type":"new","x":1}\n\n',
        'data: not json\n\n',
        'data: 5\n\n',
        '\n',
      ];
      const relay = codec.openStream({ privateTools: onlyRecall });
      const pieces = ['{"id":"m1"}'];
      const parts: readonly ScriptedPart[] = [{ type: 'call', id: 'c1', name: recallName, pieces }];
      const usage = { input: 1, cacheRead: 0, cacheWrite: 0, output: 1 };
      for (const raw of odd) expect(relay.take(eventOf(raw)).map(shown).join('')).toBe(raw);
      relayed(relay, fixture.stream({ parts, finish: 'calls', usage }, 0));
      for (const raw of odd) expect(relay.take(eventOf(raw)).map(shown).join('')).toBe(raw);
    });
  });
}

function clientCalls(turn: ScriptedTurn): number {
  return callsIn(turn).filter((call) => call.name !== recallName).length;
}

/** A stream gives the same reply as the complete response, and it can be sent back. */
function sameReply(codec: Codec, fixture: CodecFixture, reply: ModelReply, turn: ScriptedTurn): void {
  const whole = codec.readResponse(fixture.response(turn), onlyRecall);
  const { text, recalls, calls, usage, finish } = reply;
  expect({ text, recalls, calls, usage, finish }).toEqual({
    text: whole.text,
    recalls: whole.recalls,
    calls: whole.calls,
    usage: whole.usage,
    finish: whole.finish,
  });
  const sent = fixture.body({ turns: [{ say: 'user', text: 'a' }], tools: ['read'] });
  const answers = recalls.map((call) => ({ call, text: 'answer' }));
  const next = view(codec, codec.continueWith(sent, reply, answers));
  expect(codec.rules.problems(next)).toEqual([]);
}
