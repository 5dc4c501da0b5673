import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import type { Codec } from '../codecs/codec.ts';
import { geminiFor } from '../codecs/gemini/index.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { createFoldStore } from '../store/fold-store.ts';
import type { FoldStore } from '../store/folds.ts';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import { messagesFixture } from '../../test/support/codec-suite/anthropic-messages/fixture.ts';
import type { CodecFixture, NeutralTurn } from '../../test/support/codec-suite/fixture.ts';
import { geminiFixture } from '../../test/support/codec-suite/gemini/fixture.ts';
import { chatFixture } from '../../test/support/codec-suite/openai-chat/fixture.ts';
import { responsesFixture } from '../../test/support/codec-suite/openai-responses/fixture.ts';
import { newReading } from '../../test/support/codec-suite/views.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import type { Engine } from './types.ts';
import type { Refusal } from './types.ts';

const formats: readonly (readonly [Codec, CodecFixture])[] = [
  [openaiChat, chatFixture],
  [anthropicMessages, messagesFixture],
  [openaiResponses, responsesFixture],
  [geminiFor({ model: geminiFixture.model, streaming: false }), geminiFixture],
];

const words = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }),
  fc.nat(200).map((lines) => 'at src/module.ts:12 something was logged\n'.repeat(lines + 1)),
);

/** One step of an agent: the user speaks and is answered, or tools are called. */
type AgentStep = readonly NeutralTurn[];

const step: fc.Arbitrary<AgentStep> = fc.oneof(
  fc.tuple(words, words).map(
    ([user, text]): AgentStep => [
      { say: 'user', text: user },
      { say: 'assistant', text, calls: [] },
    ],
  ),
  fc.array(words, { minLength: 1, maxLength: 3 }).map((results): AgentStep => {
    const ids = results.map((_, at) => `call_${at}`);
    const calls = ids.map((id) => ({ id, name: 'run', argumentsJson: '{}' }));
    return [
      { say: 'assistant', text: 'Let me see.', calls },
      { say: 'results', results: results.map((text, at) => ({ id: ids[at]!, text })) },
    ];
  }),
);

const bodyOf = (fixture: CodecFixture, steps: readonly AgentStep[]) =>
  fixture.body({ turns: [{ say: 'user', text: 'Begin.' }, ...steps.flat()], tools: ['run'] });

const triggerOptions = { tokenBudget: { triggerTokens: 4_000, targetTokens: 2_000, bufferTokens: 100 } };

describe.each(formats)('a growing conversation for $name', (codec, fixture) => {
  it('is never reported as unstable, wherever folds are made', async () => {
    let folds = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(step, fc.boolean()), { maxLength: 20 }), async (steps) => {
        const store = inMemoryStore();
        // Two gateways on one store: each replays what the other folded.
        const engines = [testEngine({ store, triggerOptions }), testEngine({ store, triggerOptions })];
        for (let length = 1; length <= steps.length; length++) {
          const { engine } = engines[Number(steps[length - 1]![1])]!;
          const body = bodyOf(
            fixture,
            steps.slice(0, length).map(([done]) => done),
          );
          const { outcome, report } = await engine.prepare({ codec, body, tenant: 'tenant' });
          expect(outcome.status).not.toBe('failed');
          expect(report.unstableFrom).toBeUndefined();
          if (report.steps.length > 0) folds++;
        }
      }),
      { numRuns: 30 },
    );
    expect(folds).toBeGreaterThan(0);
  });

  it('is not reported when another gateway folded the message directly behind, which some formats join', async () => {
    const store = inMemoryStore();
    const pins = { tools: [], texts: ['Begin.'] };
    const [one, other] = [0, 1].map(() => testEngine({ store, triggerOptions, pins }).engine);
    const line = 'at src/module.ts:12 something was logged\n';
    const job = jobsDone(1, 1);
    const talks: readonly AgentStep[] = [290, 90, 1].map((lines) => [
      { say: 'user', text: line.repeat(lines) },
      { say: 'assistant', text: 'So it was.', calls: [] },
    ]);
    const send = async (engine: Engine, steps: readonly AgentStep[]) =>
      (await engine.prepare({ codec, body: bodyOf(fixture, steps), tenant: 'tenant' })).report;
    const reports = [
      await send(one!, job),
      await send(other!, [...job, ...talks.slice(0, 2)]),
      await send(one!, [...job, ...talks]),
    ];
    expect(reports.map(({ steps }) => steps.map(({ strategy }) => strategy))).toEqual([
      [],
      ['drop-oldest'],
      [],
    ]);
    expect(reports.map(({ unstableFrom }) => unstableFrom)).toEqual([undefined, undefined, undefined]);
  });

  it('is reported once, from the first message that changed, when a fold is lost', async () => {
    let foldStore = newFoldStore();
    const { engine } = testEngine({
      foldStore: {
        find: (tenant, links) => foldStore.find(tenant, links),
        findHere: (tenant, links) => foldStore.findHere(tenant, links),
        record: (...fold) => foldStore.record(...fold),
        recordedMeanwhile: (...request) => foldStore.recordedMeanwhile(...request),
        markSent: (...sent) => foldStore.markSent(...sent),
        renew: (...used) => foldStore.renew(...used),
      },
      offerRecall: 'always',
      window: 1_000_000,
      triggerOptions: { tokenBudget: false },
    });
    const send = async (jobs: number, refusal?: Refusal) => {
      const body = bodyOf(fixture, jobsDone(jobs));
      const prepared = await engine.prepare({
        codec,
        body,
        tenant: 'tenant',
        ...(refusal ? { refusal } : {}),
      });
      const messages = codec.read(prepared.body, newReading()).messages.map(({ canonical }) => canonical);
      return { messages, ...prepared.report };
    };
    const whole = await send(4);
    const tooLong = await send(8);
    const folded = await send(8, { reason: 'too long', overflow: { unit: 'bytes' } });
    const replayed = await send(9);
    expect(replayed.replayed).toBeGreaterThan(0);
    foldStore = newFoldStore();
    const lost = await send(10);
    expect(lost.replayed).toBe(0);
    const changed = lost.messages.findIndex((message, at) => message !== replayed.messages[at]);
    expect(changed).toBeGreaterThan(0);
    expect(changed).toBeLessThan(replayed.messages.length);
    const after = await send(11);
    expect([whole, tooLong, folded, replayed, lost, after].map(({ unstableFrom }) => unstableFrom)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      changed,
      undefined,
    ]);
  });
});

function jobsDone(count: number, lines = 300): readonly AgentStep[] {
  return Array.from({ length: count }, (_, at) => {
    const id = `call_${at}`;
    return [
      { say: 'assistant', text: `Job ${at}.`, calls: [{ id, name: 'run', argumentsJson: '{}' }] },
      { say: 'results', results: [{ id, text: `job ${at} took ${at} ms\n`.repeat(lines) }] },
    ];
  });
}

/** An empty store of folds. */
function newFoldStore(): FoldStore {
  return createFoldStore({
    encryptedStore: createEncryptedStore({ store: inMemoryStore(), secret: new Uint8Array(32).fill(3) }),
  });
}
