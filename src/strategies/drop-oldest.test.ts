import { describe, expect, it } from 'vitest';
import type { Conversation } from '../conversation/conversation.ts';
import { type Edit, originalsOf, withoutTakenIn } from '../conversation/edit.ts';
import { chatBody, chatMessages, readChat, type Step } from '../../test/support/chat-conversation.ts';
import { foldView, strategySuite, written } from '../../test/support/strategy-suite.ts';
import { dropOldest } from './drop-messages.ts';
import type { FoldView } from './strategy.ts';

strategySuite(dropOldest());

const idOf = () => 'mem_0123456789abcdef';
const steps: readonly Step[] = [
  { system: 'Be brief.' },
  { user: 'First' },
  {
    calls: [
      { name: 'run', result: 'a' },
      { name: 'read_file', result: 'b' },
    ],
  },
  { calls: [{ name: 'run', result: 'c' }] },
  { user: 'Second' },
];
const log = (messages: number, ...lines: readonly string[]) => ({
  role: 'user',
  content: `[Folded ${messages} earlier messages, in order; read_memory {"id":"mem_0123456789abcdef"} shows them:\n${lines.join('\n')}]`,
});

function messagesAfter(amount: number) {
  const conversation = readChat(chatBody(steps));
  const view = foldView(conversation, {
    idOf,
    excess: { unit: 'messages', amount },
    protects: {
      message: (index) => conversation.messages.length - 1 === index,
      part: () => false,
      recalled: () => false,
    },
  });
  const after = written(conversation, dropOldest().propose(view));
  return (JSON.parse(new TextDecoder().decode(after.body)) as { messages: unknown }).messages;
}

const onlyLast = (conversation: Conversation): FoldView['protects'] => ({
  message: (index) => conversation.messages.length - 1 === index,
  part: () => false,
  recalled: () => false,
});

describe('drop-oldest', () => {
  it('drops the oldest messages, calls with all their results, and leaves a log', () => {
    const kept = chatMessages(steps);
    expect(messagesAfter(2)).toEqual([
      kept[0],
      log(4, 'USER: First', 'run: "a"', 'read_file: "b"'),
      ...kept.slice(5),
    ]);
  });

  it('drops no more than requested', () => {
    expect((messagesAfter(1) as unknown[]).length).toBe(5);
  });

  it('never drops system messages or protected content', () => {
    const kept = chatMessages(steps);
    expect(messagesAfter(100)).toEqual([
      kept[0],
      log(6, 'USER: First', '(3 calls left out: run ×2 · read_file)'),
      kept.at(-1),
    ]);
  });

  it('treats adjacent assistant messages as one turn', () => {
    const turn: readonly Step[] = [
      { user: 'First' },
      { assistant: 'I think.' },
      { calls: [{ name: 'run', result: 'a' }] },
      { user: 'Second' },
      { user: 'Third' },
    ];
    const conversation = readChat(chatBody(turn));
    const dropped = (amount: number) =>
      dropOldest()
        .propose(foldView(conversation, { idOf, excess: { unit: 'messages', amount } }))
        .flatMap((edit) => (edit.kind === 'drop-message' ? [edit.message] : []));
    expect([dropped(1), dropped(3)]).toEqual([
      [0, 1, 2, 3],
      [0, 1, 2, 3],
    ]);
  });

  const step = (name: string, input: unknown, result: string): Step => ({
    calls: [{ name, input: JSON.stringify(input), result: result.padEnd(4_000) }],
  });
  const everything = { unit: 'tokens', amount: Number.POSITIVE_INFINITY } as const;
  const logsIn = (edits: readonly Edit[]) =>
    edits.flatMap((edit) =>
      edit.kind === 'insert-message' ? [edit.text.replaceAll(/mem_[\w-]+/g, 'mem_…')] : [],
    );

  it('tells in order what was said, done and refused, and names a path in full once', () => {
    const conversation = readChat(
      chatBody([
        { user: "Fix the login.\nDon't touch the schema." },
        step('Read', { file_path: '/app/src/login.ts' }, '1→export {}'),
        step('Edit', { file_path: '/app/src/login.ts', old_string: 'a', new_string: 'b' }, 'Updated.'),
        step('Bash', { command: 'npm test', description: 'Run tests' }, 'FAIL login.test.ts:12\n2 failed'),
        step(
          'Bash',
          { command: 'git commit' },
          "The user doesn't want to proceed. The user said: don't check this in",
        ),
        { assistant: `It is the cache. ${'More of it. '.repeat(300)}` },
        { user: `<system-reminder>${'Be brief. '.repeat(50)}</system-reminder>` },
        { user: 'Go' },
      ]),
    );
    const view = foldView(conversation, { excess: everything, protects: onlyLast(conversation) });
    expect(logsIn(dropOldest().propose(view))).toEqual([
      '[Folded 11 earlier messages, in order; read_memory with the id ahead of a line or of one above it shows them:\n' +
        "mem_…: USER: Fix the login. Don't touch the schema.\n" +
        'Read /app/src/login.ts · Edit login.ts (a → b)\n' +
        'Bash npm test (Run tests): 2 failed, login.test.ts:12\n' +
        "Bash git commit → REFUSED by the user: don't check this in\n" +
        `mem_…: YOU: It is the cache.${' More of it.'.repeat(25)}]`,
    ]);
  });

  it('names what calls that stay name in full only by its name, and the newest plan as a whole', () => {
    const plan = (first: string, second: string) =>
      step(
        'TodoWrite',
        {
          todos: [
            { content: 'Fix the login', status: first, activeForm: 'Fixing the login' },
            { content: 'Run the tests', status: second, activeForm: 'Running the tests' },
          ],
        },
        'Saved.',
      );
    const conversation = readChat(
      chatBody([
        { user: 'Fix the login.' },
        plan('in_progress', 'pending'),
        step('Read', { file_path: '/app/src/login.ts', offset: 20, limit: 30 }, '20→export {}'),
        step('Read', { file_path: '/app/src/session.ts' }, '1→export {}'),
        plan('completed', 'in_progress'),
        step('Bash', { command: 'npm test', description: 'Run tests', timeout: 120_000 }, '12 passed'),
        step('Bash', { command: 'npm test', description: 'Run tests', timeout: 120_000 }, '13 passed'),
        step('Edit', { file_path: '/app/src/login.ts', old_string: 'a', new_string: 'b' }, 'Updated.'),
      ]),
    );
    const view = foldView(conversation, {
      excess: everything,
      protects: { ...onlyLast(conversation), message: (index) => index >= 13 },
    });
    expect(logsIn(dropOldest().propose(view))).toEqual([
      '[Folded 13 earlier messages, in order; read_memory with the id ahead of a line or of one above it shows them:\n' +
        'mem_…: USER: Fix the login.\n' +
        'Read ×2: login.ts 20-49, /app/src/session.ts\n' +
        'TodoWrite completed: "Fix the login" (Fixing the login); in_progress: "Run the tests" (Running the tests)\n' +
        'mem_…: Bash npm test (Run tests, timeout 120000): "12 passed"\n' +
        'Bash npm test: "13 passed"]',
    ]);
  });

  it('tells items of a plan that a tool keeps one by one only as they stand at the end', () => {
    const task = (subject: string, id: number) =>
      step('TaskCreate', { subject, description: 'Long.' }, `Task #${id} created successfully: ${subject}`);
    const update = (taskId: string, status: string) =>
      step('TaskUpdate', { taskId, status }, `Updated task #${taskId} status`);
    const conversation = readChat(
      chatBody([
        { user: 'Fix the login.' },
        task('Fix the session', 1),
        task('Run the tests', 2),
        update('1', 'in_progress'),
        step('Edit', { file_path: '/app/session.ts', old_string: 'a', new_string: 'b' }, 'Updated.'),
        update('1', 'completed'),
        step('Bash', { command: 'npm test' }, '13 passed'),
        { user: 'Go' },
      ]),
    );
    const view = foldView(conversation, { excess: everything, protects: onlyLast(conversation) });
    expect(logsIn(dropOldest().propose(view))).toEqual([
      '[Folded 13 earlier messages, in order; read_memory with the id ahead of a line or of one above it shows them:\n' +
        'mem_…: USER: Fix the login.\n' +
        'Edit /app/session.ts (a → b)\n' +
        'mem_…: Tasks completed: "#1 Fix the session"; pending: "#2 Run the tests"\n' +
        'Bash npm test: "13 passed"]',
    ]);
  });

  it('names a file by as much of its path as tells it from all files of the conversation', () => {
    const edit = (path: string) =>
      step('Edit', { file_path: path, old_string: 'a', new_string: 'b' }, 'Updated.');
    const conversation = readChat(
      chatBody([
        { user: 'Fix the login.' },
        step('Grep', { pattern: 'a', path: 'src/store/session.ts' }, 'src/store/session.ts:3:a'),
        edit('/app/src/store/session.ts'),
        step('Bash', { command: 'npm test' }, '12 passed'),
        edit('/app/src/store/session.ts'),
        step('Bash', { command: 'npm run lint' }, '0 problems'),
        { user: 'Go' },
        step('Read', { file_path: '/app/src/page/session.ts' }, '1→a'),
      ]),
    );
    const view = foldView(conversation, {
      excess: everything,
      protects: { ...onlyLast(conversation), message: (index) => index >= 11 },
    });
    const [text = ''] = logsIn(dropOldest().propose(view));
    expect(text).toContain('Edit store/session.ts (a → b)\n');
    expect(text).not.toMatch(/Edit session\.ts/);
  });

  it('keeps no failure whose repair is left out', () => {
    const fails = (at: number) =>
      step('Bash', { command: `npm run check${at} 2>&1 | tail -20` }, `FAIL part${at}.test.ts:12\n2 failed`);
    const jobs = Array.from({ length: 12 }, (_, at): readonly Step[] => [
      fails(at),
      step('Edit', { file_path: `/app/part${at}.ts`, old_string: 'a', new_string: 'b' }, 'Error: not found'),
      step('Edit', { file_path: `/app/part${at}.ts`, old_string: 'c', new_string: 'b' }, 'Updated.'),
      step('Bash', { command: `npm run check${at}` }, `${'More of it. '.repeat(200)}\n14 passed`),
    ]).flat();
    const conversation = readChat(chatBody([{ user: 'Fix the login.' }, ...jobs, fails(99), { user: 'Go' }]));
    for (const amount of [2_000, 4_000, 6_000, 9_000, 12_000]) {
      const view = foldView(conversation, {
        excess: { unit: 'tokens', amount },
        protects: onlyLast(conversation),
      });
      const edits = dropOldest().propose(view);
      const [text = ''] = logsIn(edits);
      const dropped = edits.flatMap((edit) => (edit.kind === 'drop-message' ? [edit.message] : []));
      const last = Math.max(...dropped);
      for (let at = 0; 9 + 8 * at < last; at++) {
        if (text.includes(`part${at}.test.ts:12`)) expect(text).toContain(`npm run check${at}: "14 passed"`);
        if (text.includes(`Edit /app/part${at}.ts: failed`)) expect(text).toContain(`part${at}.ts: ok`);
      }
    }
    const all = foldView(conversation, { excess: everything, protects: onlyLast(conversation) });
    expect(logsIn(dropOldest().propose(all))[0]).toContain('part99.test.ts:12');
  });

  it('leaves one log for each gap, and takes in the log of an earlier fold beside it', () => {
    const conversation = readChat(
      chatBody([
        { user: 'First' },
        step('Read', { file_path: '/app/a.ts' }, '1→a'),
        { user: 'Stays' },
        step('Read', { file_path: '/app/b.ts' }, '1→b'),
        step('Read', { file_path: '/app/c.ts' }, '1→c'),
        { user: 'Last' },
      ]),
    );
    const protects = (kept: readonly number[]) => ({
      ...onlyLast(conversation),
      message: (index: number) => kept.includes(index),
    });
    const first = dropOldest().propose(
      foldView(conversation, { excess: everything, protects: protects([3, 6, 7, 8]) }),
    );
    const second = dropOldest().propose(
      foldView(conversation, { edits: first, excess: everything, protects: protects([3, 8]) }),
    );
    const all = withoutTakenIn([...first, ...second]);
    expect([logsIn(first), logsIn(all)]).toEqual([
      [
        '[Folded 3 earlier messages, in order; read_memory {"id":"mem_…"} shows them:\nUSER: First\nRead /app/a.ts]',
        '[Folded 2 earlier messages, in order; read_memory {"id":"mem_…"} shows them:\nRead /app/b.ts]',
      ],
      [
        '[Folded 3 earlier messages, in order; read_memory {"id":"mem_…"} shows them:\nUSER: First\nRead /app/a.ts]',
        '[Folded 4 earlier messages, in order; read_memory with the id ahead of a line or of one above it shows them:\n' +
          'mem_…: Read /app/b.ts\nmem_…: Read /app/c.ts]',
      ],
    ]);
    const dropped = all.flatMap((edit) => (edit.kind === 'drop-message' ? [edit.message] : []));
    expect(dropped).toEqual([0, 1, 2, 4, 5, 6, 7]);
  });

  it('keeps the words of the user when there is no space for anything else', () => {
    const demands = Array.from({ length: 30 }, (_, at): readonly Step[] => [
      { user: `Demand ${at}` },
      step('Bash', { command: `run job ${at}` }, 'done'),
    ]).flat();
    const conversation = readChat(chatBody([...demands, { user: 'Last' }]));
    const { message } = foldView(conversation).measure;
    const calls = conversation.messages.slice(0, -1).filter(({ role }) => role !== 'user');
    const amount = calls.reduce((sum, { index }) => sum + message(index), -35);
    const view = foldView(conversation, {
      excess: { unit: 'tokens', amount },
      isForced: true,
      protects: onlyLast(conversation),
    });
    const [text = ''] = logsIn(dropOldest().propose(view));
    expect(text.match(/Demand \d+/g)).toEqual(Array.from({ length: 30 }, (_, at) => `Demand ${at}`));
    expect(text).not.toContain('run job 7');
  });

  it('has the question of a short answer that stays, and tells a summary by the client with its headings', () => {
    const conversation = readChat(
      chatBody([
        {
          user:
            'This session is being continued from a previous conversation that ran out of context.\nSummary:\n' +
            '1. Primary Request:\n   Fix the login\n2. Files:\n   - login.ts\n3. Messages:\n   - "never touch the schema"\n' +
            '4. Pending Tasks:\n   - the tests\n5. Current Work:\n   login.ts:12\n6. Next Step:\n   Run the tests.',
        },
        step('Bash', { command: 'npm test' }, `12 passed ${'in all of it '.repeat(200)}`),
        { assistant: `Done!\n1. Commit it\n2. Push it\nWhat next?\n${'More of it. '.repeat(300)}` },
        { user: '1' },
      ]),
    );
    const view = foldView(conversation, { excess: everything, protects: onlyLast(conversation) });
    const [text = ''] = logsIn(dropOldest().propose(view));
    expect(text).toContain('YOU: 1. Commit it / What next?');
    expect(text).toContain(
      'Primary Request: Fix the login\nFiles: login.ts\nMessages: "never touch the schema"\n(then) Pending Tasks: the tests\n' +
        '(then) Current Work: login.ts:12)',
    );
  });

  it('has each message that a client lists in its summary, and a command whose text the client sent', () => {
    const messages = ['one', 'two', 'three'].map((name) => `"${name} ${'of many words '.repeat(26)}"`);
    const conversation = readChat(
      chatBody([
        {
          user: `This session is being continued from a previous conversation.\nSummary:\n1. Primary Request:\n   Fix the login\n2. All user messages:\n${messages.map((text) => `   - ${text}\n`).join('')}3. Pending Tasks:\n   - the tests\n4. Current Work:\n   login.ts:12\n5. Next Step:\n   Run them.`,
        },
        step('Bash', { command: 'npm test' }, `12 passed ${'in all of it '.repeat(2_000)}`),
        { assistant: 'All is done.' },
        { user: '<command-message>pr</command-message>\n<command-name>/pr</command-name>' },
        { user: `Write the title of a pull request for what was done. ${'Say why. '.repeat(200)}` },
        { assistant: 'The title is "Fix the login".' },
        { user: 'Thanks.' },
      ]),
    );
    const view = foldView(conversation, { excess: everything, protects: onlyLast(conversation) });
    expect(logsIn(dropOldest().propose(view))).toEqual([
      `[Folded 7 earlier messages, in order; read_memory with the id ahead of a line or of one above it shows them:
mem_…: (summary of an earlier part, by the client, shortened:
Primary Request: Fix the login
All user messages: ${messages.join('; ')}
(then) Pending Tasks: the tests
(then) Current Work: login.ts:12)
mem_…: Bash npm test: "12 passed in all of it in all of it in all of it in all of it in all …"
mem_…: YOU: All is done.
USER: /pr
(its text begins: "Write the title of a pull request for what was done.")
YOU: The title is "Fix the login".]`,
    ]);
  });

  it('begins a reply with its words, not its code, and ends it with the question that the user answered', () => {
    const more = 'More of it. '.repeat(300);
    const conversation = readChat(
      chatBody([
        { user: 'Go' },
        step('Bash', { command: 'npm test' }, `12 passed ${'in all of it '.repeat(200)}`),
        {
          assistant: `Good question:\n\`\`\`\nif err := check(); err != nil {\n\`\`\`\nIt exits. ${more}\n\nShall I remove it?`,
        },
        { user: 'yes, once you are sure that the filter works in every case that we have seen' },
        { assistant: 'Removed.' },
        { user: 'thanks' },
      ]),
    );
    const view = foldView(conversation, { excess: everything, protects: onlyLast(conversation) });
    expect(logsIn(dropOldest().propose(view)).join('\n')).toMatch(
      /YOU: It exits\. (?:More of it\. )*… Shall I remove it\?\nUSER: yes, once you are sure/,
    );
  });

  it('has the question of a short answer that begins another page', () => {
    const conversation = readChat(
      chatBody([
        { user: 'Go' },
        step('Bash', { command: 'npm test' }, `${'in all of it '.repeat(4_000)}\n12 passed`),
        { assistant: `${'More of it. '.repeat(1_800)}\n1. Commit it\n2. Push it\nWhat next?` },
        { user: '2' },
        { user: 'thanks' },
      ]),
    );
    const view = foldView(conversation, { excess: everything, protects: onlyLast(conversation) });
    expect(logsIn(dropOldest().propose(view)).join('\n')).toMatch(
      / 2\. Push it \/ What next\?\nmem_…: USER: 2/,
    );
  });

  it('keeps the exact messages under the id', () => {
    const conversation = readChat(chatBody(steps));
    const edits = dropOldest().propose(
      foldView(conversation, { idOf, excess: { unit: 'messages', amount: 100 } }),
    );
    const original = originalsOf(conversation, edits).get('mem_0123456789abcdef')!;
    expect(new TextDecoder().decode(original)).toBe(JSON.stringify(chatMessages(steps).slice(1)));
  });
});
