/** Tests writing: exactly the edits show, nothing else changes, pairs stay paired, and edits that name no place are refused. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Codec } from '../../../src/codecs/codec.ts';
import type { Conversation } from '../../../src/conversation/conversation.ts';
import type { Edit } from '../../../src/conversation/edit.ts';
import { pairCalls } from '../../../src/conversation/turns.ts';
import { editKinds, editSeeds, editsFrom, requestsFor } from './arbitrary.ts';
import { editedModels } from './edited.ts';
import type { CodecFixture } from './fixture.ts';
import { otherMembers, shown, view } from './views.ts';

const encoder = new TextEncoder();

export function editingCases(codec: Codec, fixture: CodecFixture): void {
  describe(`${codec.name} writes edits`, () => {
    it.each(editKinds)('of kind %s so that reading shows exactly them', (kind) => {
      fc.assert(
        fc.property(requestsFor(fixture, { open: true }), editSeeds([kind]), (request, seeds) => {
          showsExactly(codec, fixture, fixture.body(request), seeds);
        }),
        { numRuns: 150 },
      );
    });

    it('of all kinds together', () => {
      fc.assert(
        fc.property(requestsFor(fixture, { open: true }), editSeeds(editKinds), (request, seeds) => {
          showsExactly(codec, fixture, fixture.body(request), seeds);
        }),
        { numRuns: 500 },
      );
    });

    it('into bodies spelled with white space everywhere', () => {
      fc.assert(
        fc.property(
          requestsFor(fixture, { open: true }),
          editSeeds(editKinds),
          fc.constantFrom('\t', 1, '\r\n'),
          (request, seeds, space) => {
            const spaced = JSON.stringify(JSON.parse(shown(fixture.body(request))), null, space);
            showsExactly(codec, fixture, encoder.encode(` ${spaced}\n`), seeds);
          },
        ),
        { numRuns: 300 },
      );
    });

    const written = [...Object.entries(fixture.recorded), ...Object.entries(fixture.oddBodies)];
    it.each(written)('into %s', (_, body) => {
      const bytes = typeof body === 'string' ? encoder.encode(body) : body;
      fc.assert(
        fc.property(editSeeds(editKinds), (seeds) => {
          showsExactly(codec, fixture, bytes, seeds);
        }),
        { numRuns: 50 },
      );
    });

    it('without touching the input', () => {
      const body = fixture.body({
        turns: [
          { say: 'user', text: 'a' },
          { say: 'user', text: 'b' },
        ],
        tools: [],
      });
      const before = shown(body);
      codec.write(view(codec, body), [{ kind: 'drop-message', message: 0, memory: undefined }]);
      expect(shown(body)).toBe(before);
    });

    it('that drop whole pairs, and leaves a valid conversation', () => {
      fc.assert(
        fc.property(
          requestsFor(fixture),
          fc.array(fc.boolean(), { minLength: 20, maxLength: 20 }),
          (request, picks) => {
            const conversation = view(codec, fixture.body(request));
            const edits = pairCalls(conversation)
              .pairs.filter((_, at) => picks[at % picks.length])
              .flatMap(({ call, result }) => [call, result!])
              .map((place): Edit => ({ kind: 'drop-part', ...place, memory: undefined }));
            const after = view(codec, codec.write(conversation, edits));
            expect(codec.rules.problems(after)).toEqual([]);
            expect(pairCalls(after).orphans).toEqual([]);
          },
        ),
        { numRuns: 300 },
      );
    });

    it('that replace texts and arguments where allowed, and leaves a valid conversation', () => {
      fc.assert(
        fc.property(requestsFor(fixture), editSeeds(['replace-text', 'replace-input']), (request, seeds) => {
          const conversation = view(codec, fixture.body(request));
          const edits = editsFrom(conversation, seeds).filter((edit) =>
            codec.rules.mayEdit(conversation, edit),
          );
          expect(codec.rules.problems(view(codec, codec.write(conversation, edits)))).toEqual([]);
        }),
      );
    });
  });

  describe(`${codec.name} refuses edits`, () => {
    const request = {
      turns: [
        { say: 'user', text: 'a' },
        { say: 'assistant', text: 'b', calls: [{ id: 'c1', name: 'read', argumentsJson: '{}' }] },
        { say: 'results', results: [{ id: 'c1', text: 'c' }] },
      ],
      tools: ['read'],
    } as const;
    const replace = (message: number, part: number, text: number): Edit => ({
      kind: 'replace-text',
      at: { message, part, text },
      stub: 's',
      memory: 'm',
    });
    const replaceInput = (message: number, part: number): Edit => ({
      kind: 'replace-input',
      message,
      part,
      input: '{}',
      memory: 'm',
    });
    // One turn of the assistant is one message in some formats and two in others.
    const conversation = view(codec, fixture.body(request));
    const beyond = conversation.messages.length;
    const { message: calling, part: call } = pairCalls(conversation).pairs[0]!.call;
    const cases: readonly (readonly [string, readonly Edit[]])[] = [
      ['a text of a message that is not there', [replace(beyond, 0, 0)]],
      ['a text of a part that is not there', [replace(0, 1, 0)]],
      ['a text that is not there', [replace(0, 0, 1)]],
      ['a text of a part that has none', [replace(calling, call, 0)]],
      ['negative places', [replace(-1, 0, 0)]],
      [
        'a part that is not there',
        [{ kind: 'drop-part', message: calling, part: call + 1, memory: undefined }],
      ],
      [
        'a part of a message that is not there',
        [{ kind: 'drop-part', message: beyond, part: 0, memory: undefined }],
      ],
      ['a message that is not there', [{ kind: 'drop-message', message: beyond, memory: undefined }]],
      [
        'an insertion in front of no message',
        [{ kind: 'insert-message', before: beyond, role: 'user', text: 't' }],
      ],
      [
        'an insertion in front of everything',
        [{ kind: 'insert-message', before: -1, role: 'user', text: 't' }],
      ],
      ['arguments of a message that is not there', [replaceInput(beyond, 0)]],
      ['arguments of a part that is not there', [replaceInput(calling, call + 1)]],
      ['arguments of a part that has none', [replaceInput(0, 0)]],
      ['arguments replaced twice', [replaceInput(calling, call), replaceInput(calling, call)]],
      ['one text replaced twice', [replace(0, 0, 0), replace(0, 0, 0)]],
      ['a wrong place among right ones', [replace(0, 0, 0), replace(beyond - 1, 0, 7)]],
      [
        'a wrong place in a message that goes',
        [{ kind: 'drop-message', message: 0, memory: undefined }, replace(0, 4, 0)],
      ],
    ];
    it.each(cases)('that name %s', (_, edits) => {
      const failed = { name: 'LeporelloError', code: 'bad-edit' };
      expect(() => codec.write(conversation, edits)).toThrow(expect.objectContaining(failed));
      if (edits.length === 1) expect(codec.rules.mayEdit(conversation, edits[0]!)).toBe(false);
    });

    it('that name a place twice only if the outcome would be ambiguous', () => {
      const drop: Edit = { kind: 'drop-message', message: 0, memory: undefined };
      const part: Edit = { kind: 'drop-part', message: 0, part: 0, memory: 'm' };
      const once = codec.write(conversation, [drop]);
      expect(codec.write(conversation, [drop, part, drop, replace(0, 0, 0)])).toEqual(once);
    });
  });
}

/** Reads, edits and reads again; compares the result with the model, and the rest of the body with the rest before. */
function showsExactly(
  codec: Codec,
  fixture: CodecFixture,
  body: Uint8Array,
  seeds: Parameters<typeof editsFrom>[1],
): void {
  const conversation = view(codec, body);
  const edits = editsFrom(conversation, seeds);
  const result = codec.write(conversation, edits);
  const after = view(codec, result);
  const { found, expected } = editedModels(conversation, edits, after, fixture);
  expect(found).toEqual(expected);
  const beside = (read: Conversation) => otherMembers(read, fixture.messagesKey);
  expect(beside(after)).toEqual(beside(conversation));
  expect(() => JSON.parse(shown(result))).not.toThrow();
  if (edits.length === 0) expect(result).toBe(body);
}
