import { expect, it } from 'vitest';
import { extract } from './extract.ts';
import type { SummaryRequest, SummaryStep } from './summarizer.ts';
import { call, model, user } from '../../test/support/summary-steps.ts';

function summaryOf(steps: readonly SummaryStep[], max = 3_000, earlier: readonly string[] = []): string {
  const request: SummaryRequest = {
    steps,
    earlier,
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

it('tells joined calls where the last one was made, so that no word of the model before it seems open', () => {
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
- YOU: The callers in \`b.ts\` break now, 12 of them.
- YOU: The test of \`c.ts\` needs the name, too, by line 40.
- edit_file a.ts ×3: ok
- run npm test: "Tests: 12 passed"
Files touched:
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

it('marks where a message of the user is cut, also at its end', () => {
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
    `- USER: 1. The list must show who made a checkpoint. / ${part(2)} / ${part(3)} / …`,
  );
  expect(lineOf(2_000)).toBe(`- USER: ${demand.replaceAll('\n', ' / ')}`);
});
