import { expect, it } from 'vitest';
import { stepWords } from '../step-line.ts';
import { runOf, runsIn, spellLeftOut, spellRuns } from './calls-in-short.ts';

const call = (tool: string, input: object, result: string, isRepaired = false) => {
  const step = stepWords({ tool, input: JSON.stringify(input), result, isError: undefined });
  const repaired = new Map(isRepaired ? [[step, step]] : []);
  return runOf(step, { shortName: (path) => path.replace('/app/', ''), repaired });
};

it('calls that a log leaves out are counted, with files that were edited, what changed elsewhere, and what failed', () => {
  const left = [
    call('Read', { file_path: '/app/cart.ts' }, '1→export'),
    call('Edit', { file_path: '/app/cart.ts', old_string: 'a', new_string: 'b' }, 'Updated.'),
    call('Bash', { command: 'npm test 2>&1 | tail -3' }, '2 failed', true),
    call('Edit', { file_path: '/app/cart.ts', old_string: 'b', new_string: 'c' }, 'Updated.'),
    call('Edit', { file_path: '/app/order.ts', old_string: 'a', new_string: 'b' }, 'Updated.'),
    call('Bash', { command: 'npm test 2>&1 | tail -5' }, 'ok'),
    call('Bash', { command: 'TOKEN=x gh api repos/shop/pulls/7 -q .url' }, 'gh: Not Found (HTTP 404)'),
    call('Bash', { command: 'git add -A && git push origin main' }, 'Everything up-to-date'),
    call('Read', { file_path: '/app/readme.md' }, '1→# Shop'),
    call('Read', { file_path: '/app/order.ts' }, '1→export'),
    call('Read', { file_path: '/app/price.ts' }, '<tool_use_error>File does not exist.</tool_use_error>'),
  ];
  const told = spellLeftOut(left);
  expect(told).toBe(
    '(11 calls left out: Bash ×4 (1 failed at first): npm test, gh api (1 failed), git push origin · Edit ×3: cart.ts ×2, order.ts · Read ×4 (1 failed))',
  );
  expect(spellRuns(runsIn(told))).toBe(told.replace(' left out', ''));
  expect([
    spellLeftOut(left.slice(1, 2)),
    spellLeftOut(left.slice(7, 8)),
    spellLeftOut(left.slice(0, 1)),
  ]).toEqual([
    '(1 call left out: Edit cart.ts)',
    '(1 call left out: Bash: git push origin)',
    '(1 call left out: Read)',
  ]);
});

it('says of failures whether a later call repaired them, and reads that again', () => {
  const lint = call('Bash', { command: 'npm run lint' }, '3 issues', true);
  const read = call('Read', { file_path: '/app/a.ts' }, '1→a');
  const edit = call(
    'Edit',
    { file_path: '/app/a.ts', old_string: 'a', new_string: 'b' },
    '<tool_use_error>Error: not found</tool_use_error>',
    true,
  );
  const push = call('Bash', { command: 'git push origin' }, 'fatal: no route');
  const look = call('Bash', { command: 'cat a.ts' }, 'a', false);
  const lines = [[lint, lint, push, read], [edit], [lint, look]].map(spellLeftOut);
  expect(lines).toEqual([
    '(4 calls left out: Bash ×3 (2 failed at first): npm run lint ×2, git push origin (1 failed) · Read)',
    '(1 call left out: Edit (1 failed at first))',
    '(2 calls left out: Bash ×2 (1 failed at first): npm run lint)',
  ]);
  expect(lines.map((line) => spellRuns(runsIn(line)))).toEqual([
    '(4 calls: Bash ×3 (2 failed at first): npm run lint ×2, git push origin (1 failed) · Read)',
    'Edit (1 failed at first)',
    'Bash ×2 (1 failed at first): npm run lint',
  ]);
});

it('says in short which searches found nothing, and reads that again', () => {
  const line =
    'Grep ×4: "oldName" in src (nothing found), "old-name" in docs (nothing found), "newName" (a.ts:3, a.ts:9), "old_name" (nothing found)';
  const short = spellRuns(runsIn(line));
  expect(short).toBe('(4 calls: Grep ×4: nothing found ×3)');
  expect(
    spellRuns([...runsIn(short), ...runsIn('Grep "oldname": nothing found'), ...runsIn('Grep "x" in src')]),
  ).toBe('(6 calls: Grep ×6: nothing found ×4)');
  expect(
    spellRuns(runsIn('Grep ×4: "a" in src (nothing found), "b" (a.ts:3), "c" (b.ts:1), "d" (2 hits)')),
  ).toBe('(4 calls: Grep ×4: nothing found ×1)');
  expect(spellRuns(runsIn('(4 calls: Grep ×4: nothing found ×1)'))).toBe(
    '(4 calls: Grep ×4: nothing found ×1)',
  );
});
