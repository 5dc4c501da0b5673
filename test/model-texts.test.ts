/**
 * Keeps every text that Leporello writes for a model in one golden file, so that a change of a word is seen in review: stubs, the recall
 * tool and its answers, marks of shortened results, summaries, prompts and trajectories. Update it with `npm test -- test/model-texts.test.ts -u`.
 */
import { itemsNote } from '../src/strategies/compress-items.ts';
import { clipStub } from '../src/strategies/clip-newest.ts';
import { shrunkNote } from '../src/strategies/shrink-results.ts';
import { expect, it } from 'vitest';
import * as markers from '../src/arrival/markers.ts';
import { sameLines, sameNumbered, sameText } from '../src/arrival/markers.ts';
import { shrink } from '../src/arrival/shrink.ts';
import { runSteps } from '../src/conversation/steps.ts';
import { hookNote } from '../src/cli/hook/hook.ts';
import type { PreparedRequest } from '../src/engine/types.ts';
import { extract } from '../src/outline/extract.ts';
import { createModelSummarizer, type SummaryPrompt } from '../src/outline/model.ts';
import type { SummaryRequest, SummaryStep } from '../src/outline/summarizer.ts';
import { answersTo, noteAnswer, notesToolFor, openBudget, recallToolFor } from '../src/recall/tool.ts';
import { resolveRecall } from '../src/recall/resolve.ts';
import { repairedSteps } from '../src/outline/lib/call-outcome.ts';
import { callWords, stepWords } from '../src/outline/step-line.ts';
import * as stubs from '../src/strategies/lib/stubs.ts';
import { repairText } from '../src/strategies/lib/failed-edits.ts';
import { spellRecord } from '../src/strategies/lib/summaries.ts';
import { answering, openScene, work } from './support/trajectory-scene.ts';

const memory = 'mem_0123456789abcdef';
const count = (text: string): number => Math.ceil(text.length / 4);
const original = Array.from({ length: 60 }, (_, at) => `line ${at + 1}: the value is ${at * 7}`).join('\n');

const steps: readonly SummaryStep[] = [
  { type: 'said', by: 'user', text: 'Fix the login. Never touch the database schema.' },
  { type: 'called', tool: 'read_file', input: '{"path":"src/login.ts"}', result: 'export {}', failed: false },
  {
    type: 'called',
    tool: 'run',
    input: '{"command":"npm test"}',
    result: 'Error: 2 tests failed',
    failed: true,
  },
  {
    type: 'said',
    by: 'assistant',
    text: 'I decided to compare the tokens in constant time. The tests pass now.',
  },
];
/** A conversation that continues after a summary of the client, with a question, announcements, and more calls than there is room for. */
const longSteps: readonly SummaryStep[] = [
  {
    type: 'said',
    by: 'user',
    text: 'This session is being continued from a previous conversation. The conversation is summarized below:\n1. The user said: "never touch the schema"\n2. I read the parser.',
  },
  { type: 'said', by: 'user', text: '/release-notes' },
  { type: 'said', by: 'user', text: 'Make it faster:\n1. the parser\n2. the store' },
  ...Array.from({ length: 12 }, (_, at): readonly SummaryStep[] => [
    {
      type: 'said',
      by: 'assistant',
      text: `Queue ${at} of table t${at} is full. Let me look at part ${at}.`,
    },
    {
      type: 'called',
      tool: 'read_file',
      input: JSON.stringify({ path: `src/part${at}.ts` }),
      result: 'export {}',
      failed: false,
    },
    {
      type: 'called',
      tool: 'run',
      input: '{"command":"npm test"}',
      result: `FAIL part${at}.test.ts:12`,
      failed: true,
    },
  ]).flat(),
  { type: 'said', by: 'assistant', text: 'Two ways:\n1. Scan it\n2. Cache it\nWhich one?' },
  { type: 'said', by: 'user', text: '2' },
];
const request: SummaryRequest = { steps, earlier: [], known: [], budget: { aim: 400, max: 800 }, count };

it('every text that a model may read is in the golden file', async () => {
  const sections: readonly (readonly [string, readonly string[]])[] = [
    ['The recall tool', toolTexts()],
    ['The tool for notes, and its answers', noteTexts()],
    ['Stubs, with the recall tool', stubTexts('read_memory')],
    ['Stubs, without it', stubTexts(undefined)],
    ['Answers of the recall tool', await recallTexts()],
    [
      'Lines added to a failed edit',
      [repairText({ path: 'src/a.ts', lines: ['  one();', '  two();'], from: 12, isEditedSince: true })],
    ],
    ['Marks in shortened results', markerTexts()],
    ['Results, shortened on arrival', arrivalTexts()],
    [
      'The last line of a result that a hook of an agent shortened',
      [hookNote({ characters: 9_000, memory, recall: 'leporello recall' })],
    ],
    [
      'Extractive summaries',
      [
        extract(request) ?? '',
        extract({ ...request, steps: longSteps, budget: { aim: 260, max: 400 } }) ?? '',
      ],
    ],
    ['Prompts for a summary', await promptTexts()],
    ['A trajectory', await trajectoryTexts()],
  ];
  const file = sections
    .map(([title, texts]) => [`## ${title}`, ...texts.map((text) => `~~~\n${text}\n~~~`)].join('\n\n'))
    .join('\n\n');
  await expect(`# Texts that a model may read\n\n${file}\n`).toMatchFileSnapshot('golden/model-texts.md');
});

function noteTexts(): readonly string[] {
  const given = ['{"text":"Friday"}', '{}', '{', JSON.stringify({ text: 'word '.repeat(2_000) })];
  return [JSON.stringify(notesToolFor('read_memory'), undefined, 2), ...given.map(noteAnswer)];
}

function toolTexts(): readonly string[] {
  const tools = [recallToolFor([]), recallToolFor(['read_memory'], 'id')];
  return tools.map((tool) => JSON.stringify(tool, undefined, 2));
}

function stubTexts(recallTool: string | undefined): readonly string[] {
  const folded = { text: original, call: undefined, memory, recallTool };
  const step = (tool: string, input: unknown, result: string): stubs.LogEntry => ({
    kind: 'step',
    step: stepWords({ tool, input: JSON.stringify(input), result, isError: undefined }),
  });
  const pages = [
    {
      memory,
      messages: 9,
      entries: [
        { kind: 'user', text: 'Fix the login.' },
        step('read_file', { path: '/app/src/login.ts' }, 'export {}'),
        step('read_file', { path: '/app/src/session.ts' }, 'export {}'),
        step('edit_file', { path: '/app/src/login.ts', old: 'a', new: 'b' }, 'Done.'),
        step('run', { command: 'npm test' }, 'FAIL login.test.ts:12\n1 failed'),
        step('an odd "name"', { id: 'a b' }, 'Fine.'),
        step(
          'run',
          { command: 'git commit -am fix' },
          "The user doesn't want to proceed. The user said: not yet",
        ),
        { kind: 'reply', text: 'I decided to compare in constant time.' },
      ],
    },
    {
      memory: 'mem_fedcba9876543210',
      messages: 3,
      entries: [
        { kind: 'user', text: 'Go on.' },
        step('read_file', { path: '/app/src/login.ts' }, 'export {}'),
      ],
    },
  ] satisfies readonly stubs.LogPage[];
  const log = {
    maxCharacters: 2_000,
    maxVerdicts: 2_000,
    maxWords: 2_000,
    known: stubs.knownNames({ logs: '', staying: [], dropped: [], all: [], repaired: new Map() }),
    recallTool,
  };
  const readRules = callWords({ tool: 'Read', input: '{"file_path":"AGENTS.md"}' });
  return [
    runSteps(stubs.resultStub(folded)),
    runSteps(stubs.resultStub({ ...folded, text: '' })),
    runSteps(stubs.resultStub({ ...folded, call: readRules, isRules: true })),
    stubs.argumentStub({ ...folded, path: '$.content' }),
    stubs.mediaStub({
      name: 'Image',
      size: '1280×800 pixels',
      from: 'the result of step 12, computer {"action":"screenshot"}',
      memory,
      recallTool,
    }),
    stubs.mediaStub({ name: 'PDF', size: 'about 340 kB', from: 'sent at the start', memory, recallTool }),
    runSteps(stubs.messagesLog({ ...log, pages })),
    runSteps(stubs.messagesLog({ ...log, pages: pages.slice(0, 1), maxCharacters: 0 })),
    clipStub({ characters: 900, fromLine: 10, toLine: 40, memory, recallTool }),
    clipStub({ characters: 900, fromLine: 10, toLine: 10, memory, recallTool }),
    shrunkNote({ characters: 9_000, memory, recallTool }),
    itemsNote({ items: 4, of: 9, memory, recallTool }),
    itemsNote({ items: 9, of: 9, memory, recallTool, isReworded: true }),
    spellRecord(
      { messages: 12, calls: 4, memories: [{ id: memory, messages: 12 }], body: 'The body of the summary.' },
      recallTool,
    ),
    spellRecord(
      {
        messages: 30,
        calls: 9,
        memories: [
          { id: memory, messages: 12 },
          { id: 'mem_fedcba9876543210', messages: 18 },
        ],
        body: 'The body of the summary.',
      },
      recallTool,
    ),
    spellRecord(
      { messages: 8, calls: 3, memories: [{ id: memory, messages: 8 }], body: 'The next part of it.' },
      recallTool,
      true,
    ),
  ];
}

async function recallTexts(): Promise<readonly string[]> {
  const message = JSON.stringify([{ role: 'user', content: 'Fix the login.' }]);
  const stored: Readonly<Record<string, string>> = {
    [memory]: JSON.stringify(original),
    mem_messages: message,
    mem_arguments: '{"path":"src/login.ts","content":"a"}',
  };
  const answer = (argumentsJson: string, options: { maxTokens?: number; all?: readonly string[] } = {}) =>
    resolveRecall({
      argumentsJson,
      lookup: (id) => stored[id],
      all: [memory],
      maxTokens: 120,
      countTokens: count,
      ...options,
    }).then((text) => `${argumentsJson}\n→ ${text}`);
  const budget = openBudget({
    prepared: { room: 300 } as PreparedRequest,
    recall: { maxRounds: 1, maxTokens: 1_000 },
  });
  const failing = {
    counter: undefined,
    original: () => Promise.reject(new Error('down')),
    searched: () => [],
  };
  const call = { id: 'c1', name: 'read_memory', argumentsJson: JSON.stringify({ id: memory }) };
  const [failed] = await answersTo(
    { prepared: failing },
    { recalls: [call], turn: new Uint8Array() },
    1,
    budget,
  );
  budget.spend('x'.repeat(200));
  return [
    ...(await Promise.all([
      answer(JSON.stringify({ id: memory })),
      answer(JSON.stringify({ id: memory, lines: '58-60' })),
      answer(JSON.stringify({ id: memory, lines: '7' })),
      answer(JSON.stringify({ id: memory, lines: '900' })),
      answer(JSON.stringify({ id: memory, lines: 'some' })),
      answer(JSON.stringify({ id: memory, query: 'value 133' })),
      answer(JSON.stringify({ id: memory, query: 'zebra' })),
      answer(JSON.stringify({ query: 'value 133' })),
      answer(JSON.stringify({ query: 'zebra' })),
      answer(JSON.stringify({ query: 'zebra' }), { all: [] }),
      answer('{"id":"mem_messages"}'),
      answer('{"id":"mem_arguments","path":"$.path"}'),
      answer('{"id":"mem_arguments","path":"$.nothing"}'),
      answer('{"id":"mem_arguments","path":"path["}'),
      answer('{"id":"mem_unknown"}'),
      answer('{}'),
      answer('not JSON'),
      answer(JSON.stringify({ id: memory }), { maxTokens: 20 }),
    ])),
    String(budget.forEach(1, 1)),
    String(budget.forEach(2, 1)),
    failed!.text,
  ];
}

function markerTexts(): readonly string[] {
  return [
    markers.fifthLineNumbered,
    markers.mainTextOfPage,
    markers.groupedByFile(undefined),
    markers.groupedByFile('/home/me/project'),
    markers.jsonTables,
    markers.nextLinesBegin(12, 'src/'),
    markers.andEnd('.ts'),
    markers.nextLineTimes(30),
    markers.leftOut(147, 'lines', ': 147 x INFO request # served'),
    markers.leftOut(9, 'rows'),
    sameNumbered({ from: 10, to: 40 }, 'the result of read_file'),
    sameLines(20, 'export function', 'the result of run'),
    sameText('the result of run'),
    markers.asWritten({ from: 44, to: 48 }, 'new_string'),
    markers.asWritten({ from: 9, to: 12 }, 'content', 'export function'),
  ];
}

function arrivalTexts(): readonly string[] {
  const time = (at: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, at)).toISOString();
  const rows = Array.from({ length: 12 }, (_, id) => ({ id, name: `user ${id}`, active: id % 2 === 0 }));
  const range = (length: number) => Array.from({ length }, (_, at) => at);
  const bytes = Uint8Array.from(range(3_000), (at) => (at * at * 31 + at * 7) % 251);
  const samples = [
    range(14)
      .map((at) => `${String(at + 1).padStart(6)}→const value${at} = ${at};`)
      .join('\n'),
    JSON.stringify(rows, undefined, 2),
    range(400)
      .map((at) => `${time(at)} INFO request ${at} served in ${at % 9} ms`)
      .join('\n'),
    range(20)
      .map((at) => `src/store/redis.ts:${at + 10}:  client.get(${at})`)
      .join('\n'),
    `downloading\r${range(60).join('%\r')}%\rfinished     \n`,
    `<!DOCTYPE html><html><head><title>Page</title><script>${'let a = 1;'.repeat(400)}</script></head><body><main><h1>Title</h1><p>${'The main text. '.repeat(30)}</p></main></body></html>`,
    `{"image":"data:image/png;base64,${Buffer.from(bytes).toString('base64')}","width":4}`,
  ];
  return samples.map((sample) => shrink(sample, { lossless: false })?.text ?? '(not shortened)');
}

async function promptTexts(): Promise<readonly string[]> {
  const prompts: SummaryPrompt[] = [];
  const ask = async (prompt: SummaryPrompt) => {
    prompts.push(prompt);
    return 'The login is fixed.';
  };
  const options = { ask, model: 'a-model', maxInputTokens: 8_000 };
  await createModelSummarizer(options).summarize(request);
  await createModelSummarizer(options).summarize({ ...request, earlier: ['- The login was broken.'] });
  await createModelSummarizer({ ...options, isPlain: true }).summarize({
    ...request,
    guidance: 'Keep prices.',
  });
  return prompts.map(({ system, text }) => `${system}\n\n---\n\n${text}`);
}

async function trajectoryTexts(): Promise<readonly string[]> {
  const prompts: SummaryRequest[] = [];
  const summarizer = answering('It went well.');
  const trajectory = await openScene({
    summarizer: {
      ...summarizer,
      summarize: (asked, signal) => {
        prompts.push(asked);
        return summarizer.summarize(asked, signal);
      },
    },
  });
  await work(trajectory, 'auth', 4);
  trajectory.startSubgoal('Look again');
  trajectory.addAction({ action: 'npm test', observation: '' });
  const record = await trajectory.recall('{"id":"s1"}');
  return [trajectory.context().text, ...prompts.map(({ guidance }) => guidance ?? ''), record];
}

it('a failed check and its repair stay with the edits between them where there is no room for other commands', () => {
  const step = (tool: string, input: object, result: string) =>
    ({
      kind: 'step',
      step: stepWords({ tool, input: JSON.stringify(input), result, isError: undefined }),
    }) as const;
  const run = (command: string, result: string) => step('Bash', { command }, result);
  const edit = (old: string) =>
    step('Edit', { file_path: '/app/a.ts', old_string: old, new_string: `${old}()` }, 'ok');
  const entries = [
    edit('open'),
    run('ls', 'a.ts'),
    edit('close'),
    run('npm test', 'Exit code 1\n2 failed'),
    edit('read'),
    run('npm test', '4 passed'),
    ...['one', 'two', 'three'].map((name) => run(`./bin/${name} --dry`, `${name} would write 9 files`)),
  ];
  const called = entries.map((entry) => entry.step);
  const known = stubs.knownNames({
    logs: '',
    staying: [],
    dropped: called,
    all: [],
    repaired: repairedSteps(called),
  });
  const pages = [{ memory: 'mem_1', messages: 18, entries }];
  const log = { pages, maxCharacters: 250, maxVerdicts: 250, maxWords: 250, known, recallTool: undefined };
  expect(runSteps(stubs.messagesLog(log)).split('\n').slice(1)).toEqual([
    'Edit /app/a.ts (open, close) ×2',
    'Bash npm test: failed, "2 failed"',
    'Edit a.ts (read)',
    'Bash npm test: "4 passed"',
    '(3 calls left out: Bash ×3)',
    'Bash ./bin/three --dry: "three would write 9 files"]',
  ]);
});
