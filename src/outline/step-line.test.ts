import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type StepCall, stepLine, stepLines, stepWords } from './step-line.ts';

const call = (tool: string, input: unknown, result = '', isError?: boolean): StepCall => ({
  tool,
  input: JSON.stringify(input),
  result,
  isError,
});
const line = (...args: Parameters<typeof call>): string => stepLine(stepWords(call(...args)));
const lines = (...calls: readonly StepCall[]): readonly string[] =>
  stepLines(calls.map(stepWords)).map(({ text }) => text);

it('says of calls that failed alike that all failed, and quotes a cause behind a name', () => {
  const refused = '<tool_use_error>File has not been read yet. Read it first.</tool_use_error>';
  const edit = (text: string) =>
    call('Edit', { file_path: 'a.ts', old_string: text, new_string: '' }, refused);
  const cycle =
    'Exit code 1\npackage shop\n\timports shop/log from cart.go\n\timports shop: import cycle not allowed';
  expect(lines(edit('a'), edit('b'), call('Bash', { command: 'go build ./shop' }, cycle))).toEqual([
    'Edit a.ts ×2: all failed, "File has not been read yet. Read it first."',
    'Bash go build ./shop: failed, "imports shop: import cycle not allowed"',
  ]);
});

describe('a step in one line', () => {
  it('says what was called and what came of it', () => {
    expect([
      line(
        'Edit',
        { file_path: 'src/a.ts', old_string: 'const a = 1', new_string: 'const a = 2' },
        'Updated.',
      ),
      line('Write', { file_path: 'docs/plan.md', content: 'one\ntwo\nthree' }, 'File created'),
      line('Read', { file_path: 'src/a.ts', offset: 20, limit: 10 }, '20→const a = 1'),
      line('Bash', { command: 'cd /app && npm run lint', description: 'Lint' }, '$ eslint .\n0 issues.'),
      line('Bash', { command: 'rm -rf dist' }),
      line('Grep', { pattern: 'main', path: 'src', output_mode: 'content' }, 'src/a.ts:1:main'),
      line('get_order', { order_id: '#W12' }, '{"order_id":"#W12","status":"delivered","items":[1,2]}'),
      line('search', { entity: 'Tim Burton' }, 'Tim Burton (born 1958) is a director.'),
      stepLine(stepWords({ ...call('read_file', { path: 'a.ts' }), result: undefined })),
    ]).toEqual([
      'Edit src/a.ts (a, 1 → 2)',
      'Write docs/plan.md (3 lines): ok',
      'Read src/a.ts 20-29',
      'Bash npm run lint (Lint): "0 issues."',
      'Bash rm -rf dist: no output',
      'Grep "main" in src: a.ts:1',
      'get_order #W12: status "delivered"',
      'search Tim Burton: "Tim Burton (born 1958) is a director."',
      'read_file a.ts: no result yet',
    ]);
  });

  it('says what failed, how often and where', () => {
    expect([
      line(
        'Bash',
        { command: 'npm test' },
        ' FAIL  parse.test.ts > adds\n  at parse.test.ts:40\nTests 3 failed | 9 passed',
      ),
      line(
        'Bash',
        { command: 'go build ./...' },
        'Exit code 1\n# example.com/app\nmain.go:14:2: undefined: port',
      ),
      line(
        'Edit',
        { file_path: 'a.ts' },
        '<tool_use_error>String to replace not found in file.</tool_use_error>',
      ),
      line('get_issue', { id: 'ENT-108' }, 'Error: issue not found'),
      line('run', { cmd: ['bash', '-lc', 'make'] }, 'killed', true),
      line('Bash', { command: 'mvn test' }, 'エラー: 接続できません'),
    ]).toEqual([
      'Bash npm test: 3 failed, parse.test.ts:40',
      'Bash go build ./...: failed, "main.go:14:2: undefined: port"',
      'Edit a.ts: failed, "String to replace not found in file."',
      'get_issue ENT-108: failed, "Error: issue not found"',
      'run make: failed, "killed"',
      'Bash mvn test: failed, "エラー: 接続できません"',
    ]);
  });

  it('takes no listed text for a failure', () => {
    expect([
      line('Bash', { command: 'git diff HEAD' }, '-  throw new Error("no");\n+  panic: never'),
      line('Bash', { command: 'npm test' }, 'Tests 12 passed, 0 failed'),
      line('Grep', { pattern: 'Error:' }, 'a.ts:3: Error: none'),
    ]).toEqual([
      'Bash git diff HEAD: 2 lines',
      'Bash npm test: "Tests 12 passed, 0 failed"',
      'Grep "Error:": a.ts:3',
    ]);
  });

  it('takes words such as error for no failure where code is quoted, or where the last line is a success', () => {
    const printed = 'level=`ERROR` is the default';
    expect([
      line('Bash', { command: 'npm test' }, `${printed}\nok\t12 tests passed`),
      line('Bash', { command: 'npm test' }, 'it logs:\na.ts:3: error on purpose\nPASS'),
      line('Bash', { command: 'npm test' }, 'FAIL a.test.ts\n12 tests passed'),
    ]).toEqual([
      'Bash npm test: "ok 12 tests passed"',
      'Bash npm test: ok',
      'Bash npm test: failed, "FAIL a.test.ts"',
    ]);
  });

  it('quotes refusals and answers as the words of the user', () => {
    expect([
      line(
        'Bash',
        { command: 'git commit -m done' },
        "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\ndon't check\nthis in",
      ),
      line('exec', { command: 'rm a' }, 'exec command rejected by user'),
      line(
        'AskUserQuestion',
        { questions: [{ question: 'Which?' }] },
        'User has answered your questions: "Which?"="The second". You can now continue with it.',
      ),
    ]).toEqual([
      "Bash git commit -m done → REFUSED by the user: don't check this in",
      'exec rm a → REFUSED by the user',
      'AskUserQuestion → the user answered: "Which?"="The second".',
    ]);
  });

  it('names the progress of a plan, and the subject of a text that a command is given', () => {
    expect([
      line(
        'TodoWrite',
        {
          todos: [
            { content: 'Read the code', status: 'completed' },
            { content: 'Fix the bug', status: 'in_progress' },
          ],
        },
        'Saved',
      ),
      line(
        'Bash',
        { command: 'git commit -m "$(cat <<\'EOF\'\nFix the bug\n\nAt last.\nEOF\n)"' },
        '[main 12ab34c] Fix the bug',
      ),
    ]).toEqual([
      'TodoWrite 1 of 2 done, in_progress "Fix the bug"',
      'Bash git commit -m "Fix the bug": commit 12ab34c',
    ]);
  });

  it('tells a long command by the title that the model gave it', () => {
    const command = `grep -rn "session" ${'src/a-folder-with-a-long-name/ '.repeat(4)}`;
    expect([
      line('Bash', { command, description: 'Find sessions' }, 'a.ts:1: session\nb.ts:2: session'),
      line('Bash', { command: 'ls src', description: 'List the source' }, 'a.ts\nb.ts'),
    ]).toEqual(['Bash (Find sessions): a.ts:1, b.ts:2', 'Bash ls src (List the source): 2 lines']);
  });

  it('says where a search found something, if it is in few places', () => {
    const search = (result: string, path?: string) => line('Grep', { pattern: 'main', path }, result);
    expect([
      search('src/a.ts:1:main\nsrc/b.ts:20:main'),
      search('7:main\n9-other', 'src/a.ts'),
      search('Found 2 files\nsrc/a.ts\nsrc/b.ts'),
      search(Array.from({ length: 9 }, (_, at) => `src/a.ts:${at}:main`).join('\n')),
      search('No matches found'),
    ]).toEqual([
      'Grep "main": a.ts:1, b.ts:20',
      'Grep "main" in src/a.ts: line 7',
      'Grep "main"',
      'Grep "main"',
      'Grep "main": nothing found',
    ]);
  });

  it('leaves out of an outcome what the call says', () => {
    expect([
      line(
        'TaskCreate',
        { subject: 'Fix the bug', description: 'It is old.' },
        'Task #5 created successfully: Fix the bug',
      ),
      line('TaskUpdate', { taskId: '5', status: 'completed' }, 'Updated task #5 status'),
    ]).toEqual(['TaskCreate "Fix the bug": #5', 'TaskUpdate #5 completed']);
  });

  it('cuts no word', () => {
    const words = 'several words of many '.repeat(20);
    expect([
      line('ask', { question: words }, words),
      line('ask', { question: 'x'.repeat(500) }, 'y'.repeat(500)),
    ]).toEqual([
      `ask ${'several words of many '.repeat(5)}several …: "${'several words of many '.repeat(3).trimEnd()} …"`,
      'ask: ok',
    ]);
  });
});

describe('the lines of steps', () => {
  const read = (file_path: string) => call('Read', { file_path }, '1→a');
  const edit = (file_path: string) =>
    call('Edit', { file_path, old_string: 'a', new_string: 'b' }, 'Updated.');
  const test = (result: string) => call('Bash', { command: 'npm test' }, result);

  it('join reads, searches and edits up to the next outcome', () => {
    expect(
      lines(
        read('a.ts'),
        edit('a.ts'),
        read('b.ts'),
        read('a.ts'),
        edit('b.ts'),
        edit('b.ts'),
        test('1 failed'),
        edit('b.ts'),
        test('ok'),
        test('ok'),
      ),
    ).toEqual([
      'Read a.ts · Edit a.ts (a → b) · Read ×2: b.ts, a.ts · Edit b.ts (a → b) ×2',
      'Bash npm test: failed, "1 failed"',
      'Edit b.ts (a → b)',
      'Bash npm test ×2: ok',
    ]);
  });

  it('name the steps that they tell', () => {
    const steps = [read('a.ts'), test('ok'), test('ok')].map(stepWords);
    expect(stepLines(steps).map((one) => one.steps)).toEqual([[0], [1, 2]]);
  });

  it('spell paths as they are told to', () => {
    const steps = [read('/app/src/a.ts'), read('/app/src/b.ts')].map(stepWords);
    expect(stepLines(steps, (path) => path.slice(9)).map(({ text }) => text)).toEqual([
      'Read ×2: a.ts, b.ts',
    ]);
  });

  it('say more than the name of a tool, and cut no word, for any calls', () => {
    const words = fc.lorem({ maxCount: 30 });
    const calls = fc.oneof(
      words.map((text) => call('Bash', { command: text, description: text }, text)),
      words.map((text) => call('Grep', { pattern: text, path: `src/${text.split(' ')[0]}.ts` }, text)),
      words.map((text) => call('lookup', { [text.split(' ')[0]!]: text }, JSON.stringify({ text }))),
      words.map((text) => call('Read', { file_path: `${text.split(' ')[0]}/a.ts` }, text)),
      fc.constant(call('ping', {}, '{}')),
    );
    fc.assert(
      fc.property(fc.array(calls, { minLength: 1, maxLength: 12 }), (list) => {
        const known = new Set(
          `${JSON.stringify(list)} ok no output line lines in all nothing found and more`.split(
            /[^\p{L}\p{N}]+/u,
          ),
        );
        for (const text of lines(...list)) {
          for (const piece of text.split(' · ')) expect(piece).toMatch(/^\S+:? \S/);
          const cut = text.split(/[^\p{L}\p{N}]+/u).filter((word) => !known.has(word) && !/^\d*$/.test(word));
          expect(cut).toEqual([]);
        }
      }),
    );
  });
});
