import { afterEach, describe, expect, it, vi } from 'vitest';
import { messagesFixture } from '../../test/support/codec-suite/anthropic-messages/fixture.ts';
import type { CodecFixture } from '../../test/support/codec-suite/fixture.ts';
import { geminiFixture } from '../../test/support/codec-suite/gemini/fixture.ts';
import { chatFixture } from '../../test/support/codec-suite/openai-chat/fixture.ts';
import { responsesFixture } from '../../test/support/codec-suite/openai-responses/fixture.ts';
import { newReading } from '../../test/support/codec-suite/views.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import type { Codec } from './codec.ts';
import { geminiFor } from './gemini/index.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';
import { readInSlices } from './read-body.ts';

const formats: readonly (readonly [Codec, CodecFixture])[] = [
  [openaiChat, chatFixture],
  [anthropicMessages, messagesFixture],
  [openaiResponses, responsesFixture],
  [geminiFor({ model: geminiFixture.model, streaming: false }), geminiFixture],
];

afterEach(() => void vi.restoreAllMocks());

describe.each(formats.map(([codec, fixture]) => ({ name: codec.name, codec, fixture })))(
  'reading $name in slices',
  ({ codec, fixture }) => {
    const bodies = Object.entries(fixture.recorded);

    it('gives the same conversation as reading at once, with a pause after each message', async () => {
      expect(bodies.length).toBeGreaterThan(0);
      // No time passes, so that repeated steps never take longer than new ones.
      vi.spyOn(performance, 'now').mockReturnValue(1);
      for (const [name, body] of bodies) {
        let pauses = 0;
        const slices = { isOver: () => true, pause: async () => void pauses++ };
        const whole = codec.read(body, newReading());
        expect(await readInSlices(codec, body, newReading(), slices), name).toEqual(whole);
        expect(pauses).toBeGreaterThanOrEqual(whole.messages.length);
      }
    });

    it('pauses within a long message, in formats with lists of parts', async () => {
      const [, body] = bodies.toSorted(([, one], [, other]) => other.length - one.length)[0]!;
      let pauses = 0;
      const slices = { isOver: () => true, pause: async () => void pauses++ };
      vi.spyOn(performance, 'now').mockReturnValue(1);
      // A long block is read in steps: its digest, the check of its JSON, its members, and each part.
      const long = codec.write(codec.read(body, newReading()), [
        { kind: 'insert-message', before: 0, role: 'user', text: 'a line\n'.repeat(20_000) },
      ]);
      const whole = codec.read(long, newReading());
      expect(await readInSlices(codec, long, newReading(), slices)).toEqual(whole);
      expect(pauses).toBeGreaterThan(whole.messages.length + 3);
    });

    it('rejects a body that is not of this format', async () => {
      const slices = { isOver: () => true, pause: () => Promise.resolve() };
      const body = new TextEncoder().encode('{"no":"messages"}');
      await expect(readInSlices(codec, body, newReading(), slices)).rejects.toMatchObject({
        code: 'not-this-format',
        message: expect.stringMatching(/^The body is not (?:an OpenAI|an Anthropic|a [^AEIO])/) as string,
      });
    });
  },
);
