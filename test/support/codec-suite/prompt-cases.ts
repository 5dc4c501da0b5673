/** Tests requests of our own: a server of the format reads the same prompt. */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Codec } from '../../../src/codecs/codec.ts';
import type { CodecFixture } from './fixture.ts';
import { textsIn, view } from './views.ts';

export function promptCases(codec: Codec, { route, model }: CodecFixture): void {
  it('spells a request of our own: system and user text unchanged, no tools, not streamed', () => {
    const texts = fc.string({ unit: 'grapheme', minLength: 1 });
    fc.assert(
      fc.property(texts, texts, fc.integer({ min: 1, max: 64_000 }), (system, text, maxOutputTokens) => {
        const asked = view(codec, codec.promptBody({ model, system, text, maxOutputTokens }));
        expect({
          model: asked.model,
          texts: textsIn(asked),
          newest: asked.messages.at(-1)?.role,
          tools: asked.toolNames,
          streaming: asked.streaming,
          most: asked.maxOutputTokens,
          problems: codec.rules.problems(asked),
        }).toEqual({
          model: route.in === 'url' ? asked.model : model,
          texts: [system, text],
          newest: 'user',
          tools: [],
          streaming: false,
          most: maxOutputTokens,
          problems: [],
        });
      }),
    );
  });
}
