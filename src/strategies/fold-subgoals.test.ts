import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { answerRecall } from '../recall/tool.ts';
import type { Engine } from '../engine/types.ts';
import type { PreparedRequest } from '../engine/types.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { asAnthropic } from '../../test/support/as-anthropic.ts';
import { addToResults } from '../../test/support/add-to-results.ts';
import {
  chatBody,
  chatMessages,
  freshReading,
  readChat,
  type Step,
} from '../../test/support/chat-conversation.ts';
import { foldView, strategySuite, written } from '../../test/support/strategy-suite.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import { defaultStrategies } from './default-strategies.ts';
import { foldSubgoals } from './fold-subgoals.ts';

strategySuite(foldSubgoals({ minActions: 0 }));
strategySuite(foldSubgoals({ minActions: 0, levels: 'always', ratio: 'adaptive' }));

const listing = (name: string, lines: number) => `export const ${name} = 1;\n`.repeat(lines);

/** An item of a plan, and as many calls about one module. */
function work(name: string, calls: number, lines = 60): readonly Step[] {
  const plan = JSON.stringify({ todos: [{ content: `Mend ${name}`, status: 'in_progress' }] });
  return [
    { calls: [{ name: 'todo', input: plan, result: 'ok' }] },
    ...Array.from({ length: calls - 1 }, (_, at) => ({
      calls: [
        {
          name: 'read_file',
          input: JSON.stringify({ path: `src/${name}/part-${at}.ts` }),
          result: at === 1 ? `Error: ${name} is broken` : listing(name, lines),
        },
      ],
    })),
  ];
}

describe('fold-subgoals', () => {
  const steps: readonly Step[] = [
    { system: 'Be brief.' },
    { user: 'Mend all of it. Never change the public API.' },
    ...work('alpha', 4, 30),
    ...work('beta', 4, 30),
    { user: 'Go on.' },
    ...work('gamma', 4, 30),
  ];
  const idOf = (original: Uint8Array) => `mem_${String(original.length).padStart(16, '0')}`;
  const contentsOf = (body: Uint8Array, options: Parameters<typeof foldSubgoals>[0]) => {
    const view = foldView(readChat(body), { idOf });
    const { body: after } = written(view.conversation, foldSubgoals(options).propose(view));
    return messagesOf(after).map(({ content }) => content);
  };

  it("finds the same sub-goals with a client's reminder after each result, and keeps user messages", () => {
    const body = asAnthropic(chatBody(steps, { tools: ['todo', 'read_file'] }));
    const reminded = addToResults(body, '<system-reminder>Mind the list.</system-reminder>');
    const droppedIn = (sent: Uint8Array) =>
      foldSubgoals({ minActions: 0 })
        .propose(foldView(anthropicMessages.read(sent, freshReading()), { idOf }))
        .flatMap((edit) => (edit.kind === 'drop-message' ? [edit.message] : []));
    expect(droppedIn(reminded)).toEqual(droppedIn(body));
    expect(droppedIn(body)).toHaveLength(22);
    expect(droppedIn(addToResults(body, 'Mind the list.'))).toEqual([]);
  });

  it("continues a sub-goal across a client's text", () => {
    const reminder: Step = { user: '<system-reminder>Mind the list.</system-reminder>' };
    const [plan, ...rest] = work('alpha', 4, 30);
    const recordsIn = (between: readonly Step[]) =>
      contentsOf(
        chatBody([
          { user: 'Mend it.' },
          plan!,
          ...between,
          ...rest,
          ...work('beta', 4, 30),
          ...work('gamma', 4, 30),
        ]),
        { minActions: 0 },
      ).filter((content) => content?.startsWith('[Steps folded'));
    const spelled = (records: ReturnType<typeof recordsIn>) =>
      records.map((record) => record?.replace(/mem_\d+/, 'mem'));
    expect(recordsIn([])).toHaveLength(3);
    expect(spelled(recordsIn([reminder]))).toEqual(spelled(recordsIn([])));
  });

  it('replaces each finished sub-goal by a record, and keeps user messages and the open sub-goal', () => {
    const contents = contentsOf(chatBody(steps), { minActions: 0 });
    expect(contents.slice(0, 5)).toEqual([
      'Be brief.',
      'Mend all of it. Never change the public API.',
      `[Steps folded, 4 calls: read_memory {"id":"mem_0000000000002431"} shows them] Mend alpha → read_file part-1.ts: failed, "Error: alpha is broken"
- read_file part-0.ts
- read_file part-2.ts`,
      expect.stringContaining('] Mend beta → '),
      'Go on.',
    ]);
    expect(contents.slice(5)).toEqual([expect.stringContaining('3 calls'), null, listing('gamma', 30)]);
  });

  it('does not fold conversations with fewer calls', () => {
    expect(contentsOf(chatBody(steps), {})).toEqual(
      messagesOf(chatBody(steps)).map(({ content }) => content),
    );
  });

  it('writes longer records with a lower ratio', () => {
    const talking = work('alpha', 5).flatMap((step, at): readonly Step[] => [
      step,
      {
        assistant: `Part ${at} of alpha has a list of ${at + 31} names that nobody cleared since it was written.`,
      },
    ]);
    const body = chatBody([{ user: 'Mend it.' }, ...talking, ...work('beta', 4), ...work('gamma', 4)]);
    const sizeOf = (ratio: number) =>
      contentsOf(body, { minActions: 0, ratio }).find((content) => content?.startsWith('[Steps folded'))!
        .length;
    expect(sizeOf(3)).toBeGreaterThan(sizeOf(15));
  });

  it('measures the share of records by the request before the fold, of which this may be the second round', () => {
    const body = chatBody([
      { user: 'Mend all of it.' },
      ...Array.from({ length: 13 }, (_, at) => work(`part${at}`, 4, 10 + at)).flat(),
      { user: 'Go on.' },
    ]);
    const headsAfter = (tokensBefore: number) => {
      const excess = { unit: 'tokens', amount: Number.POSITIVE_INFINITY } as const;
      const view = foldView(readChat(body), { idOf, tokensBefore, excess });
      const { body: after } = written(view.conversation, foldSubgoals().propose(view));
      return messagesOf(after)
        .flatMap(({ content }) => /^\[\w+ folded/.exec(content ?? '') ?? [])
        .map(String);
    };
    expect(headsAfter(100_000)).toEqual(Array.from({ length: 13 }, () => '[Steps folded'));
    expect(headsAfter(2_000)).toContain('[Phase folded');
  });

  it('rejects ratios out of range', () => {
    expect(() => foldSubgoals({ ratio: 1_001 })).toThrow(
      'foldSubgoals.ratio is 1001, but must be a number from 1.5 to 1000, or "adaptive".',
    );
  });
});

const names = Array.from({ length: 70 }, (_, at) => `module${at}`);
const long: readonly Step[] = [
  { system: 'You are an agent.' },
  { user: 'Mend all of it. Never change the public API.' },
  ...names.flatMap((name) => work(name, 5)),
];

function prepare(engine: Engine, conversation: readonly Step[]): Promise<PreparedRequest> {
  const body = chatBody(conversation, { tools: ['read_file', 'todo'], model: 'gpt-4o' });
  return engine.prepare({ codec: openaiChat, body, tenant: 'tenant' });
}

type Sent = { readonly messages: readonly { readonly role: string; readonly content: string }[] };
const messagesOf = (body: Uint8Array) => (JSON.parse(new TextDecoder().decode(body)) as Sent).messages;
const recordsIn = ({ body }: PreparedRequest) =>
  messagesOf(body).flatMap(({ content }) =>
    /^\[(?:Steps|Phases?) folded/.test(content ?? '') ? [content] : [],
  );
const idsIn = (text: string) => text.match(/mem_[0-9a-z]{16}/g) ?? [];

describe('a fold of sub-goals', () => {
  const options = {
    strategies: defaultStrategies({ subgoals: { levels: 'always' } }),
    triggerOptions: {
      windowFraction: false as const,
      tokenBudget: { triggerTokens: 12_000, targetTokens: 4_000 },
    },
  };

  it('makes phases of sub-goals and overviews of phases, and every message can be recalled level by level', async () => {
    const prepared = await prepare(testEngine(options).engine, long);
    expect(prepared.report.tokensAfter).toBeLessThan(6_000);
    const reported = prepared.report.compressions.slice(0, 3);
    expect(reported.map(({ level, by, target }) => `${level} ${by} ${target}`)).toEqual([
      'overview extractive 10',
      'phase extractive 10',
      'subgoal extractive 10',
    ]);
    const records = recordsIn(prepared);
    expect(records.map((text) => text.slice(0, text.indexOf(':')))).toEqual([
      '[Phases folded, 250 calls',
      '[Phase folded, 50 calls',
      ...Array.from({ length: 9 }, () => '[Steps folded, 5 calls'),
      // The newest plan stays in view.
      '[Steps folded, 2 calls',
    ]);
    const recall = async (id: string) => (await answerRecall(prepared, JSON.stringify({ id }), 8_000)).text;
    const phases = idsIn(await recall(idsIn(records[0]!)[0]!));
    expect(phases.length).toBe(5);
    const subgoals = (await Promise.all(phases.map(recall))).flatMap(idsIn);
    expect(subgoals.length).toBe(50);
    const stored = await Promise.all(subgoals.map(async (id) => prepared.original(id)));
    const originals = stored.flatMap(
      (json) => JSON.parse(new TextDecoder().decode(json)) as readonly unknown[],
    );
    expect(originals).toEqual(chatMessages(long).slice(2, 2 + originals.length));
    expect(originals.length).toBe(50 * 10);
  });

  it('reaches high ratios by levels', async () => {
    const levelsOf = async (ratio: number) => {
      const strategies = defaultStrategies({ subgoals: { ratio } });
      const { report } = await prepare(testEngine({ ...options, strategies }).engine, long);
      return [
        ...new Set(report.compressions.map(({ level, target }) => `${level} ${target?.toFixed(1)}`)),
      ].toSorted();
    };
    // A light merge has no target.
    const merge = 'subgoal undefined';
    expect(await levelsOf(20)).toEqual(['overview 4.5', 'phase 4.5', 'subgoal 4.5', merge]);
    expect(await levelsOf(50)).toEqual(['overview 7.1', 'phase 7.1', 'subgoal 7.1', merge]);
  });

  it('is found by another process: the same bytes are sent, and nothing is folded twice', async () => {
    const store = inMemoryStore();
    const once = await prepare(testEngine({ ...options, store }).engine, long);
    const more: readonly Step[] = [...long, { assistant: 'Done.' }, { user: 'Thanks.' }];
    const later = await prepare(testEngine({ ...options, store }).engine, more);
    expect(later.report.trigger).toBeUndefined();
    const sent = messagesOf(later.body);
    expect(sent.slice(0, -2)).toEqual(messagesOf(once.body));
    const [overview = ''] = idsIn(recordsIn(later)[0]!);
    expect(await later.original(overview)).toEqual(await once.original(overview));
  });

  it('continues level by level as the conversation grows, and keeps the sent prefix', async () => {
    const { engine } = testEngine(options);
    for (let at = 12; at <= names.length; at += 6) {
      const prepared = await prepare(engine, long.slice(0, 2 + at * 5));
      expect(prepared.report.tokensAfter).toBeLessThan(12_000);
      expect(messagesOf(prepared.body).slice(0, 2)).toEqual(chatMessages(long).slice(0, 2));
    }
    const records = recordsIn(await prepare(engine, long));
    expect(records.filter((text) => /^\[Phases? folded/.test(text)).length).toBeGreaterThan(0);
  });

  it('keeps all of its records beside a summary', async () => {
    const talk = Array.from({ length: 24 }, (_, at): readonly Step[] => [
      { user: `Tell me how part ${at} of the shop works.` },
      { assistant: `Part ${at} keeps its ${'goods and '.repeat(200)}prices in one table.` },
    ]).flat();
    const sent = async (summaries: false | { readonly kind: 'extractive' }) => {
      const strategies = defaultStrategies({ subgoals: { minActions: 0 }, summaries });
      const tokenBudget = { triggerTokens: 12_000, targetTokens: 2_500 };
      const { engine } = testEngine({
        strategies,
        triggerOptions: { ...options.triggerOptions, tokenBudget },
      });
      return prepare(engine, [...talk, ...long.slice(1, 62)]);
    };
    const [both, records] = [await sent({ kind: 'extractive' }), await sent(false)];
    expect(recordsIn(both).length).toBeGreaterThan(5);
    // Records that stand in the context are not summarized once more.
    expect(recordsIn(both)).toEqual(recordsIn(records));
    const summaries = messagesOf(both.body).filter(({ content }) =>
      (content ?? '').startsWith('[Summary of'),
    );
    expect(summaries.length).toBe(1);
    expect(summaries[0]!.content).toContain('USER: Tell me how part 0 of the shop works.');
  });
});
