/** Tests additions to a body: the recall tool at the end of the tools, and the next request after a recall. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Codec, RecallTool } from '../../../src/codecs/codec.ts';
import type { Conversation } from '../../../src/conversation/conversation.ts';
import { bytesOf } from '../../../src/conversation/messages.ts';
import { pairCalls } from '../../../src/conversation/turns.ts';
import {
  anyText,
  editKinds,
  editSeeds,
  editsFrom,
  onlyRecall,
  recallName,
  replyWithRecallsOnly,
  requestsFor,
} from './arbitrary.ts';
import { editedModels } from './edited.ts';
import type { CodecFixture } from './fixture.ts';
import { bytesOfBlock, shown, textsIn, view } from './views.ts';

const encoder = new TextEncoder();

const recallTool: RecallTool = {
  name: recallName,
  description: 'Reads what was "folded".\n',
  parameters: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
};

export function appendingCases(codec: Codec, fixture: CodecFixture): void {
  describe(`${codec.name} adds the recall tool`, () => {
    it('after the tools of the client, and keeps every other byte', () => {
      fc.assert(
        fc.property(requestsFor(fixture), fc.constantFrom(undefined, 1), (request, space) => {
          const body = spaced(fixture.body(request), space);
          const result = codec.write(view(codec, body), [], { recallTool });
          const after = view(codec, result);
          expect(after.toolNames).toEqual([...request.tools, recallName]);
          const added = insertedInto(shown(body), shown(result));
          const definition: unknown = JSON.parse(added.replace(/^,/, ''));
          expect(JSON.stringify(definition)).toContain(JSON.stringify(recallTool.parameters));
          expect(JSON.stringify(definition)).toContain(JSON.stringify(recallTool.description));
        }),
      );
    });

    it('together with edits', () => {
      fc.assert(
        fc.property(requestsFor(fixture), editSeeds(editKinds), (request, seeds) => {
          const conversation = view(codec, fixture.body(request));
          const edits = editsFrom(conversation, seeds);
          const after = view(codec, codec.write(conversation, edits, { recallTool }));
          const { found, expected } = editedModels(conversation, edits, after, fixture);
          expect(found).toEqual(expected);
          expect(after.toolNames).toEqual([...request.tools, recallName]);
        }),
      );
    });

    it('only when the client offers tools of its own', () => {
      const body = fixture.body({ turns: [{ say: 'user', text: 'a' }], tools: [] });
      const failed = { name: 'LeporelloError', code: 'bad-edit' };
      expect(() => codec.write(view(codec, body), [], { recallTool })).toThrow(
        expect.objectContaining(failed),
      );
    });

    it.each(Object.entries(fixture.recorded))('to what %s sends', (_, body) => {
      const conversation = view(codec, body);
      if (conversation.toolNames.length === 0) return;
      const result = codec.write(conversation, [], { recallTool });
      expect(view(codec, result).toolNames).toEqual([...conversation.toolNames, recallName]);
      expect(insertedInto(shown(body), shown(result))).toContain(`"${recallName}"`);
    });
  });

  describe(`${codec.name} continues after recalls`, () => {
    it('with the sent bytes up to the end of the messages, the unchanged reply, and an answer to each call', () => {
      const answers = fc.array(
        anyText.filter((text) => text !== ''),
        { minLength: 10, maxLength: 10 },
      );
      fc.assert(
        fc.property(
          requestsFor(fixture),
          replyWithRecallsOnly(),
          answers,
          fc.constantFrom(undefined, 2),
          (request, turn, texts, space) => {
            const sent = codec.write(view(codec, spaced(fixture.body(request), space)), [], { recallTool });
            const reply = codec.readResponse(fixture.response(turn), onlyRecall);
            const replies = reply.recalls.map((call, at) => ({ call, text: texts[at]! }));
            const next = codec.continueWith(sent, reply, replies);

            const before = view(codec, sent);
            const after = view(codec, next);
            const end = before.messages.at(-1)!.span.end;
            expect(shown(next.subarray(0, end))).toBe(shown(sent.subarray(0, end)));
            const rest = shown(sent.subarray(end));
            expect(shown(next).endsWith(rest)).toBe(true);
            expect(codec.rules.problems(after)).toEqual([]);
            expect(answeredBehind(after, before.messages.length)).toEqual(
              replies.map(({ call, text }) => [call.id, call.name, text]),
            );
          },
        ),
        { numRuns: 300 },
      );
    });

    it('twice in a row', () => {
      const part = { type: 'call', name: recallName, pieces: ['{"id":"m1"}'] } as const;
      const turn = (id: string) => ({ parts: [{ ...part, id }], finish: 'calls', usage: noUsage }) as const;
      const first = codec.readResponse(fixture.response(turn('c1')), onlyRecall);
      const second = codec.readResponse(fixture.response(turn('c2')), onlyRecall);
      const sent = fixture.body({ turns: [{ say: 'user', text: 'a' }], tools: ['read'] });
      const once = codec.continueWith(sent, first, [{ call: first.recalls[0]!, text: 'one' }]);
      const twice = codec.continueWith(once, second, [{ call: second.recalls[0]!, text: 'two' }]);
      const after = view(codec, twice);
      expect(textsIn(after)).toEqual(['a', 'one', 'two']);
      expect(codec.rules.problems(after)).toEqual([]);
    });

    it('and sends the turn back byte for byte', () => {
      const parts = [
        { type: 'call', id: 'c1', name: recallName, pieces: ['{"id":"é","n":12345678901234567890}'] },
      ] as const;
      const reply = codec.readResponse(
        fixture.response({ parts, finish: 'calls', usage: noUsage }),
        onlyRecall,
      );
      const sent = fixture.body({ turns: [{ say: 'user', text: 'a' }], tools: ['read'] });
      const next = codec.continueWith(sent, reply, [{ call: reply.recalls[0]!, text: 'x' }]);
      const turn = shown(reply.turn);
      expect(shown(next)).toContain(fixture.turnInRequest === 'whole' ? turn : turn.slice(1, -1));
    });
  });
}

const noUsage = { input: 1, cacheRead: 0, cacheWrite: 0, output: 1 };

/** Returns the calls of the messages from `start` on, each with the text that answers it. */
function answeredBehind(conversation: Conversation, start: number) {
  return pairCalls(conversation)
    .pairs.filter(({ call }) => call.message >= start)
    .map(({ name, call, result }) => {
      const asked = conversation.messages[call.message]!.parts[call.part]!;
      const message = conversation.messages[result!.message]!;
      const part = message.parts[result!.part]!;
      const texts = part.type === 'tool-result' ? part.texts : [];
      const text = texts.map(
        (span) => JSON.parse(shown(bytesOf(conversation.body, message, span))) as string,
      );
      return [
        asked.type === 'tool-call' ? asked.id : bytesOfBlock(conversation.body, message),
        name,
        text.join(''),
      ];
    });
}

function spaced(body: Uint8Array, space: number | undefined): Uint8Array {
  return space === undefined ? body : encoder.encode(JSON.stringify(JSON.parse(shown(body)), null, space));
}

/** Returns the text that one insertion added; throws when there was more than one change. */
function insertedInto(before: string, after: string): string {
  let start = 0;
  while (start < before.length && before[start] === after[start]) start++;
  const tail = before.length - start;
  if (after.slice(after.length - tail) !== before.slice(start))
    throw new Error('more changed than one insertion');
  // The insertion may begin like the text after it.
  const added = after.slice(start, after.length - tail);
  return added.startsWith(',') ? added : `${before.slice(before.lastIndexOf(',{', start), start)}${added}`;
}
