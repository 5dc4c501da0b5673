import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { chatBody, readChat, type Step } from '../../test/support/chat-conversation.ts';
import { outline } from '../../test/support/codec-suite/outline.ts';
import { hiddenRecallOf } from '../../test/support/codec-suite/with-hidden-recalls.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import { answerRecall } from '../recall/tool.ts';
import type { Engine } from './types.ts';
import type { PreparedRequest } from './types.ts';

const tools = ['read_file', 'run'];

function prepare(
  engine: Engine,
  steps: readonly Step[],
  change: { tools?: readonly string[]; tenant?: string } = {},
) {
  const body = chatBody(steps, { tools: change.tools ?? tools, model: 'gpt-4o' });
  return engine.prepare({ codec: openaiChat, body, tenant: change.tenant ?? 'tenant' });
}

/** Outlines the messages that are sent. */
const linesOf = ({ body }: PreparedRequest) =>
  outline(readChat(body)).filter((line) => !line.startsWith('beside'));

const messagesOf = ({ body }: PreparedRequest) => {
  const { messages } = readChat(body);
  return messages.map(({ span }) => new TextDecoder().decode(body.subarray(span.start, span.end)));
};

const asks = (id: string, content: string | null = null) => ({
  role: 'assistant',
  content,
  tool_calls: [{ id, type: 'function', function: { name: 'read_memory', arguments: '{"id":"mem_a"}' } }],
});

const asked: readonly Step[] = [{ user: 'What does the log say?' }];
const told: readonly Step[] = [...asked, { assistant: 'Let me look. Two errors.' }, { user: 'And now?' }];
const hiddenRecall = hiddenRecallOf([[asks('m1', 'Let me look. '), { m1: 'all of it' }]], {
  role: 'assistant',
  content: 'Two errors.',
});

const toldLines = [
  'user: "What does the log say?"',
  'assistant: "Let me look. Two errors."',
  'user: "And now?"',
];
const hiddenRecallLines = [
  'user: "What does the log say?"',
  'assistant: "Let me look. ", call m1 read_memory("{\\"id\\":\\"mem_a\\"}")',
  'tool: result m1 ["all of it"]',
  'assistant: "Two errors."',
  'user: "And now?"',
];

/** Records a recall that the model made while it answered the first request. */
async function recalled(engine: Engine): Promise<void> {
  await (await prepare(engine, asked)).remember(hiddenRecall);
}

describe('a hidden recall', () => {
  it('is sent with every later request, and counted', async () => {
    const { engine } = testEngine();
    await recalled(engine);
    const second = await prepare(engine, told);
    expect(linesOf(second)).toEqual(hiddenRecallLines);
    expect(second.report.hiddenRecalls).toBe(1);
    const third = await prepare(engine, [...told, { assistant: 'None.' }, { user: 'Thanks.' }]);
    expect(linesOf(third)).toEqual([...hiddenRecallLines, 'assistant: "None."', 'user: "Thanks."']);
    expect(messagesOf(third).slice(0, 5)).toEqual(messagesOf(second));
  });

  it('is not sent with the request that it was made for, however often that is sent again', async () => {
    const { engine } = testEngine();
    await recalled(engine);
    expect(linesOf(await prepare(engine, asked))).toEqual(['user: "What does the log say?"']);
  });

  it('is the same after a restart, and in another instance on the same store', async () => {
    const store = inMemoryStore();
    const { engine } = testEngine({ store });
    await recalled(engine);
    const before = await prepare(engine, told);
    expect((await prepare(testEngine({ store }).engine, told)).body).toEqual(before.body);
  });

  it.each<[string, readonly Step[]]>([
    ['other words', [...asked, { assistant: 'No error.' }, { user: 'And now?' }]],
    ['another prefix', [{ user: 'What does it say?' }, ...told.slice(1)]],
    [
      'the same words in another place',
      [...asked, { assistant: 'Well.' }, { user: 'Say it.' }, ...told.slice(1)],
    ],
    ['only the reply, with nothing before it', told.slice(1)],
  ])('is not sent when the client has %s', async (_, steps) => {
    const { engine } = testEngine();
    await recalled(engine);
    expect(linesOf(await prepare(engine, steps))).toEqual(outline(readChat(chatBody(steps))));
  });

  it('is not sent for another tenant', async () => {
    const { engine } = testEngine();
    await recalled(engine);
    expect(linesOf(await prepare(engine, told, { tenant: 'another' }))).toEqual(toldLines);
  });

  it('is not sent when the tool is not offered', async () => {
    const { engine } = testEngine();
    await recalled(engine);
    expect(linesOf(await prepare(engine, told, { tools: [] }))).toEqual(toldLines);
    const several = new TextEncoder().encode(
      new TextDecoder().decode(chatBody(told, { tools })).replace('{', '{"n":2,'),
    );
    const { body } = await engine.prepare({ codec: openaiChat, body: several, tenant: 'tenant' });
    expect(body).toBe(several);
  });

  it('is not sent when folding is disabled for the conversation', async () => {
    const { engine } = testEngine();
    await recalled(engine);
    const body = chatBody(told, { tools, model: 'gpt-4o' });
    await engine.disableFolding({ codec: openaiChat, body, tenant: 'tenant' });
    const goesOn: readonly Step[] = [...told, { assistant: 'None.' }, { user: 'Thanks.' }];
    const prepared = await prepare(engine, goesOn);
    expect(prepared.body).toEqual(chatBody(goesOn, { tools, model: 'gpt-4o' }));
    expect(prepared.outcome).toEqual({ status: 'untouched', reason: 'folding is disabled after a refusal' });
  });

  it('is sent when the client continues after it disconnected within the reply', async () => {
    const { engine } = testEngine();
    await (await prepare(engine, asked)).remember({ ...hiddenRecall, closing: undefined });
    const cut = await prepare(engine, [...asked, { assistant: 'Let me look. Two er' }, { user: 'Go on.' }]);
    expect(linesOf(cut)).toEqual([...hiddenRecallLines.slice(0, 3), 'assistant: "Two er"', 'user: "Go on."']);
  });

  it('belongs to the reply that the client continues, of several to one request', async () => {
    const { engine } = testEngine();
    await recalled(engine);
    const other = hiddenRecallOf([[asks('m2'), { m2: 'nothing' }]], {
      role: 'assistant',
      content: 'No error.',
    });
    await (await prepare(engine, asked)).remember(other);
    expect(linesOf(await prepare(engine, told))).toEqual(hiddenRecallLines);
    const otherTold: readonly Step[] = [...asked, { assistant: 'No error.' }, { user: 'And now?' }];
    expect(linesOf(await prepare(engine, otherTold))).toEqual([
      'user: "What does the log say?"',
      'assistant: call m2 read_memory("{\\"id\\":\\"mem_a\\"}")',
      'tool: result m2 ["nothing"]',
      'assistant: "No error."',
      'user: "And now?"',
    ]);
  });
});

describe('a hidden recall that would break a rule', () => {
  it('is left out, and all others are sent', async () => {
    const { engine } = testEngine();
    let steps = asked;
    for (let at = 0; at < 9; at++) {
      // The fifth recall lacks the answer to its call.
      const answers = at === 4 ? { other: 'of no call' } : { [`m${at}`]: 'all of it' };
      const closing = { role: 'assistant', content: `Step ${at}.` };
      await (await prepare(engine, steps)).remember(hiddenRecallOf([[asks(`m${at}`), answers]], closing));
      steps = [...steps, { assistant: `Step ${at}.` }, { user: 'Next.' }];
    }
    const prepared = await prepare(engine, steps);
    expect(openaiChat.rules.problems(readChat(prepared.body))).toEqual([]);
    expect(linesOf(prepared).filter((line) => line.includes('read_memory'))).toEqual(
      [0, 1, 2, 3, 5, 6, 7, 8].map((at) => `assistant: call m${at} read_memory("{\\"id\\":\\"mem_a\\"}")`),
    );
  });

  it('is sent when the client itself breaks the same rule', async () => {
    const { engine } = testEngine();
    await recalled(engine);
    const unanswered: Step = { calls: [{ name: 'run' }] };
    const prepared = await prepare(engine, [...told, unanswered, { user: 'Hm.' }]);
    expect(linesOf(prepared).slice(0, 5)).toEqual(hiddenRecallLines);
  });
});

describe('a fold over hidden recalls', () => {
  /** A log of about 1,000 tokens. */
  const log = (name: string) =>
    Array.from({ length: 100 }, (_, at) => `${name}: step ${at} took ${at * 7} ms\n`).join('');
  const jobs = (count: number): readonly Step[] => [
    ...told,
    ...Array.from(
      { length: count },
      (_, at): Step => ({ calls: [{ name: 'run', result: log(`job ${at}`) }] }),
    ),
  ];

  it('is replayed byte for byte, also after a restart, so that the sent prefix only grows', async () => {
    const store = inMemoryStore();
    let { engine } = testEngine({ window: 20_000, store });
    await recalled(engine);
    let before: readonly string[] = [];
    let folds = 0;
    for (let count = 1; count <= 40; count++) {
      if (count % 10 === 0) ({ engine } = testEngine({ window: 20_000, store }));
      const prepared = await prepare(engine, jobs(count));
      const messages = messagesOf(prepared);
      if (prepared.report.trigger) folds++;
      else expect(messages.slice(0, before.length)).toEqual(before);
      before = messages;
    }
    expect(folds).toBeGreaterThan(2);
  });

  it('can be recalled by id, also after a hidden recall', async () => {
    const { engine, encryptedStore } = testEngine({ window: 20_000 });
    await recalled(engine);
    const prepared = await prepare(engine, jobs(30));
    expect(linesOf(prepared).slice(0, 5)).toEqual(hiddenRecallLines);
    const ids = [...new TextDecoder().decode(prepared.body).matchAll(/mem_[0-9a-z]{16}/g)].map(([id]) => id);
    expect(ids.length).toBeGreaterThan(10);
    for (const [at, id] of ids.entries()) {
      const { text, found } = await answerRecall(prepared, JSON.stringify({ id, lines: '1-1' }), 1_000);
      expect([found, text]).toEqual([true, expect.stringContaining(`job ${at}: step 0 took 0 ms`)]);
      const kept = await encryptedStore.recall('tenant', id);
      expect(kept.status === 'found' && new TextDecoder().decode(kept.original)).toBe(
        JSON.stringify(log(`job ${at}`)),
      );
    }
  });

  it('drops old recalls as a unit, and their originals can be recalled again', async () => {
    const { engine } = testEngine({ window: 20_000 });
    const large = hiddenRecallOf([[asks('m1', 'Let me look. '), { m1: log('memory').repeat(8) }]], {
      role: 'assistant',
      content: 'Two errors.',
    });
    await (await prepare(engine, asked)).remember(large);
    const prepared = await prepare(engine, jobs(16));
    expect(prepared.report.steps.map(({ strategy }) => strategy)).toContain('drop-recalls');
    expect(linesOf(prepared).slice(0, 4)).toEqual([
      'user: "What does the log say?"',
      'assistant: "Let me look. "',
      'assistant: "Two errors."',
      'user: "And now?"',
    ]);
    const again = await prepare(engine, jobs(17));
    expect(messagesOf(again).slice(0, messagesOf(prepared).length)).toEqual(messagesOf(prepared));
  });
});

describe('a store that fails', () => {
  it('does not affect the recalls that this process remembers', async () => {
    const store = inMemoryStore();
    const { engine } = testEngine({ store });
    await recalled(engine);
    const before = await prepare(engine, told);
    await store.close();
    const prepared = await prepare(engine, told);
    expect(prepared.body).toEqual(before.body);
    expect(prepared.problem).toContain('store-failed');
  });

  it('rejects a new recall', async () => {
    const store = inMemoryStore();
    const { engine } = testEngine({ store });
    const prepared = await prepare(engine, asked);
    await store.close();
    await expect(prepared.remember(hiddenRecall)).rejects.toMatchObject({ code: 'store-failed' });
  });
});
