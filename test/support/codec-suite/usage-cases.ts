/** Tests usage: within a response the last total counts; over the rounds of an exchange they add up, in the provider's own terms. */
import { describe, expect, it } from 'vitest';
import type { Codec, StreamRelay } from '../../../src/codecs/codec.ts';
import { onlyRecall, recallName } from './arbitrary.ts';
import type { CodecFixture, ScriptedPart, ScriptedTurn } from './fixture.ts';
import { relayed, tailOf } from './relay.ts';
import { sumOf } from './turns.ts';

export function usageCases(codec: Codec, fixture: CodecFixture): void {
  const { usage } = fixture;
  const said = usage.rounds.map((round) => round.said);
  const means = usage.rounds.map((round) => ({ usage: round.means }));

  /** Plays the rounds, of which all but the last recall; `after` sees the relay after each. */
  function played(rounds: readonly unknown[], after: (relay: StreamRelay, number: number) => void): string {
    const relay = codec.openStream({ privateTools: onlyRecall });
    const last = rounds.length - 1;
    return rounds
      .map((reported, number) => {
        const { out, end } = relayed(
          relay,
          usage.stream(number < last ? asking : answering, number, reported),
        );
        const tail = number < last ? '' : tailOf(end);
        after(relay, number);
        return out + tail;
      })
      .join('');
  }

  describe(`${codec.name} sums usage`, () => {
    it.each(usage.rounds)('of one stream by its last totals, of a response as reported (%#)', (round) => {
      const body = usage.response(answering, round.said);
      expect(codec.readResponse(body, onlyRecall).usage).toMatchObject(round.means);
      const relay = codec.openStream({ privateTools: onlyRecall });
      relayed(relay, usage.stream(answering, 0, round.said));
      expect(relay.usage()).toMatchObject(round.means);
    });

    it("of the rounds of a stream, and sends the client the sum in the provider's format", () => {
      const out = played(said, (relay, number) => {
        expect(relay.usage()).toMatchObject(sumOf(means.slice(0, number + 1)));
      });
      expect(usage.inStream(out).at(-1)).toEqual(usage.total);
    });

    it("of the rounds before a complete response, in the provider's format", () => {
      const bodies = said.map((reported, number) =>
        usage.response(number < said.length - 1 ? asking : answering, reported),
      );
      const replies = bodies.map((body) => codec.readResponse(body, onlyRecall));
      const seen = codec.writeResponse(bodies.at(-1)!, replies.slice(0, -1), replies.at(-1)!);
      expect(usage.inResponse(seen)).toEqual(usage.total);
    });

    it('so that no number decreases for the client', () => {
      const totals = usage.inStream(played(said, () => undefined)).map((one) => numbersIn(one));
      totals.slice(1).forEach((now, at) => {
        const back = [...totals[at]!].filter(([place, before]) => (now.get(place) ?? 0) < before);
        expect(back).toEqual([]);
      });
    });

    it('of the rounds that report any', () => {
      const gaps = [said[0], undefined, said[1]];
      played(gaps, (relay, number) => {
        const known = number < 2 ? means.slice(0, 1) : means.slice(0, 2);
        expect(relay.usage()).toMatchObject(sumOf(known));
      });
      played([undefined, undefined], (relay) => {
        expect(relay.usage()).toBeUndefined();
      });
      const silent = codec.readResponse(usage.response(answering, undefined), onlyRecall);
      expect(silent.usage).toBeUndefined();
    });
  });
}

const call = (name: string): ScriptedPart => ({ type: 'call', id: 'c1', name, pieces: ['{"id"', ':"m1"}'] });
const text: ScriptedPart = { type: 'text', pieces: ['So ', 'it ', 'is.'] };
const nothing = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 };
const asking: ScriptedTurn = { parts: [text, call(recallName)], finish: 'calls', usage: nothing };
const answering: ScriptedTurn = { parts: [text, call('run')], finish: 'calls', usage: nothing };

/** Returns every number of a usage object by its place. */
function numbersIn(value: unknown, place = ''): ReadonlyMap<string, number> {
  if (typeof value === 'number') return new Map([[place, value]]);
  if (typeof value !== 'object' || value === null) return new Map();
  return new Map(Object.entries(value).flatMap(([key, inner]) => [...numbersIn(inner, `${place}.${key}`)]));
}
