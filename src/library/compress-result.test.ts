import { describe, expect, it } from 'vitest';
import { inMemoryStore } from '../store/in-memory.ts';
import type { Summarizer, SummaryRequest } from '../outline/summarizer.ts';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import { createLeporello } from '../library/leporello.ts';
import { type PendingWords, compressResult } from './compress-result.ts';

const articles = Array.from({ length: 6 }, (_, at) => ({
  title: `Article ${at}`,
  body: `Lamps of kind ${at} shine in the evening. They were made by hand in town ${at}. `.repeat(12),
}));
const text = JSON.stringify(articles);
/** The approximate number. */
const tokens = 1_400;

type SummarizerCall = { readonly text: string; readonly request: SummaryRequest };

/** A summarizer that names the lamps in an item, and remembers its requests. */
function teller(change: Partial<Summarizer> = {}) {
  const asked: SummarizerCall[] = [];
  const summarizer: Summarizer = {
    name: 'teller',
    summarize(request) {
      const said = request.steps.map((step) => (step.type === 'said' ? step.text : '')).join('');
      asked.push({ text: said, request });
      return Promise.resolve(`Lamps of kind ${/kind (\d)/.exec(said)?.[1]}, made by hand.`);
    },
    ...change,
  };
  return { summarizer, asked };
}

const titles = (result: string) => [...result.matchAll(/Article \d/g)].length;

describe('a tool result in an agent loop', () => {
  it('stays unchanged when it fits its part of the budget, and when it is not a list', async () => {
    const leporello = createLeporello();
    const budget = { tokens: 3 * tokens, results: 2 };
    const unchanged = { text, memory: undefined, compression: undefined };
    expect(await leporello.compressResult({ text, budget })).toEqual(unchanged);
    const code = 'const x = 1;\n'.repeat(2_000);
    const tight = { tokens: 100, results: 5 };
    expect((await leporello.compressResult({ text: code, budget: tight })).text).toBe(code);
  });

  it('is made smaller the more results are expected, and is restored in full', async () => {
    const leporello = createLeporello();
    const sizes: number[] = [];
    for (const results of [2, 4, 8]) {
      const {
        text: short,
        memory,
        compression,
      } = await leporello.compressResult({
        text,
        question: 'What of Article 3?',
        budget: { tokens: 2_000, results },
      });
      expect(titles(short)).toBe(6);
      sizes.push(compression!.tokensAfter);
      expect(JSON.parse(new TextDecoder().decode(await leporello.original(memory!)))).toBe(text);
      expect(await leporello.readMemory(JSON.stringify({ id: memory }))).toContain('town 5');
    }
    expect(sizes[0]).toBeLessThanOrEqual(1_000);
    expect(sizes[1]).toBeLessThanOrEqual(500);
    expect(sizes[2]).toBeLessThan(sizes[1]!);
  });

  it('fits its part of the budget whenever it can', async () => {
    // Ids from another secret count one token more or less.
    const leporello = createLeporello();
    const sizeIn = async (room: number) => {
      const { compression } = await leporello.compressResult({ text, budget: { tokens: room, results: 1 } });
      return compression?.tokensAfter ?? 0;
    };
    const least = await sizeIn(0);
    const rooms = Array.from({ length: 40 }, (_, at) => least + at * 25);
    const sizes = await Promise.all(rooms.map(sizeIn));
    expect(rooms.filter((room, at) => sizes[at]! > room)).toEqual([]);
  });

  it('fits its part of the budget when a more compact form is nearly enough', async () => {
    const tagged = articles.map((article) => ({
      ...article,
      tags: Array.from({ length: 60 }, (_, tag) => tag),
    }));
    const pretty = JSON.stringify(tagged, null, 8);
    const room = 3_000;
    const { compression } = await createLeporello().compressResult({
      text: pretty,
      budget: { tokens: room, results: 1 },
    });
    expect(compression?.tokensAfter).toBeLessThanOrEqual(room);
  });

  it("gets a summarizer's words for its items, each requested once, also across processes", async () => {
    const options = { store: inMemoryStore(), secret: new Uint8Array(32).fill(3) };
    const { summarizer, asked } = teller();
    const request = { text, question: 'Which lamps?', budget: { tokens: 450, results: 1 }, summarizer };
    const first = await createLeporello(options).compressResult(request);
    expect(first.text).toContain('"Lamps of kind 5, made by hand."');
    expect(first.compression).toMatchObject({ level: 'items', by: 'summarizer', problem: undefined });
    expect(asked.length).toBe(6);
    expect(asked[0]!.request.guidance).toContain('"Which lamps?"');
    expect(await createLeporello(options).compressResult(request)).toEqual(first);
    expect(asked.length).toBe(6);
    await createLeporello(options).compressResult({ ...request, question: 'Which towns?' });
    expect(asked.length).toBe(12);
  });

  it('keeps its own words when the summarizer fails, refuses, writes more than there was, or is late', async () => {
    const request = { text, budget: { tokens: 450, results: 1 } };
    // Both use one secret: ids of other secrets can have more tokens, and leave less room for the items.
    const fresh = () => createLeporello({ store: inMemoryStore(), secret: new Uint8Array(32) });
    const own = await fresh().compressResult(request);
    for (const change of [
      { summarize: () => Promise.reject(new Error('429')) },
      { summarize: () => Promise.resolve(undefined) },
      { summarize: () => Promise.resolve("I'm sorry, but I cannot help with that.") },
      { summarize: () => Promise.resolve('It goes on and on. '.repeat(400)) },
      { summarize: () => new Promise<string>(() => undefined) },
    ]) {
      const { summarizer } = teller(change);
      const result = await fresh().compressResult({ ...request, summarizer, waitMs: 20 });
      expect(result.text).toBe(own.text);
      expect(result.compression).toMatchObject({
        by: 'extractive',
        problem: 'the summarizer did not answer every item in time',
      });
    }
  });

  it('waits for words also with more time than a timer can wait', async () => {
    const summarize = async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return 'Lamps made by hand.';
    };
    const request = { text, budget: { tokens: 450, results: 1 }, summarizer: { name: 'slow', summarize } };
    const result = await createLeporello().compressResult({ ...request, waitMs: 3e9 });
    expect(result.compression).toMatchObject({ by: 'summarizer', problem: undefined });
  });

  it('gives a summarizer up that never answers, so that it is asked again', async () => {
    let asked = 0;
    const summarizer: Summarizer = {
      name: 'silent',
      summarize() {
        asked++;
        return new Promise(() => undefined);
      },
    };
    const pendingWords: PendingWords = new Map();
    const deps = {
      encryptedStore: createEncryptedStore({ store: inMemoryStore(), secret: new Uint8Array(32) }),
      count: (words: string) => Math.ceil(words.length / 4),
      recallTool: 'read_memory',
      pendingWords,
      maxWritingMs: 5,
    };
    const compress = () =>
      compressResult({ text, budget: { tokens: 450, results: 1 }, summarizer, waitMs: 3e9 }, deps);
    expect((await compress()).compression?.by).toBe('extractive');
    expect(pendingWords.size).toBe(0);
    const before = asked;
    await compress();
    expect(asked).toBe(2 * before);
  });

  it('gets late words the next time, and they are requested only once', async () => {
    const leporello = createLeporello();
    const answer = Promise.withResolvers<string>();
    let asked = 0;
    const summarizer: Summarizer = {
      name: 'slow',
      summarize() {
        asked++;
        return answer.promise;
      },
    };
    const request = { text, budget: { tokens: 450, results: 1 }, summarizer };
    const first = await leporello.compressResult({ ...request, waitMs: 0 });
    expect(first.compression?.by).toBe('extractive');
    const next = leporello.compressResult(request);
    answer.resolve('Lamps made by hand.');
    expect((await next).compression?.by).toBe('summarizer');
    expect((await next).text).toContain('"Lamps made by hand."');
    expect(asked).toBe(6);
  });
});
