import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { asAnthropic } from '../../test/support/as-anthropic.ts';
import { addToResults } from '../../test/support/add-to-results.ts';
import { chatBody, freshReading, readChat, type Step } from '../../test/support/chat-conversation.ts';
import { createSeenBodies } from '../codecs/earlier-bodies.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { commonLength } from '../store/encrypted-store.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import { withKeptTexts, withoutInView } from './in-view.ts';
import { keptMessages, protectionOf } from './protect.ts';
import type { Pins } from './types.ts';

describe('a pinned text', () => {
  it('protects the call whose arguments contain it, however they escape it', () => {
    const inputs = [
      '{"path":"caf\\u00e9","content":"one\\n\\"two\\""}',
      '{"path":"caf\u00e9"}',
      'run caf\u00e9',
      '{"path":"cafe"}',
    ];
    const conversation = readChat(
      chatBody(inputs.map((input) => ({ calls: [{ name: 'run', input, result: 'r' }] }))),
    );
    const heldBy = (...texts: readonly string[]) => {
      const protects = protectionOf(conversation, { pins: { tools: [], texts }, recallTool: undefined });
      return inputs.map((_, at) => protects.part(2 * at, 0));
    };
    expect(heldBy('caf\u00e9')).toEqual([true, true, true, false]);
    expect(heldBy('nothing', 'one\n"two"')).toEqual([true, false, false, false]);
  });
});

describe('the user message that no fold removes', () => {
  const reminder = '<system-reminder>Mind the list.</system-reminder>';
  const keptIn = (steps: readonly Step[], words: string) => {
    const conversation = anthropicMessages.read(
      addToResults(asAnthropic(chatBody(steps)), words),
      freshReading(),
    );
    return [...keptMessages(conversation)].toSorted((one, other) => one - other);
  };
  const done: Step = { calls: [{ name: 'run', result: 'Done.' }] };
  const asked: readonly Step[] = [
    { user: 'An old question.' },
    { assistant: 'An answer.' },
    { user: 'What is asked now.' },
    done,
    done,
  ];

  it('is the last question of the user, also when a client adds text to each result', () => {
    expect(keptIn(asked, reminder)).toEqual([2, 5, 6]);
    expect(keptIn(asked, 'Mind the list.')).toEqual([2, 5, 6]);
  });

  it("is the last message of the user, not one that a client wrote in the user's place", () => {
    const steps = [...asked.slice(0, 4), { assistant: 'Done.' }, { user: reminder }, done, done];
    expect(keptIn(steps, reminder)).toEqual([2, 9, 10]);
  });
});

describe('the newest tool batch', () => {
  const run = (bytes: number): Step => ({ calls: [{ name: 'run', result: 'x'.repeat(bytes) }] });
  const talk = (turns: number): readonly Step[] =>
    Array.from({ length: turns }, (_, at): readonly Step[] => [
      { user: `Question ${at}?` },
      { assistant: `Answer ${at}.` },
    ]).flat();
  const keptIn = (steps: readonly Step[]) =>
    [...keptMessages(readChat(chatBody(steps)))].toSorted((one, other) => one - other);

  it('stays with its call while its turn is running, however large it is', () => {
    expect(keptIn([{ user: 'Run it.' }, run(100), run(36_000)])).toEqual([0, 3, 4]);
  });

  it('stays after a message of the user only while it is small', () => {
    const last = { user: 'And now?' };
    expect(keptIn([{ user: 'Run it.' }, run(1_000), { assistant: 'Done.' }, last])).toEqual([1, 2, 4]);
    expect(keptIn([{ user: 'Run it.' }, run(36_000), { assistant: 'Done.' }, last])).toEqual([4]);
    expect(keptIn([{ user: 'Run it.' }, run(36_000), ...talk(8), last])).toEqual([19]);
  });
});

describe('content that stays in view', () => {
  const call = (name: string, input: object, result = 'ok'): Step => ({
    calls: [{ name, input: JSON.stringify(input), result }],
  });
  const noPins: Pins = { tools: [], texts: [] };
  /** Returns the numbers of the steps whose calls and results stay. */
  const keptIn = (steps: readonly Step[], pins: Pins = noPins, window?: number) => {
    const conversation = readChat(chatBody(steps));
    const protects = protectionOf(conversation, { pins, recallTool: 'read_memory', window });
    return steps.flatMap((_, at) => (protects.part(2 * at, 0) && protects.part(2 * at + 1, 0) ? [at] : []));
  };
  const plan = (status: string) => ({
    todos: [{ content: 'Mend the parser', status, activeForm: 'Mending' }],
  });
  const rules = (line: string) => `${line}\n`.repeat(40);

  it.each<readonly [string, object]>([
    ['TodoWrite', plan('pending')],
    ['update_plan', { explanation: 'next', plan: [{ step: 'Mend the parser', status: 'in_progress' }] }],
    ['write_todos', { todos: [{ description: 'Mend the parser', status: 'pending' }] }],
    ['manage_todo_list', { operation: 'write', todoList: [{ id: 1, title: 'Mend', status: 'not-started' }] }],
    ['update_todo_list', { todos: '[x] Read\n[-] Mend the parser' }],
    ['todo__write', { content: '- [ ] Mend the parser' }],
  ])('is the newest plan of %s, and no older one', (name, input) => {
    expect(keptIn([call(name, input), call(name, input), call('run', { command: 'ls' })])).toEqual([1]);
    expect(keptIn([call(name, input)], { ...noPins, plan: false })).toEqual([]);
  });

  it('is a plan with the later calls that change some of its items', () => {
    const change = { merge: true, todos: [{ id: '1', content: 'Mend the parser', status: 'completed' }] };
    const steps = [
      call('todo_write', plan('pending')),
      call('todo_write', plan('pending')),
      call('todo_write', change),
    ];
    expect(keptIn(steps)).toEqual([1, 2]);
  });

  it('is each open task, with its newest status', () => {
    const create = (id: number) => call('TaskCreate', { subject: `Task ${id}` }, `Task #${id} created`);
    const update = (taskId: string, status: string) => call('TaskUpdate', { taskId, status });
    const steps = [
      create(1),
      create(2),
      update('1', 'in_progress'),
      update('1', 'completed'),
      update('2', 'pending'),
      update('2', 'in_progress'),
    ];
    expect(keptIn(steps)).toEqual([1, 5]);
  });

  it('is no list of a tool for anything else', () => {
    expect(keptIn([call('list_issues', { filters: [{ status: 'open' }] })])).toEqual([]);
    expect(keptIn([call('create_issue', { subject: 'A fault', status: 'open', id: 7 })])).toEqual([]);
  });

  it.each<readonly [string, object]>([
    ['Read', { file_path: '/home/me/CLAUDE.md' }],
    ['read_file', { path: 'pkg/AGENTS.md' }],
    ['read_file', { absolute_path: '/home/me/GEMINI.md' }],
    ['view', { path: '.cursor/rules/style.mdc' }],
    ['Read', { file_path: '/home/me/.claude/skills/mend/SKILL.md' }],
    ['shell', { command: ['bash', '-lc', 'cd /home/me && cat AGENTS.md'] }],
    ['Bash', { command: "sed -n '1,200p' .github/copilot-instructions.md" }],
    ['skill', { name: 'mend' }],
  ])('is what %s reads of instructions, in its newest version', (name, input) => {
    const read = call(name, input, rules('Never push.'));
    expect(keptIn([read, call('run', {}), read])).toEqual([2]);
    expect(keptIn([read, call(name, input, 'The file has not changed.')])).toEqual([0, 1]);
    expect(keptIn([read], { ...noPins, instructions: false })).toEqual([]);
  });

  it('is no other file, and nothing that went through a pipe', () => {
    const others: readonly (readonly [string, object])[] = [
      ['Read', { file_path: '/home/me/README.md' }],
      ['Bash', { command: 'cat AGENTS.md | head -3' }],
      ['Bash', { command: 'git diff AGENTS.md' }],
      ['Edit', { file_path: '/home/me/AGENTS.md', old_string: 'a', new_string: 'b' }],
    ];
    expect(keptIn(others.map(([name, input]) => call(name, input, rules('Line'))))).toEqual([]);
  });

  it('is bounded, and in a small window by an eighth of it', () => {
    const read = (path: string, bytes: number) => call('Read', { path }, 'r'.repeat(bytes));
    expect(keptIn([read('a/AGENTS.md', 20_000), read('b/AGENTS.md', 20_000)])).toEqual([1]);
    expect(keptIn([read('AGENTS.md', 40_000)])).toEqual([]);
    expect(keptIn([read('AGENTS.md', 5_000)], noPins, 8_000)).toEqual([]);
    expect(
      keptIn([call('TodoWrite', { todos: [{ content: 'x '.repeat(9_000), status: 'pending' }] })]),
    ).toEqual([]);
  });

  it('is a text that the user or the model marked, as a whole', () => {
    const marked = 'Mind: <leporello:keep>port 8787</leporello:keep>.';
    const conversation = readChat(chatBody([{ user: marked }, { user: 'No.' }, { assistant: marked }]));
    const protects = protectionOf(conversation, { pins: noPins, recallTool: undefined });
    expect([0, 1, 2].map((at) => protects.part(at, 0))).toEqual([true, false, true]);
    const open = withoutInView(protects);
    expect([0, 1, 2].map((at) => open.part(at, 0))).toEqual([false, false, false]);
  });

  it('is marked in one branch of a conversation only', () => {
    const marked = '<leporello:keep>port 8787</leporello:keep>';
    const seen = createSeenBodies({ commonLength });
    const reading = { ...freshReading(), seen };
    const keptOf = (...texts: readonly string[]) => {
      const messages = ['Go. '.repeat(5_000), ...texts].map((content) => ({ role: 'user', content }));
      const body = new TextEncoder().encode(JSON.stringify({ model: 'gpt-4o', messages }));
      const conversation = openaiChat.read(body, reading);
      const protects = protectionOf(conversation, { pins: noPins, recallTool: undefined });
      return messages.flatMap((_, at) => (protects.part(at, 0) ? [at] : []));
    };
    expect(keptOf('No.', marked, 'No.', 'Last.')).toEqual([2]);
    expect(keptOf('No.', 'No.', marked, 'Last.')).toEqual([3]);
    expect(keptOf('No.', marked, 'No.', marked, 'Last.')).toEqual([2, 4]);
    expect(keptOf('No.')).toEqual([]);
  });

  it('is a marked text of a result, which the stub repeats', () => {
    const mark = '<leporello:keep>port 8787</leporello:keep>';
    const conversation = readChat(chatBody([call('run', {}, `${rules('Noise')}${mark}${rules('Noise')}`)]));
    const protects = protectionOf(conversation, { pins: noPins, recallTool: undefined });
    expect([protects.part(1, 0), protects.keptTexts?.(1, 0)]).toEqual([false, [mark]]);
    const edit = {
      kind: 'replace-text',
      at: { message: 1, part: 0, text: 0 },
      stub: '[Folded]',
      memory: 'm',
    } as const;
    expect(withKeptTexts(protects, edit)).toEqual({ ...edit, stub: `[Folded]\n${mark}` });
    expect(withKeptTexts(withoutInView(protects), edit)).toEqual(edit);
  });

  it('is at most so much of marked results, however many marks a page has', () => {
    const marks = '<leporello:keep>'.repeat(50_000);
    const page = `${`<leporello:keep>${'x'.repeat(900)}</leporello:keep>${rules('Noise')}`.repeat(9)}${marks}`;
    const conversation = readChat(chatBody([call('run', {}, page), call('run', {}, page.slice(0, 6_000))]));
    const protects = protectionOf(conversation, { pins: noPins, recallTool: undefined });
    const kept = [1, 3].map((at) => [protects.part(at, 0), protects.keptTexts?.(at, 0).join('').length]);
    expect(kept).toEqual([
      [false, 4 * 933],
      [false, 0],
    ]);
  });
});

describe('a request that would not fit with the rules in view', () => {
  const sentIn = async (window: number) => {
    const { engine } = testEngine({ window, triggerOptions: { tokenBudget: false } });
    const run: Step = { calls: [{ name: 'run', result: 'word '.repeat(900) }] };
    const steps: readonly Step[] = [
      { system: 'word '.repeat(5_600) },
      { user: 'Go.' },
      { calls: [{ name: 'Read', input: '{"path":"AGENTS.md"}', result: 'rule '.repeat(700) }] },
      run,
      run,
      run,
      { calls: [{ name: 'run', result: 'word '.repeat(20) }] },
    ];
    const body = chatBody(steps, { tools: ['Read', 'run'], model: 'gpt-4o' });
    const prepared = await engine.prepare({ codec: openaiChat, body, tenant: 't' });
    const text = new TextDecoder().decode(prepared.body);
    const stub =
      /\[Folded instructions[^:]*: \d+ characters\. The request did not fit with them, but they still hold\./.exec(
        text,
      );
    return {
      fits: (prepared.report.unfit ?? false) === false,
      isWhole: text.includes('rule '.repeat(700)),
      stub: stub?.[0],
    };
  };

  it('has a stub instead, which says that they still hold', async () => {
    expect(await sentIn(9_000)).toEqual({ fits: true, isWhole: true, stub: undefined });
    expect(await sentIn(7_900)).toEqual({
      fits: true,
      isWhole: false,
      stub: '[Folded instructions of AGENTS.md: 3500 characters. The request did not fit with them, but they still hold.',
    });
  });
});
