/**
 * The shared suite. Some of its cases name indices or fields as the other formats have them; where they do, this format answers in
 * their words, and what is lost by that is tested beside.
 */
import { appendingCases } from '../../testing/codec-suite/appending-cases.ts';
import { recallName } from '../../testing/codec-suite/arbitrary.ts';
import { editingCases } from '../../testing/codec-suite/editing-cases.ts';
import type { CodecFixture, ScriptedPart } from '../../testing/codec-suite/fixture.ts';
import { hostileCases } from '../../testing/codec-suite/hostile-cases.ts';
import { bytes } from '../../testing/codec-suite/openai-responses/bodies.ts';
import { responsesFixture } from '../../testing/codec-suite/openai-responses/fixture.ts';
import { prefixCases } from '../../testing/codec-suite/prefix-cases.ts';
import { readingCases } from '../../testing/codec-suite/reading-cases.ts';
import { responseCases } from '../../testing/codec-suite/response-cases.ts';
import { streamCases } from '../../testing/codec-suite/stream-cases.ts';
import { shown } from '../../testing/codec-suite/views.ts';
import type { Codec } from '../codec.ts';
import { openaiResponses } from './index.ts';

readingCases(openaiResponses, responsesFixture);
hostileCases(openaiResponses, responsesFixture);
streamCases(openaiResponses, responsesFixture);
editingCases(openaiResponses, withTextAndCallsApart(responsesFixture));
responseCases(openaiResponses, withWordsBeforeRecalls(responsesFixture));
appendingCases(withTurnAsSent(openaiResponses), responsesFixture);
prefixCases(withMessages(openaiResponses), bodiesWithMessages(responsesFixture));

/** The refused edits name places of a conversation of three messages; here text and call of the second would be two. */
function withTextAndCallsApart(fixture: CodecFixture): CodecFixture {
  return {
    ...fixture,
    body(request) {
      if (request.turns.length !== 3) return fixture.body(request);
      return fixture.body({
        ...request,
        turns: request.turns.map((turn) =>
          turn.say === 'assistant' && turn.calls.length > 0 ? { say: turn.say, calls: turn.calls } : turn,
        ),
      });
    },
  };
}

/** The suite wants all reasoning of the last round; here it must go where only private calls follow it. */
function withWordsBeforeRecalls(fixture: CodecFixture): CodecFixture {
  const silence: ScriptedPart = { type: 'text', pieces: [] };
  return {
    ...fixture,
    response: (turn) =>
      fixture.response({
        ...turn,
        parts: turn.parts.flatMap((part, at) =>
          part.type === 'reasoning' && !isVisible(turn.parts[at + 1]) ? [part, silence] : [part],
        ),
      }),
  };
}

function isVisible(part: ScriptedPart | undefined): boolean {
  return part !== undefined && (part.type !== 'call' || part.name !== recallName);
}

/** A turn is a list of items; sent back it stands in the input without its brackets. */
function withTurnAsSent(codec: Codec): Codec {
  const bracketed = (turn: Uint8Array) => new TextEncoder().encode(`[${shown(turn)}]`);
  return {
    ...codec,
    readResponse(body, recallTool) {
      const reply = codec.readResponse(body, recallTool);
      return { ...reply, turn: reply.turn.slice(1, -1) };
    },
    continueWith: (sent, reply, answers) =>
      codec.continueWith(sent, { ...reply, turn: bracketed(reply.turn) }, answers),
  };
}

/** The cases of the prefix chain look into `messages`. */
function withMessages(codec: Codec): Codec {
  return { ...codec, read: (body, reading) => codec.read(renamed(body, 'messages', 'input'), reading) };
}

function bodiesWithMessages(fixture: CodecFixture): CodecFixture {
  return { ...fixture, body: (request) => renamed(fixture.body(request), 'input', 'messages') };
}

function renamed(body: Uint8Array, from: string, to: string): Uint8Array {
  const fields = JSON.parse(shown(body)) as Readonly<Record<string, unknown>>;
  return bytes(
    Object.fromEntries(Object.entries(fields).map(([key, value]) => [key === from ? to : key, value])),
  );
}
