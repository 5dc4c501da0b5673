/** Tests reading: the view holds the content of the body, and writing nothing gives the same array. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Codec } from '../../../src/codecs/codec.ts';
import { bytesOf } from '../../../src/conversation/messages.ts';
import { pairCalls } from '../../../src/conversation/turns.ts';
import { requestsFor } from './arbitrary.ts';
import type { CodecFixture, NeutralRequest } from './fixture.ts';
import { newReading, shown, textsIn, view } from './views.ts';

const encoder = new TextEncoder();

export function readingCases(codec: Codec, fixture: CodecFixture): void {
  describe(`${codec.name} reads`, () => {
    it.each(Object.entries(fixture.oddBodies))(
      'a body with %s, and writes it back as the same array',
      (_, text) => {
        const body = encoder.encode(text);
        expect(JSON.parse(text)).toBeTypeOf('object');
        expect(codec.write(view(codec, body), [])).toBe(body);
      },
    );

    it.each(Object.entries(fixture.recorded))(
      'what %s sends, finds no broken rule, and writes it back',
      (_, body) => {
        const conversation = view(codec, body);
        expect(codec.rules.problems(conversation)).toEqual([]);
        expect(codec.write(conversation, [])).toBe(body);
      },
    );

    it('any conversation: its texts, calls, results and tools, in order', () => {
      fc.assert(
        fc.property(requestsFor(fixture), (request) => {
          const body = fixture.body(request);
          const streaming = request.stream === true;
          const { model, route } = fixture;
          const reader = route.in === 'url' ? route.codecFor({ model, streaming }) : codec;
          const conversation = view(reader, body);
          expect(conversation.body).toBe(body);
          expect(textsIn(conversation)).toEqual(textsSaid(request));
          expect(callsIn(conversation)).toEqual(callsSaid(request));
          expect(conversation.toolNames).toEqual(request.tools);
          expect([conversation.model, conversation.streaming]).toEqual([model, streaming]);
          expect(conversation.replies).toBe(1);
          expect(reader.rules.problems(conversation)).toEqual([]);
          expect(pairCalls(conversation).orphans).toEqual([]);
          expect(reader.write(conversation, [])).toBe(body);
        }),
        { numRuns: 300 },
      );
    });

    it('the same from its memo, wherever a message is now', () => {
      fc.assert(
        fc.property(requestsFor(fixture), requestsFor(fixture), (one, other) => {
          const reading = newReading();
          codec.read(fixture.body(one), reading);
          const body = fixture.body({ ...other, turns: [...other.turns, ...one.turns.slice(1)] });
          expect(codec.read(body, reading)).toEqual(codec.read(body, newReading()));
        }),
      );
    });

    it('a string of five megabytes', () => {
      const text = 'a"\\\u{1f600}é\n'.repeat(500_000);
      const body = fixture.body({ turns: [{ say: 'user', text }], tools: [] });
      const conversation = view(codec, body);
      expect(textsIn(conversation)[0] === text).toBe(true);
      expect(codec.write(conversation, [])).toBe(body);
      const edits = [
        { kind: 'replace-text', at: { message: 0, part: 0, text: 0 }, stub: 'short', memory: 'm' },
      ] as const;
      expect(textsIn(view(codec, codec.write(conversation, edits)))).toEqual(['short']);
    });

    it("nothing from another format's memo of the same bytes", () => {
      const body = fixture.body({ turns: [{ say: 'user', text: 'hello' }], tools: ['read'] });
      const of = `another/${fixture.messagesKey}`;
      const foreign = { of, role: 'system', parts: [], canonical: '' } as const;
      const blocks = { get: () => foreign, set: () => undefined };
      const { digest } = newReading();
      expect(codec.read(body, { digest, blocks })).toEqual(codec.read(body, newReading()));
    });
  });
}

function textsSaid({ turns }: NeutralRequest): readonly string[] {
  return turns.flatMap((turn) => {
    switch (turn.say) {
      case 'system':
      case 'user':
        return [turn.text];
      case 'assistant':
        return [turn.reasoning, turn.text].filter((text) => text !== undefined);
      case 'results':
        return turn.results.map((result) => result.text);
    }
  });
}

function callsSaid({ turns }: NeutralRequest) {
  return turns.flatMap((turn) => (turn.say === 'assistant' ? turn.calls : []));
}

/** Arguments are a JSON string in some formats and an object in others; both are the same JSON. */
function callsIn(conversation: ReturnType<typeof view>) {
  return conversation.messages.flatMap((message) =>
    message.parts.flatMap((part) => {
      if (part.type !== 'tool-call') return [];
      const text = shown(bytesOf(conversation.body, message, part.input));
      const input = text.startsWith('"') ? (JSON.parse(text) as string) : text;
      return [{ id: part.id, name: part.name, argumentsJson: input }];
    }),
  );
}
