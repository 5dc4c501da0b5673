import { describe, expect, it } from 'vitest';
import { extract } from './extract.ts';
import type { SummaryRequest, SummaryStep } from './summarizer.ts';
import { call, model, user } from '../../test/support/summary-steps.ts';

function summaryOf(
  steps: readonly SummaryStep[],
  max = 3_000,
  earlier: readonly string[] = [],
  cuts: SummaryRequest['cuts'] = [],
): string {
  const request: SummaryRequest = {
    steps,
    earlier,
    cuts,
    known: [],
    budget: { aim: max, max },
    count: (text) => Math.ceil(text.length / 4),
  };
  return extract(request) ?? '';
}

it('tells the folder of edited files once, those of commands and patches too, and reads it again', () => {
  const folder = '/home/me/app/src';
  const steps = [
    call('edit_file', { path: `${folder}/parser/scan.ts`, old: 'a', new: 'b' }, 'ok'),
    call('edit_file', { path: `${folder}/store.ts`, old: 'a', new: 'b' }, 'ok'),
    call('run', { command: "cd /home/me/app && sed -i 's/a/b/' src/store.ts && npm test" }, 'ok'),
    call(
      'apply_patch',
      { input: `*** Begin Patch\n*** Add File: ${folder}/new.ts\n+1\n*** End Patch` },
      'ok',
    ),
  ];
  const once = summaryOf(steps);
  expect(once).toMatch(/\n- edited in \/home\/me\/app\/src\/: new\.ts, store\.ts ×2, parser\/scan\.ts$/);
  const again = summaryOf(steps.slice(0, 1), 3_000, [once]);
  expect(again).toMatch(/\n- edited in \/home\/me\/app\/src\/: parser\/scan\.ts ×2, new\.ts, store\.ts ×2$/);
  expect(summaryOf([...steps, call('write', { path: 'notes.md', content: 'x' }, 'ok')])).toMatch(
    /\n- edited: notes\.md, \/home\/me\/app\/src\/new\.ts, /,
  );
});

it('tells what came of each demand, and each refusal, before details of one of them', () => {
  const refusal =
    "The user doesn't want to proceed with this tool use. The tool use was rejected. STOP what you are doing.";
  const turns = Array.from({ length: 6 }, (_, at) => [
    user(`Mend part ${at}.`),
    call('run', { command: `make part-${at}` }, `part ${at} is built`),
    model(
      `Part ${at} is mended. These things changed:\n\n${[0, 1, 2, 3, 4, 5, 6, 7].map((item) => `${item + 1}. **Thing ${item} of part ${at}** - the module \`m${at}_${item}.ts\` reads its input only once now`).join('\n')}`,
    ),
  ]).flat();
  const steps = [
    ...turns.slice(0, 3),
    call('run', { command: 'git reset --hard' }, refusal),
    ...turns.slice(3),
    user('Thanks.'),
  ];
  expect(
    summaryOf(steps, 330),
  ).toBe(`In order (what USER demanded holds unless taken back later; YOU is the model):
- USER: Mend part 0.
- run: make part-0 (last: "part 0 is built")
- run git reset --hard → REFUSED by the user
- USER: Mend part 1.
- run: make part-1 (last: "part 1 is built")
- YOU: Part 1 is mended. These things changed: 1. Thing 0 of part 1; 2. Thing 1 of part 1; 3. Thing 2 of part 1 - the module \`m1_2.ts\` reads its … (8 items)
- USER: Mend part 2.
- run: make part-2 (last: "part 2 is built")
- YOU: Part 2 is mended. These things changed: 1. Thing 0 of part 2; 2. Thing 1 of part 2; 3. Thing 2 of part 2 - the module \`m2_2.ts\` reads its … (8 items)
- USER: Mend part 3.
- run: make part-3 (last: "part 3 is built")
- YOU: Part 3 is mended. These things changed: 1. Thing 0 of part 3; 2. Thing 1 of part 3; 3. Thing 2 of part 3 - the module \`m3_2.ts\` reads its … (8 items)
- USER: Mend part 4.
- run: make part-4 (last: "part 4 is built")
- YOU: Part 4 is mended. These things changed: 1. Thing 0 of part 4; 2. Thing 1 of part 4; 3. Thing 2 of part 4 - the module \`m4_2.ts\` reads its … (8 items)
- USER: Mend part 5.
- run: make part-5 (last: "part 5 is built")
- YOU: Part 5 is mended. These things changed: 1. Thing 0 of part 5; 2. Thing 1 of part 5; 3. Thing 2 of part 5 - the module \`m5_2.ts\` reads its … (8 items)
- USER: Thanks.`);
});

it('divides calls that a line joins where the model said something between them, so that no word of it seems open', () => {
  const edit = (old: string) => call('edit_file', { path: 'src/a.ts', old, new: `${old}2` }, 'ok');
  const steps = [
    user('Rename them.'),
    edit('one'),
    model('The callers in `b.ts` break now, 12 of them.'),
    edit('two'),
    model('The test of `c.ts` needs the name, too, by line 40.'),
    edit('three'),
    call('run', { command: 'npm test' }, 'Tests: 12 passed'),
  ];
  expect(summaryOf(steps)).toBe(
    `In order (what USER demanded holds unless taken back later; YOU is the model):
- USER: Rename them.
- edit_file a.ts: ok
- YOU: The callers in \`b.ts\` break now, 12 of them.
- edit_file a.ts: ok
- YOU: The test of \`c.ts\` needs the name, too, by line 40.
- edit_file a.ts: ok
- run npm test: "Tests: 12 passed"
Files touched until then:
- edited: src/a.ts ×3`,
  );
});

it('tells an item once, in the place where the list in short has its beginning', () => {
  const reply = [
    'The store is faster now.',
    'These things changed:',
    '1. **Inverted setting** - `cache.off` replaces `cache.on`, so that 12 programs need no change',
    '2. The loop at lines 396 calls `CondenseSession(repo, state)` for each of the sessions',
    ...[3, 4, 5, 6].map((at) => `${at}. **Thing ${at}** - a note on how this one is done in the ${at} files`),
  ].join('\n');
  const steps = [user('Speed it up.'), model(reply), user('Thanks for all of that.')];
  expect(summaryOf([...steps, call('run', { command: 'set cache.off 12' }, 'ok')], 150)).toMatch(
    /\n- YOU: The store is faster now\. These things changed: 1\. Inverted setting - `cache\.off` replaces `cache\.on`, so that 12 programs need no change; 2\. The loop at lines 396 calls `CondenseSession\(repo, state\)` for each of the sessions; 3\. Thing 3 - a note on how this one is … \(6 items\) … 6\. Thing 6 - a note on how this one is done in the 6 files\n/,
  );
});

it('keeps the beginning of a long line of the user, which is no code', () => {
  const long = [
    'If the second session makes the same files, we must not go on.',
    `Then there is the ${'very '.repeat(60)}old case.`,
    `So compare them ${'again and '.repeat(20)}again.`,
  ].join(' ');
  const turns = [user('Mend it.'), model('It is mended now, in all 12 files.'), user(long)];
  const more = Array.from({ length: 12 }, (_, at) => [
    model(`Part ${at} of the store is mended now, in all of its files.`),
    user(`Now mend part ${at + 1} of the store as well, please.`),
  ]).flat();
  expect(summaryOf([...turns, ...more], 330)).toContain(
    '\n- USER: If the second session makes the same files, we must not go on. / Then there is the very very',
  );
});

it('says a verdict in bold letters of a reply that begins with other words', () => {
  const reply = [
    'Good question, so I traced through the three checkpoints and read what happens to each of the files in them.',
    'The first one has the lines of the model, and the second one those of the user.',
    '**Your edit would be counted as the work of the model.**',
    'The third one is empty.',
  ].join('\n\n');
  const steps = [user('Is my edit counted?'), model(reply), user('Then mend it.')];
  expect(summaryOf(steps, 90)).toMatch(
    /\n- YOU: Good question, so I traced through the three checkpoints and read what happens … Your edit would be counted as the work of the model\.\n/,
  );
});

it('tells an item with the line that announces its list, once', () => {
  const reply = [
    'I measured all of it.',
    'These calls could be slow:',
    '1. `openStore()` reads the whole file at 40 ms',
    '2. `scan()` is fast',
    '## Causes',
    '- The index of `store.bin` is built twice by line 495',
    'So far.',
  ].join('\n');
  const steps = [
    user('Find out why it is slow.'),
    model(reply),
    call('run', { command: 'time ./openStore scan' }, 'real 0.2s'),
  ];
  expect(summaryOf(steps)).toBe(
    `In order (what USER demanded holds unless taken back later; YOU is the model):
- USER: Find out why it is slow.
- YOU: These calls could be slow: 1. \`openStore()\` reads the whole file at 40 ms … Causes: The index of \`store.bin\` is built twice by line 495
- run time ./openStore scan: "real 0.2s"`,
  );
});

it('marks where a message of the user is cut, and keeps its last words', () => {
  const part = (at: number) => `${at}. Part ${at} of the view must show ${'more and '.repeat(12)}more.`;
  const demand = ['1. The list must show who made a checkpoint.', ...[2, 3, 4, 5].map(part)].join('\n');
  const turns = [user('Mend it.'), model('It is mended now, in all 12 files.'), user(demand)];
  const more = Array.from({ length: 8 }, (_, at) => [
    model(`Part ${at} of the store is mended now, in all of its files.`),
    user(`Now mend part ${at + 1} of the store as well, please.`),
  ]).flat();
  const lineOf = (budget: number) =>
    (summaryOf([...turns, ...more], budget) ?? '').split('\n').find((one) => one.startsWith('- USER: 1.'));
  expect(lineOf(300)).toBe(
    `- USER: 1. The list must show who made a checkpoint. / ${part(2)} / ${part(3)} / … / ${part(5)}`,
  );
  expect(lineOf(2_000)).toBe(`- USER: ${demand.replaceAll('\n', ' / ')}`);
});

it('tells what came of a demand also if the client or a message that stays is behind the reply', () => {
  const note: SummaryStep = {
    type: 'said',
    by: 'client',
    text: '<local-command-caveat>Caveat: no answer</local-command-caveat>',
  };
  const steps = [
    user('Hide sessions that ended.'),
    call('edit_file', { path: 'src/list.ts', old: 'a', new: 'b' }, 'ok'),
    model('Sessions older than 20 commits are hidden now.'),
    note,
    user('<local-command-stdout>Version 2.1</local-command-stdout>'),
    user('Is the name used twice?'),
    call('read_file', { path: 'src/names.ts' }, 'export const a = 1;'),
    model('Now `name` is used in `names.ts` alone.'),
    call('read_file', { path: 'src/z.ts' }, 'export const z = 1;'),
  ];
  const told = summaryOf(steps, 112, [], [{ steps: 8, summaries: 0, isTurn: true, question: '' }]);
  expect(told).toBe(`In order (what USER demanded holds unless taken back later; YOU is the model):
- USER: Hide sessions that ended.
- edit_file list.ts: ok
- YOU: Sessions older than 20 commits are hidden now.
- USER: Is the name used twice?
- read_file names.ts
- YOU: Now \`name\` is used in \`names.ts\` alone.
In order:
- read_file z.ts
Files touched until then:
- edited: src/list.ts
- read: src/z.ts, src/names.ts`);
});

describe('an answer that ends with its verdict', () => {
  const answer = (at: number) =>
    [
      'Good question, let me think that through once more.',
      `1. Rename it now, in all of the programs that read it from the file of part ${at} or print it\n2. Leave it`,
      `So the name of part ${at} should stay as it is. Shall I go on?`,
    ].join('\n\n');

  it('is told with it', () => {
    expect(
      summaryOf([user('Should it be renamed?'), model(answer(1)), user('No, thanks for now.')], 60),
    ).toBe(
      `In order (what USER demanded holds unless taken back later; YOU is the model):
- USER: Should it be renamed?
- YOU: So the name of part 1 should stay as it is.
- USER: No, thanks for now. (asked: "Shall I go on?")`,
    );
  });

  it('is told by it alone if it is old, unless its first words say something', () => {
    const named =
      'The flag `--all` is read in `cli.ts` only.\n\n- see line 40\n\nThat is how it was from the beginning on.';
    const turns = [0, 1, 2, 3, 4, 5, 6].flatMap((at) => [
      user(`Should part ${at} be renamed?`),
      model(at === 1 ? named : answer(at)),
    ]);
    const told = summaryOf([...turns, user('Thanks for all of that.')], 250);
    expect(told).toContain('\n- YOU: So the name of part 0 should stay as it is.\n');
    expect(told).toContain('\n- YOU: The flag `--all` is read in `cli.ts` only.');
    expect(told).toContain('\n- YOU: So the name of part 6 ');
  });

  it('is told by its beginning if it reports work', () => {
    const steps = [
      user('Rename it.'),
      call('edit_file', { path: 'src/a.ts', old: 'a', new: 'b' }, 'ok'),
      model(
        'All tests pass, and the name is `b` now.\n\n1. It was a name of one letter in all of the files of the folder\n2. It is one still, because 12 programs read it by that name and print it\n\nThese words end the reply.',
      ),
      user('Thanks.'),
    ];
    expect(summaryOf(steps, 100)).toMatch(
      /\n- YOU: All tests pass, and the name is `b` now\. 1\. It was .*\n- USER: Thanks\.\n/,
    );
    expect(summaryOf(steps, 84)).not.toContain('These words');
  });
});

it('tells a reply without the question at its end, and one of code alone by its beginning', () => {
  const example = '**With a name:**\n\n```\nAnother session is open: close it here\n```';
  const steps = [
    user('Can you proof-read this?'),
    model('Two words are odd: "close here" and `arrow key`.\n\nOr shall I keep them?'),
    user('exit here'),
    call('edit_file', { path: 'src/view.ts', old: 'a', new: 'b' }, 'ok'),
    model(example),
    user('Is there a test?'),
  ];
  expect(
    summaryOf(steps),
  ).toBe(`In order (what USER demanded holds unless taken back later; YOU is the model):
- USER: Can you proof-read this?
- YOU: Two words are odd: "close here" and \`arrow key\`.
- USER: exit here (asked: "Or shall I keep them?")
- edit_file view.ts: ok
- YOU: With a name: Another session is open: close it here
- USER: Is there a test?
Files touched until then:
- edited: src/view.ts`);
});

it('tells fewer names of calls in short before it leaves out what came of a demand', () => {
  const work = (part: number) =>
    Array.from({ length: 12 }, (_, at) =>
      call('edit_file', { path: `src/part-${part}-with-a-long-name-${at}.ts`, old: 'a', new: 'b' }, 'ok'),
    );
  const steps = [
    user('Mend part 1.'),
    ...work(1),
    model('Part 1 reads its input only once now.'),
    user('Mend part 2.'),
    ...work(2),
    model('Part 2 has no cache of its own any more.'),
    user('Thanks.'),
  ];
  expect(summaryOf(steps, 105)).toMatch(
    /- USER: Mend part 1\.\n- \(12 calls: edit_file ×12\)\n- YOU: Part 1 [^\n]+\n- USER: Mend part 2\.\n- \(12 calls: edit_file ×12\)\n- YOU: Part 2 /,
  );
});

it('tells calls that changed something outside before other calls', () => {
  const reads = Array.from({ length: 30 }, (_, at) =>
    call('run', { command: `check --part ${at}` }, `part ${at} is ${at}`),
  );
  const steps = [
    user('Ship it.'),
    call(
      'run',
      { command: 'git add -A && git commit -m "Mend"' },
      '[main 1a2b3c4] Mend\n 2 files changed, 3 insertions(+)',
    ),
    call('run', { command: 'git push' }, 'To github.com:a/b\n   1a2b3c0..1a2b3c4  main -> main'),
    call(
      'run',
      { command: 'gh pr create --title "Mend"', description: 'Open the PR' },
      'https://git.test/pull/7',
    ),
    call('mcp__linear__create_issue', { title: 'Mend the rest' }, '{"id":"ENT-9","title":"Mend the rest"}'),
    call('mcp__linear__list_issues', { team: 'ENT' }, '{"count":3}'),
    call('run', { command: 'npm publish' }, '+ mend@1.0.1'),
    ...reads,
  ];
  const lines = summaryOf(steps, 190).split('\n').slice(1, 8);
  expect(lines.slice(0, 6)).toEqual([
    '- USER: Ship it.',
    '- run git add -A && git commit -m "Mend": commit 1a2b3c4, 2 files changed',
    '- run git push: pushed 1a2b3c0..1a2b3c4 to main',
    '- run gh pr create --title "Mend" (Open the PR): "https://git.test/pull/7"',
    expect.stringContaining('- mcp__linear__create_issue '),
    expect.stringContaining('list_issues'),
  ]);
});

it('keeps what a summary by the client says of open tasks and of the work then, until two more demands came', () => {
  const text = [
    'This session is being continued from a previous conversation that ran out of context.',
    '1. Primary Request and Intent:\n   - Make the list of sessions fast and keep its order',
    '2. Key Technical Concepts:\n   - Sessions',
    '3. Files and Code Sections:\n   - `src/list.ts` - the list\n   - `src/store.ts` - the store\n   - `src/a.ts` - a',
    '4. Problem Solving:\n   - The index of the store is read once now, which takes 12 ms',
    '5. All user messages:\n   - "make the list fast"\n   - "keep its order, please"',
    '6. Pending Tasks:\n   - Write a test for the order of the list\n   - Measure the list with 4,000 sessions\n   - Tell Ada about the new index of the store',
    '7. Current Work:\n   I was about to measure `list --all`. Found so far:\n   - The store takes 12 ms\n   - The sort takes 300 ms, because it reads each of the sessions again',
    '8. Optional Next Step:\n   Sort by the index alone and measure again.',
  ].join('\n\n');
  const turn = [call('run', { command: 'list --all' }, '4000 sessions in 310 ms')];
  expect(summaryOf([user(text), ...turn])).toContain(
    `
- (state at that time) Pending Tasks: Write a test for the order of the list; Measure the list with 4,000 sessions; Tell Ada about the new index of the store
- (state at that time) Current Work: I was about to measure \`list --all\`. Found so far: The store takes 12 ms; The sort takes 300 ms, because it reads each of the sessions again
- (state at that time) Optional Next Step: Sort by the index alone and measure again.
`,
  );
  const later = [
    user('Now mend the colors of the view.'),
    model('They are mended in `view.ts` now.'),
    user('And its title?'),
  ];
  expect(summaryOf([user(text), ...turn, ...later], 150)).not.toContain('(state at that time)');
  expect(summaryOf([user(text), ...turn, ...later]).match(/\(state at that time\) [^:]+/g)).toEqual([
    '(state at that time) Pending Tasks',
  ]);
});

it('lists open items of a plan that a tool keeps item by item', () => {
  const steps = [
    user('Ship it.'),
    call('TaskCreate', { subject: 'Write the tests' }, 'Task #1 created successfully: Write the tests'),
    call('TaskCreate', { subject: 'Measure the list' }, 'Task #2 created successfully: Measure the list'),
    call('TaskCreate', { subject: 'Tell Ada' }, 'Task #3 created successfully: Tell Ada'),
    call('TaskUpdate', { taskId: '1', status: 'completed' }, 'Updated task #1 status'),
    call('TaskUpdate', { taskId: '2', status: 'in_progress' }, 'Updated task #2 status'),
  ];
  expect(summaryOf(steps)).toMatch(
    /\nOpen then:\n- in_progress: #2 Measure the list\n- pending: #3 Tell Ada$/,
  );
  const later = [
    model('The tests are there.'),
    user('Good. Mend the view.'),
    model('It is mended.'),
    user('Thanks.'),
  ];
  expect(summaryOf([...steps, ...later])).not.toContain('Open then:');
});
