/**
 * Tests the laws that hold for every conversation: random ones grow turn by turn through the real engine, with small windows, restarts and
 * branches. Each request must be valid, fit, extend the one before except at folds, and lose nothing.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../src/codecs/codec.ts';
import { openaiChat } from '../src/codecs/openai-chat/index.ts';
import type { PreparedRequest } from '../src/engine/types.ts';
import { inMemoryStore } from '../src/store/in-memory.ts';
import type { Store } from '../src/store/store.ts';
import { defaultStrategies } from '../src/strategies/default-strategies.ts';
import { asAnthropic } from './support/as-anthropic.ts';
import { chatBody, freshReading, type Step } from './support/chat-conversation.ts';
import { testEngine } from './support/test-engine.ts';

const formats: readonly Format[] = [
  { codec: openaiChat, inFormat: (chat) => chat },
  { codec: anthropicMessages, inFormat: (chat) => asAnthropic(chat) },
];

type Format = { readonly codec: Codec; readonly inFormat: (chat: Uint8Array) => Uint8Array };

/** Engine options: unchanged results, shrinks on arrival, summaries, sub-goals. */
const variants = [
  ...formats.flatMap((format) => [
    { ...format, name: format.codec.name, shrinks: undefined, strategies: defaultStrategies() },
    {
      ...format,
      name: `${format.codec.name} with shrinks`,
      shrinks: { lossless: false },
      strategies: defaultStrategies(),
    },
  ]),
  {
    ...formats[1]!,
    name: `${anthropicMessages.name} with summaries`,
    shrinks: undefined,
    strategies: defaultStrategies({ summaries: { kind: 'extractive' } }),
  },
  {
    ...formats[0]!,
    name: `${openaiChat.name} with sub-goals`,
    shrinks: undefined,
    strategies: defaultStrategies({ subgoals: { minActions: 0 } }),
  },
  {
    ...formats[1]!,
    name: `${anthropicMessages.name} with sub-goals, levels and summaries`,
    shrinks: undefined,
    strategies: defaultStrategies({
      summaries: { kind: 'extractive' },
      subgoals: { minActions: 0, levels: 'always' },
    }),
  },
];

const window = 6_000;
const tools = ['read_file', 'run'];

const text = fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 80 }) },
  {
    weight: 3,
    arbitrary: fc.nat(9_000).map((size) => 'at src/module.ts:12 something was logged\n'.repeat(size / 40)),
  },
  { weight: 1, arbitrary: fc.nat(60_000).map((size) => 'x'.repeat(size)) },
  {
    weight: 2,
    arbitrary: fc.nat(60).map((rows) =>
      JSON.stringify(
        Array.from({ length: rows }, (_, n) => ({ id: 'a', n })),
        null,
        2,
      ),
    ),
  },
  { weight: 2, arbitrary: fc.nat(200).map((lines) => listing(lines)) },
  { weight: 1, arbitrary: fc.constant("Error: tool 'nope' not found") },
);

function listing(lines: number): string {
  return Array.from({ length: lines }, (_, at) => `${String(at + 1).padStart(6)}→  line ${at};`).join('\n');
}

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 1, arbitrary: text.map((user): Step => ({ user: `${user}?` })) },
  // One format forbids edits of the newest assistant message, so it must not be the part that is too large.
  {
    weight: 1,
    arbitrary: fc.string({ maxLength: 80 }).map((assistant): Step => ({ assistant: `${assistant}.` })),
  },
  {
    weight: 4,
    arbitrary: fc
      .array(fc.record({ name: fc.constantFrom('read_file', 'run', 'nope'), result: text }), {
        minLength: 1,
        maxLength: 3,
      })
      .map((calls): Step => ({ calls })),
  },
);

const conversation = fc.array(step, { minLength: 3, maxLength: 25 });

describe.each(variants)('the laws for $name', ({ codec, inFormat, shrinks, strategies }) => {
  const bodyOf = (steps: readonly Step[]) =>
    inFormat(chatBody([{ system: 'Be brief.' }, { user: 'Begin.' }, ...steps], { tools, model: 'gpt-4o' }));

  async function prepare(store: Store, steps: readonly Step[]): Promise<PreparedRequest> {
    return testEngine({ window, store, shrinks, strategies }).engine.prepare({
      codec,
      body: bodyOf(steps),
      tenant: 'tenant',
    });
  }

  it('the sent request is valid, fits, and is no larger than the original', async () => {
    await fc.assert(
      fc.asyncProperty(conversation, async (steps) => {
        const prepared = await prepare(inMemoryStore(), steps);
        const sent = codec.read(prepared.body, freshReading());
        expect(codec.rules.problems(sent)).toEqual([]);
        expect(prepared.report.unfit).toBeUndefined();
        expect(prepared.report.tokensAfter!).toBeLessThanOrEqual(window * 0.85);
        // A shrink alone may save less than the recall tool takes.
        if (prepared.report.steps.some(({ edits }) => edits > 0)) {
          expect(prepared.report.tokensAfter!).toBeLessThan(prepared.report.tokensBefore!);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('the same prefix is sent with the same bytes in every turn, by one instance or several', async () => {
    await fc.assert(
      fc.asyncProperty(conversation, async (steps) => {
        const store = inMemoryStore();
        let before: readonly string[] = [];
        let clientMessagesBefore: readonly string[] = [];
        for (let length = 1; length <= steps.length; length++) {
          const prepared = await prepare(store, steps.slice(0, length));
          const messages = rawMessages(codec, prepared.body);
          const clientMessages = rawMessages(codec, bodyOf(steps.slice(0, length)));
          // If a step is joined to the message before it, the client itself has changed that message.
          const grew = clientMessagesBefore.every((message, at) => clientMessages[at] === message);
          if (grew && prepared.report.steps.length === 0) {
            expect(messages.slice(0, before.length)).toEqual(before);
          }
          before = messages;
          clientMessagesBefore = clientMessages;
          expect((await prepare(store, steps.slice(0, length))).body).toEqual(prepared.body);
        }
      }),
      { numRuns: 25 },
    );
  });

  it('messages without an edit keep their exact bytes, and everything else can be restored exactly', async () => {
    await fc.assert(
      fc.asyncProperty(conversation, async (steps) => {
        const body = bodyOf(steps);
        const prepared = await prepare(inMemoryStore(), steps);
        const sent = new Set(rawMessages(codec, prepared.body));
        const originals = await Promise.all(
          prepared.report.memories.map(async (id) => prepared.original(id)),
        );
        const recallable = originals.map((original) => new TextDecoder().decode(original)).join('\n');
        for (const message of codec.read(body, freshReading()).messages) {
          const raw = new TextDecoder().decode(body.subarray(message.span.start, message.span.end));
          if (sent.has(raw) || recallable.includes(raw)) continue;
          const kept = message.parts.every((part) => {
            if (part.type === 'tool-result' && prepared.report.shrunk > 0) return true;
            const bytes = new TextDecoder().decode(
              body.subarray(message.span.start + part.span.start, message.span.start + part.span.end),
            );
            const literals = 'texts' in part ? part.texts : [];
            return (
              [...sent].some((other) => other.includes(bytes)) ||
              recallable.includes(bytes) ||
              (literals.length > 0 &&
                literals.every((span) =>
                  recallable.includes(
                    new TextDecoder().decode(
                      body.subarray(message.span.start + span.start, message.span.start + span.end),
                    ),
                  ),
                ))
            );
          });
          expect(kept, raw).toBe(true);
        }
      }),
      { numRuns: 60 },
    );
  });
});

function rawMessages(codec: Codec, body: Uint8Array): readonly string[] {
  return codec
    .read(body, freshReading())
    .messages.map(({ span }) => new TextDecoder().decode(body.subarray(span.start, span.end)));
}
