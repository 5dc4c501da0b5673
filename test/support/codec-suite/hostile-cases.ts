/** Tests input that no honest client sends: it is read without harm, or refused as `not-this-format`, and nothing else. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Codec } from '../../../src/codecs/codec.ts';
import type { Conversation } from '../../../src/conversation/conversation.ts';
import { pairCalls } from '../../../src/conversation/turns.ts';
import { LeporelloError } from '../../../src/errors.ts';
import { editKinds, editSeeds, editsFrom, requestsFor } from './arbitrary.ts';
import { eachAnswer } from './each-answer.ts';
import type { CodecFixture } from './fixture.ts';
import { jsonValueText, replacedValue } from './json-text.ts';
import { newReading, shown, textsIn, view } from './views.ts';

const encoder = new TextEncoder();
const refused = expect.objectContaining({ name: 'LeporelloError', code: 'not-this-format' });

export function hostileCases(codec: Codec, fixture: CodecFixture): void {
  const valid = fixture.body({ turns: [{ say: 'user', text: 'a' }], tools: ['read'] });

  describe(`${codec.name} refuses`, () => {
    it.each([
      ['nothing', ''],
      ['white space', ' \n'],
      ['an empty object', '{}'],
      ['an array', '[]'],
      ['a string', '"{}"'],
      ['null', 'null'],
      ['not JSON', 'hello'],
    ])('%s', (_, text) => {
      expect(() => view(codec, text)).toThrow(refused);
    });

    eachAnswer(
      fixture.refused,
      (name) => name,
      (text) => {
        expect(JSON.parse(text)).toBeTypeOf('object');
        expect(() => view(codec, text)).toThrow(refused);
      },
    );

    it.each([
      ['a byte order mark', [0xef, 0xbb, 0xbf, ...valid]],
      ['bytes after the body', [...valid, 120]],
      ['a second body', [...valid, ...valid]],
      ['a zero byte after the body', [...valid, 0]],
      ['a body without its last byte', [...valid.subarray(0, -1)]],
    ])('%s', (_, bytes) => {
      expect(() => view(codec, Uint8Array.from(bytes))).toThrow(refused);
    });

    it('bytes that are not UTF-8, anywhere', () => {
      fc.assert(
        fc.property(
          requestsFor(fixture, { open: true }),
          fc.nat(),
          fc.constantFrom(0xff, 0xc0, 0xf8),
          (request, seed, byte) => {
            const body = fixture.body(request);
            body[seed % body.length] = byte;
            expect(() => view(codec, body)).toThrow(refused);
          },
        ),
      );
    });
  });

  describe(`${codec.name} reads or refuses, and nothing else,`, () => {
    it('a body with any value replaced by any other', () => {
      fc.assert(
        fc.property(
          requestsFor(fixture, { open: true }),
          fc.nat(),
          jsonValueText(),
          (request, seed, value) => {
            holds(codec, fixture.body(request), (text) => replacedValue(text, seed, value));
          },
        ),
        { numRuns: 1500 },
      );
    });

    it.each(Object.entries(fixture.recorded))(
      'what %s sends with any value replaced by any other',
      (_, body) => {
        fc.assert(
          fc.property(fc.nat(), jsonValueText(), (seed, value) => {
            holds(codec, body, (text) => replacedValue(text, seed, value));
          }),
          { numRuns: 150 },
        );
      },
    );

    it('a body with any byte changed, cut off anywhere', () => {
      const byte = fc.oneof(
        fc.constantFrom(...encoder.encode('"\\{}[],:n0')),
        fc.integer({ min: 0, max: 255 }),
      );
      fc.assert(
        fc.property(
          requestsFor(fixture, { open: true }),
          fc.nat(),
          byte,
          fc.nat(),
          fc.boolean(),
          (request, seed, value, cut, isCut) => {
            const body = fixture.body(request);
            body[seed % body.length] = value;
            const bytes = isCut ? body.subarray(0, cut % (body.length + 1)) : body;
            readsOrRefuses(codec, bytes);
          },
        ),
        { numRuns: 1500 },
      );
    });
  });

  describe(`${codec.name} reads what repeats and what is left over:`, () => {
    const call = (id: string) => ({ id, name: 'run', argumentsJson: '{}' });

    it('call ids that repeat between steps are no problem', () => {
      const step = [
        { say: 'assistant', calls: [call('c')] },
        { say: 'results', results: [{ id: 'c', text: 'r' }] },
      ] as const;
      const conversation = view(
        codec,
        fixture.body({ turns: [{ say: 'user', text: 'a' }, ...step, ...step], tools: [] }),
      );
      expect(codec.rules.problems(conversation)).toEqual([]);
      const pairs = pairCalls(conversation).pairs.map((pair) => [pair.call.message, pair.result?.message]);
      expect(pairs[0]![0]).toBeLessThan(pairs[0]![1]!);
      expect(pairs[0]![1]).toBeLessThan(pairs[1]![0]!);
    });

    it('a call without a result breaks a rule, also at the very end', () => {
      const open = [
        { say: 'user', text: 'a' },
        { say: 'assistant', calls: [call('c1'), call('c2')] },
      ] as const;
      const one = { say: 'results', results: [{ id: 'c1', text: 'r' }] } as const;
      expect(rulesBroken(codec, fixture, open)).toEqual(['calls-answered-next', 'calls-answered-next']);
      expect(rulesBroken(codec, fixture, [...open, one])).toEqual(['calls-answered-next']);
      expect(rulesBroken(codec, fixture, [...open, { say: 'user', text: 'b' }])).toEqual([
        'calls-answered-next',
        'calls-answered-next',
      ]);
      expect(rulesBroken(codec, fixture, [...open, one, { say: 'user', text: 'b' }])).toEqual([
        'calls-answered-next',
      ]);
    });

    it('a result without a call, and one too many, break rules', () => {
      const result = { say: 'results', results: [{ id: 'c1', text: 'r' }] } as const;
      const user = { say: 'user', text: 'a' } as const;
      const asked = { say: 'assistant', calls: [call('c1')] } as const;
      expect(rulesBroken(codec, fixture, [user, { say: 'assistant', text: 'b', calls: [] }, result])).toEqual(
        ['results-answer-calls'],
      );
      const twice = { say: 'results', results: [...result.results, ...result.results] } as const;
      expect(rulesBroken(codec, fixture, [user, asked, twice])).toEqual(['one-result-a-call']);
    });

    it('the user speaks twice in a row, where that is allowed', () => {
      const twice = ['a', 'b'].map((text) => ({ say: 'user', text }) as const);
      const { userTwiceInARow } = fixture;
      const expected = userTwiceInARow === 'allowed' ? [] : [userTwiceInARow.breaks];
      expect(rulesBroken(codec, fixture, twice)).toEqual(expected);
      const between = { say: 'assistant', text: 'c', calls: [] } as const;
      expect(rulesBroken(codec, fixture, [twice[0]!, between, twice[1]!])).toEqual([]);
    });

    it('a body without messages breaks a rule', () => {
      expect(rulesBroken(codec, fixture, [])).toEqual(['messages-not-empty']);
    });

    it.each(Object.entries(fixture.broken))('a body breaks the rule %s', (rule, body) => {
      const problems = codec.rules.problems(view(codec, body));
      expect(problems.map((problem) => problem.rule)).toEqual([rule]);
      expect(problems[0]!.detail).not.toContain('secret');
    });
  });
}

function rulesBroken(
  codec: Codec,
  fixture: CodecFixture,
  turns: Parameters<CodecFixture['body']>[0]['turns'],
) {
  const conversation = view(codec, fixture.body({ turns, tools: ['run'] }));
  return codec.rules.problems(conversation).map((problem) => problem.rule);
}

function holds(codec: Codec, body: Uint8Array, change: (text: string) => string): void {
  readsOrRefuses(codec, encoder.encode(change(shown(body))));
}

/** Every function that works on a view works on this one, whatever odd content the body has. */
function readsOrRefuses(codec: Codec, body: Uint8Array): void {
  let conversation: Conversation;
  try {
    conversation = codec.read(body, newReading());
  } catch (error) {
    expect(LeporelloError.isInstance(error) && error.code).toBe('not-this-format');
    return;
  }
  expect(codec.write(conversation, [])).toBe(body);
  expect(() => JSON.parse(shown(body))).not.toThrow();
  expect(textsIn(conversation).every((text) => typeof text === 'string')).toBe(true);
  codec.rules.problems(conversation);
  pairCalls(conversation);
  fc.assert(
    fc.property(editSeeds(editKinds), (seeds) => {
      const edits = editsFrom(conversation, seeds);
      edits.forEach((edit) => codec.rules.mayEdit(conversation, edit));
      expect(codec.rules.complete(conversation, edits).status).toMatch(/^(?:ok|refused)$/);
      view(codec, codec.write(conversation, edits));
    }),
    { numRuns: 2 },
  );
}
