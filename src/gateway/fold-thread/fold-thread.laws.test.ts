import { afterEach, describe, expect, it } from 'vitest';
import type { Codec } from '../../codecs/codec.ts';
import { anthropicMessages } from '../../codecs/anthropic-messages/index.ts';
import { geminiFor } from '../../codecs/gemini/index.ts';
import { openaiChat } from '../../codecs/openai-chat/index.ts';
import { openaiResponses } from '../../codecs/openai-responses/index.ts';
import { answerRecall } from '../../recall/tool.ts';
import { createDefaultEngine, type FoldSettings } from '../../library/default-engine.ts';
import { createLearned } from '../../engine/state.ts';
import type { Engine, EngineRequest } from '../../engine/types.ts';
import { inMemoryStore } from '../../store/in-memory.ts';
import { createKeptReplies } from '../../store/hidden-recalls.ts';
import { createEncryptedStore } from '../../store/encrypted-store.ts';
import { asAnthropic } from '../../../test/support/as-anthropic.ts';
import { asResponses } from '../../../test/support/as-responses.ts';
import { chatBody, type Step } from '../../../test/support/chat-conversation.ts';
import { foldThread, type FoldThreadOptions } from './fold-thread.ts';

const secret = new Uint8Array(32).fill(3);
const settings: FoldSettings = {
  triggers: { tokenBudget: { triggerTokens: 6_000, targetTokens: 2_000, bufferTokens: 0 } },
};

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.close()));
});

/** Opens an engine that folds everything in a thread, and the local engine. */
function open(options: FoldThreadOptions = {}) {
  const store = inMemoryStore();
  const encryptedStore = createEncryptedStore({ store, secret });
  const keptReplies = createKeptReplies({ encryptedStore });
  const learned = createLearned({});
  const local = createDefaultEngine(settings, encryptedStore, { keptReplies, learned });
  const warnings: unknown[] = [];
  const log = { info: () => {}, warn: (data: object) => warnings.push(data), error: () => {} };
  const thread = foldThread({ fromBytes: 1, ...options });
  opened.push(thread);
  const engine = thread.engineFor({
    local,
    settings,
    secret,
    store,
    encryptedStore,
    keptReplies,
    learned,
    log,
  });
  return { thread, engine, local, encryptedStore, keptReplies, warnings };
}

const listing = (name: string, lines: number) =>
  Array.from({ length: lines }, (_, at) => `const ${name}${at} = compute(${at * 7}, '${name}');`).join('\n');
const steps: readonly Step[] = [
  { user: 'Read them all.' },
  ...Array.from(
    { length: 12 },
    (_, at): Step => ({
      calls: [
        { name: 'run', input: JSON.stringify({ command: `show ${at}` }), result: listing(`n${at}_`, 60) },
      ],
    }),
  ),
  { user: 'Go on.' },
];
/** A conversation of more tokens than the window of gpt-4o. */
const long = [...steps, { user: listing('long', 12_000) }, ...steps];
const chat = chatBody(steps, { tools: ['run'], model: 'gpt-4o' });
const geminiBody = new TextEncoder().encode(
  JSON.stringify({
    tools: [{ functionDeclarations: [{ name: 'run' }] }],
    contents: [
      { role: 'user', parts: [{ text: 'Read them all.' }] },
      ...Array.from({ length: 12 }, (_, at) => [
        { role: 'model', parts: [{ functionCall: { name: 'run', args: { at } } }] },
        {
          role: 'user',
          parts: [{ functionResponse: { name: 'run', response: { output: listing(`n${at}_`, 60) } } }],
        },
      ]).flat(),
      { role: 'model', parts: [{ text: 'Done.' }] },
      { role: 'user', parts: [{ text: 'Go on.' }] },
    ],
  }),
);

const requests: readonly (readonly [string, Codec, Uint8Array])[] = [
  ['Chat Completions', openaiChat, chat],
  ['Anthropic Messages', anthropicMessages, asAnthropic(chat)],
  ['OpenAI Responses', openaiResponses, asResponses(chat)],
  ['Gemini', geminiFor({ model: 'gemini-2.5-pro', streaming: true }), geminiBody],
];

const requestOf = (codec: Codec, body: Uint8Array): EngineRequest => ({ codec, body, tenant: 'tenant' });

describe('a thread that folds large bodies', () => {
  it.each(requests)(
    'sends %s as the engine of the main thread does, and answers recalls',
    async (_, codec, body) => {
      const { engine, local } = open();
      const here = await local.prepare(requestOf(codec, body));
      const there = await engine.prepare(requestOf(codec, body));
      expect(there.outcome).toEqual({ status: 'compacted' });
      expect(new TextDecoder().decode(there.body)).toBe(new TextDecoder().decode(here.body));
      // The first request recorded the fold, and the thread found it.
      expect({ ...there.report, trigger: undefined, steps: [] }).toEqual({
        ...here.report,
        trigger: undefined,
        steps: [],
        replayed: there.report.replayed,
        tokensKept: undefined,
        fold: there.report.fold,
        goal: undefined,
        stayed: undefined,
        compressions: [],
      });
      expect([there.recallTool, there.searched(), there.room, there.counter?.name]).toEqual([
        here.recallTool,
        here.searched(),
        here.room,
        here.counter?.name,
      ]);
      for (const id of here.searched()) {
        const argumentsJson = JSON.stringify({ id });
        expect(await answerRecall(there, argumentsJson, 8_000)).toEqual(
          await answerRecall(here, argumentsJson, 8_000),
        );
      }
      expect(await there.original('mem_0000000000000000')).toBeUndefined();
    },
  );

  it('folds, stores the originals in the store of the main thread, and returns the same body when nothing changes', async () => {
    const { engine, encryptedStore } = open();
    const folded = await engine.prepare(requestOf(openaiChat, chat));
    expect(folded.report.trigger).toBe('token-budget');
    const [id] = folded.searched();
    await folded.known;
    expect(await encryptedStore.recall('tenant', id!)).toEqual({
      status: 'found',
      original: await folded.original(id!),
    });
    const small = chatBody([{ user: 'Hello.' }], { model: 'gpt-4o' });
    const untouched = await engine.prepare(requestOf(openaiChat, small));
    expect(untouched.body).toBe(small);
    const other = new TextEncoder().encode('{"no":"request"}');
    expect((await engine.prepare(requestOf(openaiChat, other))).outcome.status).toBe('untouched');
  });

  it('forgets a request that is released', async () => {
    const { engine } = open();
    const prepared = await engine.prepare(requestOf(openaiChat, chat));
    const [id] = prepared.searched();
    expect([await prepared.titleOf(id!), await prepared.detail?.()]).toEqual([
      expect.anything(),
      expect.anything(),
    ]);
    prepared.release?.();
    expect([await prepared.titleOf(id!), await prepared.detail?.()]).toEqual([undefined, undefined]);
    // Its originals are in the store.
    expect(await prepared.original(id!)).toBeDefined();
  });

  it('leaves smaller bodies to the main thread', async () => {
    const { engine } = open({ fromBytes: chat.length + 1 });
    const here = await engine.prepare(requestOf(openaiChat, chat));
    expect(here.conversation).toBeDefined();
    expect(await here.original(here.searched()[0]!)).toBeDefined();
  });

  it('keeps a reply for requests of both threads', async () => {
    const { engine, keptReplies } = open();
    const prepared = await engine.prepare(requestOf(openaiResponses, asResponses(chat)));
    const reply = { name: 'resp_2', pendingAnswers: [] };
    await prepared.keepReply('resp_1', reply);
    expect(keptReplies.known('tenant', 'resp_1')).toEqual(reply);
    const body = new TextEncoder().encode(
      JSON.stringify({
        model: 'gpt-5',
        previous_response_id: 'resp_1',
        input: [{ role: 'user', content: 'On.' }],
      }),
    );
    const next = await engine.prepare(requestOf(openaiResponses, body));
    expect(new TextDecoder().decode(next.body)).toContain('"previous_response_id":"resp_2"');
  });

  it('disables folding for a conversation, and calibrates, as the engine of the main thread does', async () => {
    const { engine } = open();
    const request = requestOf(openaiChat, chat);
    await engine.disableFolding(request);
    const prepared = await engine.prepare(request);
    expect(prepared.outcome).toEqual({ status: 'untouched', reason: 'folding is disabled after a refusal' });
    await engine.reportPromptTokens(request, prepared.prompt?.counted ?? 9_000);
  });

  it('sends a request unfolded that does not begin in time, unless it may not fit its window', async () => {
    const { engine } = open();
    // The first request keeps the thread busy while it starts.
    const [late, large] = await Promise.all([
      engine.prepare({ ...requestOf(openaiChat, chat), leftMs: () => 0 }),
      engine.prepare({
        ...requestOf(openaiChat, chatBody(long, { tools: ['run'], model: 'gpt-4o' })),
        leftMs: () => 0,
      }),
    ]);
    expect(late.body).toBe(chat);
    expect(late.outcome).toEqual({
      status: 'failed',
      reason: 'deadline: the thread that folds large requests was busy with other requests',
    });
    expect(large.outcome).toEqual({ status: 'compacted' });
    // The request never began, so no fold was recorded: it is folded now.
    const again = await engine.prepare(requestOf(openaiChat, chat));
    expect([again.outcome.status, again.report.replayed]).toEqual(['compacted', 0]);
  });
});

/** A conversation of a client that sets no cache marks. Its system text makes it larger at will. */
function growing(results: number, systemBytes: number): Uint8Array {
  const asked: Step[] = Array.from({ length: results }, (_, at): Step => {
    const command = JSON.stringify({ command: `show ${at}` });
    return { calls: [{ name: 'run', input: command, result: listing(`n${at}_`, 30) }] };
  });
  const all: Step[] = [{ system: 'rule '.repeat(systemBytes / 5) }, { user: 'Read them all.' }, ...asked];
  return asAnthropic(chatBody(all, { tools: ['run'], model: 'claude-sonnet-4-5' }));
}

describe('a conversation that changes its engine', () => {
  // Tool results, and bytes of the system text. Bodies from 60 kB on are folded in one thread, those from 480 kB on in the other.
  const turns = [
    [4, 30_000],
    [6, 30_000],
    [8, 30_000],
    [14, 60_000],
    [16, 60_000],
    [18, 500_000],
    [20, 500_000],
    [22, 60_000],
    [24, 60_000],
    [26, 5_000],
    [28, 5_000],
    [30, 5_000],
    [32, 500_000],
    [34, 500_000],
  ] as const;

  async function seenBy(engine: Engine): Promise<readonly string[]> {
    const seen: string[] = [];
    for (const [results, systemBytes] of turns) {
      const request = requestOf(anthropicMessages, growing(results, systemBytes));
      const { report, prompt, reportPromptTokens, known, original } = await engine.prepare(request);
      // The provider counts half as many tokens.
      reportPromptTokens(Math.round(prompt!.counted * 0.51));
      await known;
      // When the thread has answered this question, the main thread has what it learned.
      await original('mem_0000000000000000');
      const { tokensBefore, tokensAfter, trigger = 'no fold', cacheMarks, unstableFrom = 'stable' } = report;
      seen.push(
        `${request.body.length} bytes, ${tokensBefore} > ${tokensAfter} tokens, ${trigger}, ${cacheMarks} marks, ${unstableFrom}`,
      );
    }
    return seen;
  }

  it('is marked, counted and folded as in one engine: on the way to larger bodies, and back', async () => {
    const expected = [
      '35211 bytes, 10013 > 10147 tokens, no fold, 0 marks, stable',
      '37705 bytes, 5979 > 6075 tokens, no fold, 3 marks, stable',
      '40199 bytes, 6574 > 6664 tokens, no fold, 3 marks, stable',
      '77935 bytes, 13327 > 8596 tokens, token-budget, 2 marks, stable',
      '80555 bytes, 13276 > 8907 tokens, no fold, 3 marks, stable',
      '523175 bytes, 74011 > 69727 tokens, no fold, 2 marks, stable',
      '525795 bytes, 66828 > 63049 tokens, no fold, 3 marks, stable',
      '88415 bytes, 14373 > 10595 tokens, no fold, 2 marks, stable',
      '91035 bytes, 15156 > 11376 tokens, no fold, 3 marks, stable',
      '38655 bytes, 9160 > 5381 tokens, no fold, 2 marks, stable',
      '41275 bytes, 9819 > 6041 tokens, no fold, 3 marks, stable',
      '43895 bytes, 10462 > 1416 tokens, token-budget, 2 marks, stable',
      '541515 bytes, 70813 > 61770 tokens, no fold, 2 marks, stable',
      '544135 bytes, 71336 > 62291 tokens, no fold, 3 marks, stable',
    ];
    expect(await seenBy(open().local)).toEqual(expected);
    expect(await seenBy(open({ fromBytes: 60_000 }).engine)).toEqual(expected);
  });
});

describe('a window that a provider named in a refusal', () => {
  it('is known to the engines of all threads', async () => {
    const { engine } = open({ fromBytes: 60_000 });
    const small = requestOf(anthropicMessages, growing(4, 30_000));
    const large = requestOf(anthropicMessages, growing(14, 60_000));
    const before = await engine.prepare(small);
    const overflow = { unit: 'tokens', limit: 100_000, prompt: undefined } as const;
    await engine.prepare({ ...large, refusal: { reason: 'too long', overflow } });
    const after = await engine.prepare(small);
    // The window of claude-sonnet-4-5 is 200,000 tokens.
    expect(before.room! - after.room!).toBe(100_000);
  });
});

describe('a thread that ends', () => {
  it('sends its requests unfolded, and the next request starts another thread', async () => {
    const { engine, warnings } = open({ heapMb: 24 });
    const many: Step[] = Array.from({ length: 60_000 }, (_, at): Step => ({ user: `${at}` }));
    const large = chatBody(many, { tools: ['run'], model: 'gpt-4o' });
    const lost = await engine.prepare(requestOf(openaiChat, large));
    expect(lost.body).toBe(large);
    expect(lost.outcome).toEqual({
      status: 'failed',
      reason: expect.stringContaining('The thread that folds large requests ended') as string,
    });
    expect(warnings).toEqual([{ reason: 'ERR_WORKER_OUT_OF_MEMORY' }]);
    const next = await engine.prepare(requestOf(openaiChat, large));
    expect(next.body).toBe(large);
    expect(warnings).toHaveLength(2);
  });

  it('does the same when the gateway ends, and originals come from the store', async () => {
    const { engine, thread } = open();
    const folded = await engine.prepare(requestOf(openaiChat, chat));
    const [id] = folded.searched();
    const original = await folded.original(id!);
    const going = engine.prepare(requestOf(openaiChat, chat));
    await thread.close();
    expect((await going).body).toBe(chat);
    expect((await engine.prepare(requestOf(openaiChat, chat))).outcome.status).toBe('failed');
    expect(await folded.original(id!)).toEqual(original);
    await expect(folded.remember({ rounds: [], closing: undefined })).rejects.toThrow('ended');
  });

  it('cannot be started with settings that cannot be copied', () => {
    const models = { '*': { tokenizer: { name: 'own', count: (text: string) => text.length } } } as never;
    const { local, encryptedStore, keptReplies } = open();
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const parts = {
      local,
      settings: { models },
      budget: { max: 64e6, used: new Uint32Array(3) },
      secret,
      store: inMemoryStore(),
      encryptedStore,
      keptReplies,
      learned: createLearned({}),
      log,
    };
    expect(() => foldThread().engineFor(parts)).toThrow('cannot be sent to a thread');
  });
});
