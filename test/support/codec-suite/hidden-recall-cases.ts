/**
 * Tests hidden recalls: later requests hold what was recalled for a reply, at the place where the model recalled it, with the
 * bytes that were sent.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Codec, RecallAnswer } from '../../../src/codecs/codec.ts';
import type { Conversation, RecallRound, HiddenRecall } from '../../../src/conversation/conversation.ts';
import { bytesOf, textOf, textsOf } from '../../../src/conversation/messages.ts';
import { pairCalls } from '../../../src/conversation/turns.ts';
import { anyReply, onlyRecall, recallName, replyWithRecallsOnly } from './arbitrary.ts';
import type { CodecFixture, NeutralTurn, ScriptedPart, ScriptedTurn } from './fixture.ts';
import { bytesOfBlock, view } from './views.ts';

/** The rounds of one reply as the model wrote them, and the copy that the client keeps. */
type PlayedReply = { readonly rounds: readonly ScriptedTurn[]; readonly copy: readonly NeutralTurn[] };

export function hiddenRecallCases(codec: Codec, fixture: CodecFixture): void {
  const asked: NeutralTurn = { say: 'user', text: 'What does the log say?' };
  const thanks: NeutralTurn = { say: 'user', text: 'Thanks. And now?' };

  /** Returns the last request of the reply as the model saw it, and a later one of the client with the hidden recall put back. */
  function later({ rounds, copy }: PlayedReply, others: readonly HiddenRecall[] = []) {
    const first = fixture.body({ turns: [asked], tools: ['read'] });
    let sent = first;
    const hiddenRecalls: RecallRound[] = [];
    let closing: Uint8Array | undefined;
    for (const [number, turn] of rounds.entries()) {
      const reply = codec.readResponse(fixture.response(turn), onlyRecall);
      const answers = reply.recalls.map(
        (call, at): RecallAnswer => ({ call, text: `memory ${number}.${at}` }),
      );
      if (answers.length === 0) closing = reply.turn;
      else hiddenRecalls.push({ turn: reply.turn, answers });
      if (answers.length > 0 && reply.calls.length === 0) sent = codec.continueWith(sent, reply, answers);
    }
    const body = fixture.body({ turns: [asked, ...copy, thanks], tools: ['read'] });
    const client = view(codec, body);
    const at = view(codec, first).messages.length;
    const turns = [...others, { rounds: hiddenRecalls, closing }];
    const after = view(codec, codec.insertHiddenRecalls(client, [{ at, candidates: turns }]));
    return { client, after, model: view(codec, sent), hiddenRecall: turns.at(-1)! };
  }

  function expectPutBack(played: PlayedReply, lines: readonly string[]): void {
    const { after, model } = later(played);
    expect(messagesOf(after).slice(0, model.messages.length)).toEqual(messagesOf(model));
    expect(linesOf(after)).toEqual(lines);
    expect(codec.rules.problems(after)).toEqual([]);
  }

  function expectLeftOut(played: PlayedReply): void {
    const { client, after } = later(played);
    expect(after.body).toBe(client.body);
  }

  describe(`${codec.name} puts a recall back`, () => {
    const recall = callOf('m1', recallName, '{"id":"mem_a"}');

    it('ahead of the words that followed it', () => {
      expectPutBack({ rounds: [turnOf(recall), turnOf(text('Two errors.'))], copy: [said('Two errors.')] }, [
        'What does the log say?',
        'call read_memory {"id":"mem_a"}',
        'result memory 0.0',
        'Two errors.',
        'Thanks. And now?',
      ]);
    });

    it('between words that the client has as one text', () => {
      const rounds = [turnOf(text('Let me look. '), recall), turnOf(text('Two errors.'))];
      expectPutBack({ rounds, copy: [said('Let me look. Two errors.')] }, [
        'What does the log say?',
        'Let me look. ',
        'call read_memory {"id":"mem_a"}',
        'result memory 0.0',
        'Two errors.',
        'Thanks. And now?',
      ]);
    });

    it('when the client trimmed the text, or broke the line', () => {
      const rounds = [turnOf(text('Let me look.\n\n'), recall), turnOf(text(' Two errors.\n'))];
      for (const heard of [
        'Let me look.Two errors.',
        'Let me look.\nTwo errors.',
        'Let me look. Two errors.',
      ]) {
        const { after } = later({ rounds, copy: [said(heard)] });
        expect(linesOf(after).map((line) => line.trim())).toEqual([
          'What does the log say?',
          'Let me look.',
          'call read_memory {"id":"mem_a"}',
          'result memory 0.0',
          'Two errors.',
          'Thanks. And now?',
        ]);
      }
    });

    it('of several rounds, with several recalls at once', () => {
      const rounds = [
        turnOf(text('One. '), recall, callOf('m2', recallName, '{"id":"mem_b"}')),
        turnOf(callOf('m3', recallName, '{"id":"mem_c"}')),
        turnOf(text('Two.')),
      ];
      expectPutBack({ rounds, copy: [said('One. Two.')] }, [
        'What does the log say?',
        'One. ',
        'call read_memory {"id":"mem_a"}',
        'call read_memory {"id":"mem_b"}',
        'result memory 0.0',
        'result memory 0.1',
        'call read_memory {"id":"mem_c"}',
        'result memory 1.0',
        'Two.',
        'Thanks. And now?',
      ]);
    });

    it.each([
      ['kept', { reasoning: 'Hm. ' }],
      ['dropped', {}],
    ])('with the reasoning that led to it, once, when the client %s it', (_, reasoning) => {
      const rounds = [turnOf({ type: 'reasoning', pieces: ['Hm. '] }, recall), turnOf(text('Two errors.'))];
      const copy: NeutralTurn = { say: 'assistant', text: 'Two errors.', calls: [], ...reasoning };
      const { after, model } = later({ rounds, copy: [copy] });
      expect(codec.rules.problems(after)).toEqual([]);
      expect(messagesOf(after).slice(0, model.messages.length)).toEqual(messagesOf(model));
      const kinds = after.messages.flatMap(({ parts }) => parts.map(({ type }) => type));
      expect(kinds.filter((kind) => kind === 'reasoning')).toEqual(['reasoning']);
    });

    it('before a call that the client ran', () => {
      const read = callOf('c1', 'read', '{"path":"a.log","lines":[1,2]}');
      // The client spells arguments its own way.
      const copy = [
        ran('Let me look. So:', 'c1', 'read', '{"lines": [1, 2], "path": "a.log"}'),
        results('c1', 'empty'),
      ];
      expectPutBack({ rounds: [turnOf(text('Let me look. '), recall), turnOf(text('So:'), read)], copy }, [
        'What does the log say?',
        'Let me look. ',
        'call read_memory {"id":"mem_a"}',
        'result memory 0.0',
        'So:',
        'call read {"lines":[1,2],"path":"a.log"}',
        'result empty',
        'Thanks. And now?',
      ]);
    });

    it('with a call that the client ran, its answer next to the result', () => {
      const read = callOf('c1', 'read', '{"path":"a.log"}');
      for (const parts of [
        [text('Both.'), recall, read],
        [text('Both.'), read, recall],
      ]) {
        const copy = [ran('Both.', 'c1', 'read', '{"path":"a.log"}'), results('c1', 'empty')];
        const { after } = later({ rounds: [turnOf(...parts)], copy });
        expect(codec.rules.problems(after)).toEqual([]);
        expect(answered(after)).toEqual(
          expect.arrayContaining([
            ['read {"path":"a.log"}', 'empty'],
            ['read_memory {"id":"mem_a"}', 'memory 0.0'],
          ]),
        );
        expect(answered(after)).toHaveLength(2);
        expect(linesOf(after).filter((line) => line === 'Both.')).toEqual(['Both.']);
      }
    });

    it('of the reply that the client continued, when it asked more than once', () => {
      const other = later({
        rounds: [turnOf(recall), turnOf(text('No error.'))],
        copy: [said('No error.')],
      }).hiddenRecall;
      const rounds = [turnOf(callOf('m2', recallName, '{"id":"mem_b"}')), turnOf(text('Two errors.'))];
      const { after } = later({ rounds, copy: [said('Two errors.')] }, [other]);
      expect(linesOf(after)).toContain('call read_memory {"id":"mem_b"}');
      expect(linesOf(after)).not.toContain('call read_memory {"id":"mem_a"}');
    });

    it.each<[string, PlayedReply]>([
      ['the copy says something else', { rounds: [turnOf(text('One. '), recall)], copy: [said('Two.')] }],
      [
        'the copy ends otherwise',
        { rounds: [turnOf(recall), turnOf(text('Two errors.'))], copy: [said('No error.')] },
      ],
      [
        'the client called with other arguments',
        {
          rounds: [turnOf(recall, callOf('c1', 'read', '{"path":"a"}'))],
          copy: [ran('', 'c1', 'read', '{"path":"b"}'), results('c1', 'x')],
        },
      ],
      [
        'the client called something more',
        {
          rounds: [turnOf(text('One.'), recall, callOf('c1', 'read', '{}'))],
          copy: [
            {
              say: 'assistant',
              text: 'One.',
              calls: [
                { id: 'c1', name: 'read', argumentsJson: '{}' },
                { id: 'c2', name: 'run', argumentsJson: '{}' },
              ],
            },
            {
              say: 'results',
              results: [
                { id: 'c1', text: 'x' },
                { id: 'c2', text: 'y' },
              ],
            },
          ],
        },
      ],
      ['the client kept nothing of the reply', { rounds: [turnOf(recall), turnOf(text('Two.'))], copy: [] }],
    ])('not where %s', (_, played) => {
      expectLeftOut(played);
    });

    it('of any exchange, as the client of this format would keep it, and stays valid', () => {
      fc.assert(
        fc.property(
          fc.array(replyWithRecallsOnly(), { maxLength: 3 }),
          anyReply().filter(({ finish }) => finish !== 'length'),
          (recalls, last) => {
            const rounds = [...recalls, last];
            const replies = rounds.map((round) => codec.readResponse(fixture.response(round), onlyRecall));
            const shown = codec.writeResponse(fixture.response(last), replies.slice(0, -1), replies.at(-1)!);
            const { text: heard, calls } = fixture.clientResponse(shown);
            fc.pre(heard.trim() !== '' || calls.length > 0);
            // A reply with nothing but recalls is never the last of an exchange.
            fc.pre(replies.at(-1)!.recalls.length === 0 || calls.length > 0);
            const copy: NeutralTurn[] = [
              { say: 'assistant', ...(heard === '' ? {} : { text: heard }), calls },
              ...(calls.length > 0
                ? [{ say: 'results', results: calls.map(({ id }) => ({ id, text: 'done' })) } as const]
                : []),
            ];
            const { after, client, model } = later({ rounds, copy });
            expect(codec.rules.problems(client)).toEqual([]);
            expect(codec.rules.problems(after)).toEqual([]);
            expect(messagesOf(after).slice(0, model.messages.length)).toEqual(messagesOf(model));
            const made = replies.flatMap((reply) => [...reply.recalls, ...reply.calls]);
            expect(answered(after)).toHaveLength(made.length);
          },
        ),
      );
    });
  });
}

function turnOf(...parts: readonly ScriptedPart[]): ScriptedTurn {
  const finish = parts.some((part) => part.type === 'call') ? 'calls' : 'stop';
  return { parts, finish, usage: { input: 1, cacheRead: 0, cacheWrite: 0, output: 1 } };
}

function text(words: string): ScriptedPart {
  return { type: 'text', pieces: [words] };
}

function callOf(id: string, name: string, argumentsJson: string): ScriptedPart {
  return { type: 'call', id, name, pieces: [argumentsJson] };
}

function said(words: string): NeutralTurn {
  return { say: 'assistant', text: words, calls: [] };
}

function ran(words: string, id: string, name: string, argumentsJson: string): NeutralTurn {
  return {
    say: 'assistant',
    ...(words === '' ? {} : { text: words }),
    calls: [{ id, name, argumentsJson }],
  };
}

function results(id: string, words: string): NeutralTurn {
  return { say: 'results', results: [{ id, text: words }] };
}

function messagesOf({ body, messages }: Conversation): readonly string[] {
  return messages.map((message) => bytesOfBlock(body, message));
}

/** Returns one line for each text, call and result, however they are spread over messages. */
function linesOf(conversation: Conversation): readonly string[] {
  const { body, messages } = conversation;
  return messages.flatMap((message) =>
    message.parts.flatMap((part): readonly string[] => {
      const words = textsOf(part).map((span) => textOf(body, message, span));
      if (part.type === 'tool-call') return [`call ${callLine(conversation, message.index, part)}`];
      if (part.type === 'tool-result') return [`result ${words.join('')}`];
      return part.type === 'text' ? words : [];
    }),
  );
}

/** Returns each answered call with the text that answers it. */
function answered(conversation: Conversation): readonly (readonly [string, string])[] {
  const { body, messages } = conversation;
  return pairCalls(conversation).pairs.flatMap(({ call: asked, result }) => {
    const question = messages[asked.message]!.parts[asked.part]!;
    const message = result && messages[result.message]!;
    const answer = result && message?.parts[result.part];
    if (!message || !answer || question.type !== 'tool-call') return [];
    const words = textsOf(answer).map((span) => textOf(body, message, span));
    return [[callLine(conversation, asked.message, question), words.join('')]];
  });
}

function callLine(
  { body, messages }: Conversation,
  index: number,
  part: Conversation['messages'][0]['parts'][0] & { readonly type: 'tool-call' },
): string {
  const input: unknown = JSON.parse(new TextDecoder().decode(bytesOf(body, messages[index]!, part.input)));
  const value: unknown = typeof input === 'string' ? JSON.parse(input) : input;
  return `${part.name} ${JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )}`;
}
