/**
 * Tests the engine with all defaults on random conversations in all formats, with two instances on one store and a running clock. Each
 * request extends the one before, except at folds, and all removed text can be restored.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../src/codecs/codec.ts';
import { geminiFor } from '../src/codecs/gemini/index.ts';
import { openaiChat } from '../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../src/codecs/openai-responses/index.ts';
import { createDefaultEngine, type FoldSettings } from '../src/library/default-engine.ts';
import { scanArray } from '../src/conversation/json-scan.ts';
import { inMemoryStore } from '../src/store/in-memory.ts';
import { createEncryptedStore } from '../src/store/encrypted-store.ts';
import { messagesFixture } from './support/codec-suite/anthropic-messages/fixture.ts';
import type { CodecFixture, NeutralTurn } from './support/codec-suite/fixture.ts';
import { geminiFixture } from './support/codec-suite/gemini/fixture.ts';
import { chatFixture } from './support/codec-suite/openai-chat/fixture.ts';
import { responsesFixture } from './support/codec-suite/openai-responses/fixture.ts';
import { newReading } from './support/codec-suite/views.ts';

const formats: readonly (readonly [Codec, CodecFixture])[] = [
  [openaiChat, chatFixture],
  [anthropicMessages, messagesFixture],
  [openaiResponses, responsesFixture],
  [geminiFor({ model: geminiFixture.model, streaming: false }), geminiFixture],
];

const tenant = 'tenant';
const secret = new Uint8Array(32).fill(5);
const minutes = 60_000;

/** Settings with a window so small that these conversations reach every trigger. */
const settings = { models: { '*': { windowTokens: 9_000 } } };

const words = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }),
  fc.nat(120).map((lines) => 'at src/module.ts:12 something was logged\n'.repeat(lines + 1)),
  fc.nat(40).map((rows) =>
    JSON.stringify(
      Array.from({ length: rows }, (_, n) => ({ id: 'a', n })),
      null,
      2,
    ),
  ),
  fc
    .nat(120)
    .map((lines) => Array.from({ length: lines + 1 }, (_, at) => `${at + 1}→  line ${at};`).join('\n')),
);

type Step = {
  readonly turns: readonly NeutralTurn[];
  /** The index of the gateway that gets the request, and the time since the one before. */
  readonly gateway: number;
  readonly after: number;
};

const turns: fc.Arbitrary<readonly NeutralTurn[]> = fc.oneof(
  { weight: 1, arbitrary: fc.tuple(words, words).map(([question, answer]) => talk(question, answer)) },
  { weight: 4, arbitrary: fc.array(fc.tuple(words, words), { minLength: 1, maxLength: 3 }).map(work) },
);

const step: fc.Arbitrary<Step> = fc.record({
  turns,
  gateway: fc.nat(1),
  after: fc.constantFrom(0.1 * minutes, 0.1 * minutes, 12 * minutes),
});

const ways: readonly Way[] = [
  ...formats.map(([codec, fixture]) => ({ name: codec.name, codec, fixture, settings })),
  {
    name: `${anthropicMessages.name} with records of sub-goals and summaries`,
    codec: anthropicMessages,
    fixture: messagesFixture,
    settings: {
      ...settings,
      subgoals: { minActions: 0, levels: 'always' },
      summaries: { kind: 'extractive' },
    },
  },
];

type Way = {
  readonly name: string;
  readonly codec: Codec;
  readonly fixture: CodecFixture;
  readonly settings: FoldSettings;
};

describe.each(ways)('everything on, for $name', ({ codec, fixture, settings: chosen }) => {
  it('extends the request before except at folds, and restores all removed text', async () => {
    let folds = 0;
    let shrunk = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 20 }), async (steps) => {
        const store = inMemoryStore();
        const encryptedStore = () => createEncryptedStore({ store, secret });
        let now = 0;
        const gateways = [0, 1].map(() =>
          createDefaultEngine(chosen, encryptedStore(), { clock: () => now }),
        );
        let before: readonly string[] = [];
        for (const [at, { gateway, after }] of steps.entries()) {
          now += after;
          const turnsSoFar = steps.slice(0, at + 1).flatMap((one) => one.turns);
          const body = fixture.body({
            turns: [{ say: 'user', text: 'Begin.' }, ...turnsSoFar],
            tools: ['run'],
          });
          const prepared = await gateways[gateway]!.prepare({ codec, body, tenant });
          const { steps: made, unstableFrom, memories } = prepared.report;
          expect(prepared.outcome.status).not.toBe('failed');
          expect(unstableFrom).toBeUndefined();
          const sent = codec.read(prepared.body, newReading()).messages.map(({ canonical }) => canonical);
          if (made.length === 0) expect(sent.slice(0, before.length)).toEqual(before);
          before = sent;
          const clientBody = new TextDecoder().decode(body);
          for (const id of memories) {
            const original = (await prepared.original(id))!;
            expect(await encryptedStore().recall(tenant, id)).toEqual({ status: 'found', original });
            for (const piece of piecesOf(original))
              expect(isOurs(piece) || clientBody.includes(piece)).toBe(true);
          }
          folds += made.length;
          shrunk += prepared.report.shrunk;
        }
      }),
      { numRuns: 20 },
    );
    expect(folds).toBeGreaterThan(0);
    expect(shrunk).toBeGreaterThan(0);
  });
});

function talk(question: string, answer: string): readonly NeutralTurn[] {
  return [
    { say: 'user', text: question },
    { say: 'assistant', text: answer, calls: [] },
  ];
}

function work(jobs: readonly (readonly [note: string, result: string])[]): readonly NeutralTurn[] {
  const calls = jobs.map(([note], at) => ({
    id: `call_${at}`,
    name: 'run',
    argumentsJson: JSON.stringify({ note }),
  }));
  return [
    { say: 'assistant', text: 'Let me see.', calls },
    { say: 'results', results: jobs.map(([, text], at) => ({ id: `call_${at}`, text })) },
  ];
}

/** Returns true for a record that was summarized into a higher level; no client sent it. */
function isOurs(piece: string): boolean {
  return /^"\[(?:Steps|Phases?) folded, /.test(piece);
}

/** Returns the pieces of JSON in an original: the messages of a list, or the one text or input. */
function piecesOf(original: Uint8Array): readonly string[] {
  const text = new TextDecoder().decode(original);
  if (!text.startsWith('[')) return [text];
  return scanArray(original, 0).elements.map(({ start, end }) =>
    new TextDecoder().decode(original.subarray(start, end)),
  );
}
