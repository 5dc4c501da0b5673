import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { createSeenBodies } from '../codecs/earlier-bodies.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { textOf } from '../conversation/messages.ts';
import { commonLength } from '../store/encrypted-store.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { asAnthropic } from '../../test/support/as-anthropic.ts';
import { chatBody, freshReading, type Step } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import { answerRecall } from '../recall/tool.ts';
import type { PreparedRequest } from './types.ts';

const tools = ['read_file', 'search', 'run'];
const shrinks = { lossless: false };

/** A file with line numbers, as file readers print it. */
const listing = (lines: number) =>
  Array.from(
    { length: lines },
    (_, at) => `${String(at + 1).padStart(6)}→const n${at} = ${at * lines};`,
  ).join('\n');
const unpadded = (lines: number) =>
  Array.from({ length: lines }, (_, at) => `${at + 1}→const n${at} = ${at * lines};`).join('\n');

const log = (lines: number) =>
  Array.from(
    { length: lines },
    (_, at) => `2026-05-12T02:00:${10 + (at % 50)} info batch ${at} sent in ${at * 7} ms`,
  ).join('\n');

const reads = (at: number): Step => ({
  calls: [{ name: 'read_file', input: `{"path":"src/${at}.ts"}`, result: listing(60 + at) }],
});
const steps = (turns: number): readonly Step[] => [
  { user: 'Read all.' },
  ...Array.from({ length: turns }, (_, at) => reads(at)),
];

const inChat = (some: readonly Step[], model = 'gpt-4o') => ({
  codec: openaiChat,
  body: chatBody(some, { tools, model }),
  tenant: 'tenant',
});

/** Returns the texts of the tool results that are sent. */
function results({ body }: PreparedRequest, codec = openaiChat): readonly string[] {
  const conversation = codec.read(body, freshReading());
  return conversation.messages.flatMap((message) =>
    message.parts.flatMap((part) =>
      part.type === 'tool-result' ? part.texts.map((span) => textOf(body, message, span)) : [],
    ),
  );
}

describe('results of tools', () => {
  it('are made smaller from the first request that holds them, including the newest', async () => {
    const { engine } = testEngine({ shrinks });
    const prepared = await engine.prepare(inChat(steps(2)));
    expect(prepared.outcome).toEqual({ status: 'compacted' });
    expect(results(prepared)).toEqual([unpadded(60), unpadded(61)]);
    expect(prepared.report).toMatchObject({ shrunk: 2, memories: [], trigger: undefined, steps: [] });
  });

  it('are the same whether or not those of the last request are remembered', async () => {
    const repeated = (at: number): Step => ({
      calls: [
        { name: 'run', input: `{"command":"cat logs/${at}"}`, result: log(30 + at) },
        { name: 'read_file', input: `{"path":"src/${at % 5}.ts"}`, result: listing(40 + (at % 5)) },
      ],
    });
    const all = [...steps(8), ...Array.from({ length: 12 }, (_, at) => repeated(at)), { user: 'And now?' }];
    const rewritten = [...all.slice(0, 12), reads(99)];
    const requests = [
      ...Array.from({ length: 14 }, (_, at) => all.slice(0, 7 + at)),
      all,
      all,
      rewritten,
      [...rewritten, ...all.slice(12, 16)],
      [...all, reads(1), repeated(3)],
      [...all, reads(1), repeated(3), reads(2), repeated(30)],
    ];
    for (const window of [128_000, 16_000]) {
      const options = { shrinks: { lossless: true }, window };
      const remembers = testEngine({ ...options, seen: createSeenBodies({ commonLength }) });
      const forgets = testEngine(options);
      for (const request of requests) {
        const one = await remembers.engine.prepare(inChat(request));
        const other = await forgets.engine.prepare(inChat(request));
        expect(new TextDecoder().decode(one.body)).toBe(new TextDecoder().decode(other.body));
        expect(one.report.shrunk).toBe(other.report.shrunk);
      }
    }
  });

  it('stay unchanged when shrinking is off, and when they are pinned', async () => {
    expect(results(await testEngine().engine.prepare(inChat(steps(1))))).toEqual([listing(60)]);
    const pins = { tools: ['read_file'], texts: [] };
    expect(results(await testEngine({ shrinks, pins }).engine.prepare(inChat(steps(1))))).toEqual([
      listing(60),
    ]);
  });

  it('are counted but stay unchanged in observe mode', async () => {
    const { engine } = testEngine({ shrinks, mode: 'observe' });
    const request = inChat(steps(1));
    const prepared = await engine.prepare(request);
    expect(prepared.body).toBe(request.body);
    expect(prepared.report.shrunk).toBe(1);
  });

  it('keep their smaller form next to folds, and a folded one is restored unchanged', async () => {
    const { engine } = testEngine({ shrinks, window: 9_000 });
    const prepared = await engine.prepare(inChat(steps(40)));
    const sent = results(prepared);
    expect(sent.at(-1)).toBe(unpadded(99));
    const [, at, id] = /src\/(\d+)\.ts.*"(mem_\w+)"/.exec(sent[0]!) ?? [];
    const recalled = await answerRecall(prepared, JSON.stringify({ id }), 8_000);
    expect(recalled.text).toContain(listing(60 + Number(at)));
  });
});

describe('a result of which a part is left out', () => {
  const ran: readonly Step[] = [{ user: 'Run it.' }, { calls: [{ name: 'run', result: log(400) }] }];

  it('says how to read it in full, and is restored unchanged', async () => {
    const prepared = await testEngine({ shrinks }).engine.prepare(inChat(ran));
    const [text = ''] = results(prepared);
    expect(text.length).toBeLessThan(log(400).length / 10);
    const [, id] =
      /\n\[Shortened from \d+ characters\. To read it again call read_memory with \{"id":"(mem_\w+)"\}\.\]$/.exec(
        text,
      ) ?? [];
    expect(prepared.report.memories).toEqual([id]);
    const { text: recalled } = await answerRecall(
      prepared,
      JSON.stringify({ id, query: 'batch 237' }),
      2_000,
    );
    expect(recalled).toContain('info batch 237 sent in 1659 ms');
  });

  it('is stored and can be read from the store', async () => {
    const { engine, encryptedStore } = testEngine({ shrinks });
    const { report } = await engine.prepare(inChat(ran));
    const found = await encryptedStore.recall('tenant', report.memories[0]!);
    expect(found.status === 'found' && new TextDecoder().decode(found.original)).toBe(
      JSON.stringify(log(400)),
    );
  });

  it('stays complete in lossless mode, and when the model cannot recall', async () => {
    for (const options of [{ shrinks: { lossless: true } }, { shrinks, offerRecall: 'never' as const }]) {
      const [text] = results(await testEngine(options).engine.prepare(inChat(ran)));
      expect(text).toContain('batch 237 sent in 1659 ms');
    }
  });
});

describe('a model that binds its replies to their prefix', () => {
  const model = 'claude-opus-5-5';
  const thought = (body: Uint8Array): Uint8Array => {
    const parsed = JSON.parse(new TextDecoder().decode(body)) as {
      messages: { role: string; content: unknown[] }[];
    };
    for (const { role, content } of parsed.messages) {
      if (role === 'assistant') content.unshift({ type: 'thinking', thinking: 'Hm.', signature: 'c2ln' });
    }
    return new TextEncoder().encode(JSON.stringify(parsed));
  };
  const request = (turns: number) => ({
    codec: anthropicMessages,
    body: thought(asAnthropic(chatBody(steps(turns), { tools, model }))),
    tenant: 'tenant',
  });

  it('gets the same smaller results from every instance, as in the request that its reasoning is bound to', async () => {
    const store = inMemoryStore();
    const first = await testEngine({ shrinks, store }).engine.prepare({
      ...request(0),
      body: asAnthropic(chatBody(steps(0), { tools, model })),
    });
    expect(first.report.shrunk).toBe(0);
    const { engine } = testEngine({ shrinks, store });
    expect(results(await engine.prepare(request(1)), anthropicMessages)).toEqual([unpadded(60)]);
    const restarted = testEngine({ shrinks, store }).engine;
    expect(results(await restarted.prepare(request(2)), anthropicMessages)).toEqual([
      unpadded(60),
      unpadded(61),
    ]);
  });

  it('gets results from before the first request here unchanged, and only new results smaller', async () => {
    const store = inMemoryStore();
    for (const turns of [3, 4]) {
      const { engine } = testEngine({ shrinks, store });
      expect(results(await engine.prepare(request(turns)), anthropicMessages)).toEqual([
        listing(60),
        listing(61),
        ...Array.from({ length: turns - 2 }, (_, at) => unpadded(62 + at)),
      ]);
    }
  });
});
