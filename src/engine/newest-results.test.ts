/** Tests folds of newest results that do not fit, with all strategies in order. */
import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { chatBody, type Step } from '../../test/support/chat-conversation.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { defaultStrategies } from '../strategies/default-strategies.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import { folderOf, strategiesOf } from '../strategies/lib/editable-texts.ts';
import type { EngineRequest } from './types.ts';

const window = 262_144;
const words =
  'harbour light keeper stone tower winter oil lamp rope signal storm coast ship night record'.split(' ');

/** Different meaningless sentences of `length` words. */
function prose(seed: number, length: number): string {
  let state = seed + 1;
  const next = () => (state = (state * 48_271) % 2_147_483_647);
  return Array.from(
    { length },
    (_, at) => `${words[next() % words.length]!}${at % 12 === 11 ? '.' : ''}`,
  ).join(' ');
}

type Article = { readonly id: number; readonly title: string; readonly body: string };

/** A list of about 110,000 tokens. */
const articles = (batch: number) =>
  JSON.stringify(
    Array.from({ length: 100 }, (_, at) => ({
      id: batch * 100 + at,
      title: `Article ${at} of ${batch}`,
      body: prose(batch * 100 + at, 1_010),
    })),
  );

const search = (batch: number) => ({
  name: 'search_articles',
  input: `{"page":${batch}}`,
  result: articles(batch),
});

async function prepared(
  steps: readonly Step[],
  engine = testEngine({ window }).engine,
  more: Pick<EngineRequest, 'held'> = {},
) {
  const body = chatBody([{ system: 'Be brief.' }, { user: 'Who lit the lamp?' }, ...steps], {
    tools: ['search_articles', 'run'],
    model: 'gpt-4o',
  });
  const result = await engine.prepare({ codec: openaiChat, body, tenant: 'tenant', ...more });
  const sent = JSON.parse(new TextDecoder().decode(result.body)) as {
    messages: { content: string | null }[];
  };
  return { ...result, texts: sent.messages.map(({ content }) => content ?? '') };
}

describe('three lists of articles of 110,000 tokens each in a window of 262,144', () => {
  const steps = [{ calls: [search(1), search(2), search(3)] }];

  it('take four fifths of it, with the best article of each list in full and every article named', async () => {
    const { report, texts } = await prepared(steps);
    expect(report.tokensBefore).toBeGreaterThan(330_000);
    expect(report.tokensAfter).toBeLessThanOrEqual(window * 0.8);
    expect(report.tokensAfter).toBeGreaterThan(window * 0.7);
    expect(report.steps.map(({ strategy }) => strategy)).toEqual(['compress-items']);
    expect(texts.slice(0, 2)).toEqual(['Be brief.', 'Who lit the lamp?']);
    for (const [at, text] of texts.slice(3).entries()) {
      const whole = JSON.parse(articles(at + 1)) as Article[];
      const left = JSON.parse(text) as (Article & { compressed?: true; compression?: string })[];
      const note = left.find(({ compression }) => compression !== undefined)?.compression;
      expect(left.map(({ id, title }) => [id, title])).toEqual(whole.map(({ id, title }) => [id, title]));
      expect(left[0]).toEqual(whole[0]);
      const shortened = left.filter(({ body }) => body.includes('[…]')).length;
      expect(left.filter(({ compressed }) => compressed)).toHaveLength(shortened);
      expect(note).toMatch(
        new RegExp(
          `^\\[${shortened} of 100 items, the least relevant, shortened where it says \\[…\\]\\. To read it again call read_memory`,
        ),
      );
    }
  });

  it('stay as they were sent when the conversation goes on', async () => {
    // After the next question the lists are history like any other, and the default budget would fold them.
    const { engine } = testEngine({ window, triggerOptions: { tokenBudget: false } });
    const first = await prepared(steps, engine);
    const second = await prepared([...steps, { assistant: 'The keeper.' }, { user: 'When?' }], engine);
    expect(second.texts.slice(0, first.texts.length)).toEqual(first.texts);
    expect(second.report.steps).toEqual([]);
  });
});

describe('three such lists, one after the other, at 0.85 and down to 0.8 of the window', () => {
  const { engine } = testEngine({
    window,
    triggerOptions: {
      windowFraction: { triggerShare: 0.85, targetShare: 0.8 },
      tokenBudget: false,
      mustFit: { targetShare: 0.8 },
    },
    strategies: defaultStrategies({
      strategies: [
        { name: 'compress-items', reach: 'history' },
        'offload-results',
        'drop-oldest',
        'compress-items',
        'clip-newest',
      ],
    }),
  });

  it('lose words of their least relevant items only, from the first fold on, and stay JSON', async () => {
    const steps: Step[] = [];
    const seen: object[] = [];
    for (const batch of [1, 2, 3]) {
      steps.push({ calls: [search(batch)] });
      const { report, texts } = await prepared(steps, engine);
      const lists = texts
        .filter((text) => text.startsWith('[{'))
        .map((text) => JSON.parse(text) as (Article & { compressed?: true })[]);
      seen.push({
        percentOfWindow: Math.floor((report.tokensAfter! / window) * 100),
        steps: report.steps.map(({ strategy }) => strategy),
        lists: lists.map((list) => list.length),
        wholeItems: lists.map((list) => list.filter(({ compressed }) => !compressed).length),
        // The best article of each search is shortened last.
        isFirstWhole: lists.map(([first]) => first!.compressed !== true),
      });
    }
    expect(seen).toEqual([
      { percentOfWindow: 42, steps: [], lists: [100], wholeItems: [100], isFirstWhole: [true] },
      {
        percentOfWindow: 84,
        steps: [],
        lists: [100, 100],
        wholeItems: [100, 100],
        isFirstWhole: [true, true],
      },
      {
        percentOfWindow: 79,
        steps: ['compress-items'],
        lists: [100, 100, 100],
        wholeItems: [19, 19, 100],
        isFirstWhole: [true, true, true],
      },
    ]);
  });
});

describe('newest results', () => {
  it('are cut when even their shortest items do not fit', async () => {
    const log = Array.from({ length: 2_000 }, (_, at) => `${prose(at, 20)} ${at}`).join('\n');
    const steps = [
      {
        calls: [
          { ...search(1), result: articles(1) },
          { name: 'run', result: log },
        ],
      },
    ];
    const { report, outcome } = await prepared(steps, testEngine({ window: 30_000 }).engine);
    expect(outcome.status).toBe('compacted');
    expect(report.tokensAfter).toBeLessThanOrEqual(30_000);
    expect(report.steps.at(-1)!.strategy).toBe('clip-newest');
  });

  it('stay unchanged when folding the history is enough', async () => {
    const old = { calls: [search(1), search(2)] };
    const { report } = await prepared([old, { calls: [search(3)] }]);
    expect(report.steps.map(({ strategy }) => strategy)).toEqual(['offload-results']);
  });
});

describe('a result of 36 kB', () => {
  const log = { calls: [{ name: 'run', result: prose(7, 6_000) }] };
  const talk = Array.from({ length: 8 }, (_, at): readonly Step[] => [
    { assistant: prose(at + 20, 300) },
    { user: `Question ${at}?` },
  ]).flat();

  it('becomes a stub when it is eight turns old, though no newer one came', async () => {
    const { engine } = testEngine({ window: 9_500, triggerOptions: { cacheRent: false } });
    const running = await prepared([log], engine);
    expect(running.texts[3]).toBe(prose(7, 6_000));
    const later = await prepared([log, ...talk], engine);
    expect(later.report.steps.map(({ strategy }) => strategy)).toEqual(['offload-results']);
    expect(later.texts[3]).toMatch(/^\[Folded result: /);
  });
});

describe('the strategies that a request is compared and held by', () => {
  it('are those that made its edits, also when another gateway repeats them', async () => {
    const store = inMemoryStore();
    const steps = [{ calls: [search(1), search(2), search(3)] }];
    for (let gateway = 1; gateway <= 2; gateway++) {
      const { engine } = testEngine({ window, store });
      const { report } = await prepared(steps, engine, { held: { sets: [] } });
      expect(report.strategies).toBe('compress-items');
    }
  });

  it('are told from the kinds of edits in a fold that a version without names has stored', () => {
    const at = { message: 3, part: 0, text: 0 };
    const edits = [
      { kind: 'replace-text', at, stub: 'a', memory: 'mem_a' },
      { kind: 'drop-message', message: 1, memory: 'mem_b' },
      { kind: 'insert-message', before: 1, role: 'user', text: 'b', summary: 'beside' },
    ] as const;
    expect(strategiesOf(edits, [])).toBe('offload-results + summarize-history');
    expect(strategiesOf([...edits, { ...edits[0], by: 'compress-items' }], [])).toBe(
      'compress-items + offload-results + summarize-history',
    );
    expect(strategiesOf([{ ...edits[0], by: 'repair-edit' }], [])).toBe('');
    const message = { index: 1 } as Parameters<ReturnType<typeof folderOf>>[0];
    expect(folderOf(edits)(message, 0)).toBe('summarize-history');
  });
});
