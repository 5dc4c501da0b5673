/** Tests a recall anywhere in a reply: first, in the middle or last, with words, reasoning and calls, in every round. */
import { describe, expect, it } from 'vitest';
import type { Codec } from '../../../src/codecs/codec.ts';
import { onlyRecall, recallName } from './arbitrary.ts';
import { isAbsent, skipped } from './each-answer.ts';
import type { CodecFixture, ScriptedPart, ScriptedTurn } from './fixture.ts';
import { eventsOf, relayed, tailOf } from './relay.ts';
import { expectedView, reasoningIn } from './turns.ts';
import { shown } from './views.ts';

const text = (...pieces: readonly string[]): ScriptedPart => ({ type: 'text', pieces });
const reasoning = (...pieces: readonly string[]): ScriptedPart => ({ type: 'reasoning', pieces });
const call = (id: string): ScriptedPart => ({ type: 'call', id, name: 'run', pieces: ['{"n"', ':1}'] });
const recall = (id: string): ScriptedPart => ({
  type: 'call',
  id,
  name: recallName,
  pieces: ['{"id":', '"m1"}'],
});

/** Messages into which a recall is inserted, at every place. */
const messages: readonly (readonly ScriptedPart[])[] = [
  [],
  [text('So ', 'far.')],
  [reasoning('Hm', ', so.')],
  [recall('recalled')],
  [call('a')],
  [text('One. '), text('Two.')],
  [reasoning('Hm.'), text('So.')],
  [reasoning('Hm.'), call('a')],
  [reasoning('Hm.'), recall('recalled')],
  [text('So.'), call('a')],
  [call('a'), call('b')],
  [text('One. '), reasoning('Hm.'), text('Two.')],
  [reasoning('Hm.'), text('So.'), call('a'), call('b')],
];

const replies = messages.flatMap((parts) =>
  Array.from({ length: parts.length + 1 }, (_, at) => {
    const put = [...parts.slice(0, at), recall('private'), ...parts.slice(at)];
    const name = put.map((part) => (part.type === 'call' ? nameOf(part) : part.type)).join(', ');
    return [name, put] as const;
  }),
);

export function recallPlaceCases(codec: Codec, fixture: CodecFixture): void {
  describe(`${codec.name} takes a recall out of a stream:`, () => {
    it.each(replies)('%s, and everything before it is unchanged', (_, parts) => {
      const relay = codec.openStream({ privateTools: onlyRecall });
      const events = eventsOf(fixture.stream(turnOf(parts), 0));
      const first = events.findIndex(({ data }) => data.includes(`"${recallName}"`));
      expect(first).toBeGreaterThanOrEqual(0);
      events.forEach((event, at) => {
        const out = relay.take(event);
        if (at < first) expect(out).toEqual([event.raw]);
        expect(out.map(shown).join('')).not.toContain(recallName);
      });
    });

    it.each(replies)('%s, and the rest is one message', (_, parts) => {
      const { sse, turns } = played(codec, fixture, parts);
      expect(fixture.client(sse)).toEqual(expectedView(turns));
      expect(sse).not.toContain(recallName);
    });

    const { official } = fixture;
    const name = isAbsent(official) ? 'an official client' : official.client;
    if (isAbsent(official)) skipped(`in any place of a reply, and ${name} accumulates the rest`, official);
    else
      it.each(replies)(`%s, and ${name} accumulates the rest`, async (_, parts) => {
        const { sse, turns } = played(codec, fixture, parts);
        const { text: said, calls, finish, usage } = expectedView(turns);
        expect(await official.read(sse)).toEqual({ text: said, calls, finish, usage });
      });
  });

  describe(`${codec.name} takes a recall out of a complete response:`, () => {
    it.each(replies)('%s', (_, parts) => {
      const turns = roundsOf(parts);
      const bodies = turns.map((turn) => fixture.response(turn));
      const read = bodies.map((body) => codec.readResponse(body, onlyRecall));
      const seen = codec.writeResponse(bodies.at(-1)!, read.slice(0, -1), read.at(-1)!);
      expect(fixture.clientResponse(seen)).toEqual({
        ...expectedView(turns),
        reasoning: reasoningIn(turns, fixture.reasoningShown),
      });
      expect(shown(seen)).not.toContain(recallName);
    });
  });
}

/** Returns the client's stream of all rounds. */
function played(codec: Codec, fixture: CodecFixture, parts: readonly ScriptedPart[]) {
  const turns = roundsOf(parts);
  const relay = codec.openStream({ privateTools: onlyRecall });
  const went = turns.map((turn, number) => {
    const { out, end } = relayed(relay, fixture.stream(turn, number));
    expect(end.status).toBe(number < turns.length - 1 ? 'recall' : 'done');
    return end.status === 'done' ? out + tailOf(end) : out;
  });
  return { sse: went.join(''), turns };
}

/** With calls of the client a recall is not answered yet. Alone it is answered, and the model recalls again before it continues. */
function roundsOf(parts: readonly ScriptedPart[]): readonly ScriptedTurn[] {
  const turn = turnOf(parts);
  if (parts.some((part) => part.type === 'call' && part.name !== recallName)) return [turn];
  return [turn, turn, turnOf([text('Now ', 'this.'), call('last')])];
}

function turnOf(parts: readonly ScriptedPart[]): ScriptedTurn {
  return { parts, finish: 'calls', usage: { input: 100, cacheRead: 60, cacheWrite: 0, output: 20 } };
}

function nameOf(part: ScriptedPart & { readonly type: 'call' }): string {
  return part.name === recallName ? 'RECALL' : 'call';
}
