/** Compares the rules of each format with the scripted provider, which has its own: what one finds wrong the other refuses. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { messagesFixture } from '../../test/support/codec-suite/anthropic-messages/fixture.ts';
import { editSeeds, editsFrom, requests } from '../../test/support/codec-suite/arbitrary.ts';
import type { CodecFixture } from '../../test/support/codec-suite/fixture.ts';
import { geminiFixture } from '../../test/support/codec-suite/gemini/fixture.ts';
import { chatFixture } from '../../test/support/codec-suite/openai-chat/fixture.ts';
import { responsesFixture } from '../../test/support/codec-suite/openai-responses/fixture.ts';
import { shown, view } from '../../test/support/codec-suite/views.ts';
import { chatRefusal } from '../../test/support/fake-provider/chat-rules.ts';
import { geminiRefusal } from '../../test/support/fake-provider/gemini-rules.ts';
import { messagesRefusal } from '../../test/support/fake-provider/messages-rules.ts';
import { responsesRefusal } from '../../test/support/fake-provider/responses-rules.ts';
import type { JsonObject, Refusal } from '../../test/support/fake-provider/script.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import type { Codec } from './codec.ts';
import { gemini } from './gemini/index.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';

/** The scripted provider accepts the last one unless it is strict. */
const cases: readonly (readonly [
  Codec,
  CodecFixture,
  (body: JsonObject) => Refusal | undefined,
  taken: string | undefined,
])[] = [
  [openaiChat, chatFixture, chatRefusal, undefined],
  [
    anthropicMessages,
    messagesFixture,
    (body) => messagesRefusal(body, { maxTokens: true, strictRoles: false }),
    'first-is-user',
  ],
  [openaiResponses, responsesFixture, (body) => responsesRefusal(body), undefined],
  [
    gemini,
    geminiFixture,
    (body) => geminiRefusal(body, { model: 'gemini-2.5-pro', strictRoles: true }),
    undefined,
  ],
];

/** System messages in any place; no other format has rules for them. */
const message = fc.constantFrom<JsonObject>(
  { role: 'user', content: 'a' },
  { role: 'assistant', content: 'b' },
  { role: 'assistant', content: [{ type: 'web_search_tool_result', tool_use_id: 's', content: [] }] },
  { role: 'system', content: 'c' },
  { role: 'system', content: [{ type: 'text', text: 'd' }] },
  { role: 'system', content: [] },
  { role: 'system', content: [], output_config: { effort: 'low' } },
);

describe('the rules of Anthropic Messages for system messages', () => {
  it('find a misplaced one when the provider refuses it', () => {
    let broken = 0;
    fc.assert(
      fc.property(fc.array(message, { maxLength: 8 }), (messages) => {
        const body = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'a' }, ...messages] };
        const problems = anthropicMessages.rules.problems(view(anthropicMessages, JSON.stringify(body)));
        const refused = messagesRefusal(body, { maxTokens: true, strictRoles: false });
        expect([problems.length > 0, refused]).toEqual([refused !== undefined, refused]);
        broken += problems.length > 0 ? 1 : 0;
      }),
      { numRuns: 1000 },
    );
    expect(broken).toBeGreaterThan(100);
    expect(broken).toBeLessThan(900);
  });
});

describe.each(cases)('the rules of $name', (codec, fixture, refusal, taken) => {
  it('find a conversation broken when a provider refuses it, after any edits', () => {
    let broken = 0;
    fc.assert(
      fc.property(
        requests(),
        editSeeds(['drop-part', 'drop-message', 'insert-message']),
        (request, seeds) => {
          const conversation = view(codec, fixture.body(request));
          const edits = editsFrom(conversation, seeds).filter((edit) =>
            codec.rules.mayEdit(conversation, edit),
          );
          const body = codec.write(conversation, edits);
          const problems = codec.rules.problems(view(codec, body)).filter(({ rule }) => rule !== taken);
          const refused = refusal(JSON.parse(shown(body)) as JsonObject);
          expect([problems.length > 0, refused]).toEqual([refused !== undefined, refused]);
          broken += problems.length > 0 ? 1 : 0;
        },
      ),
      { numRuns: 1000 },
    );
    expect(broken).toBeGreaterThan(100);
  });

  it('find nothing in what the provider accepts from clients', () => {
    for (const [name, body] of Object.entries(fixture.recorded)) {
      // The scripted provider knows neither the legacy function form nor replies that are only sound.
      if (name === 'functions-before-tools' || name === 'images-audio-files') continue;
      expect([name, refusal(JSON.parse(shown(body)) as JsonObject)]).toEqual([name, undefined]);
    }
  });
});
