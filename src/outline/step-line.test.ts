import { describe, expect, it } from 'vitest';
import { stepLine, stepLines, stepWords, type StepCall } from './step-line.ts';

const call = (tool: string, input: unknown, result = '', isError?: boolean): StepCall => ({
  tool,
  input: JSON.stringify(input),
  result,
  isError,
});
const line = (...args: Parameters<typeof call>): string => stepLine(stepWords(call(...args)));
const lines = (...calls: readonly StepCall[]): readonly string[] =>
  stepLines(calls.map(stepWords)).map(({ text }) => text);

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
      'Edit src/a.ts: ok',
      'Write docs/plan.md (3 lines): ok',
      'Read src/a.ts 20-29',
      'Bash npm run lint (Lint): "0 issues."',
      'Bash rm -rf dist: no output',
      'Grep "main" in src',
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
      'Grep "Error:"',
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
      'TodoWrite 1 of 2 done, now "Fix the bug"',
      'Bash git commit -m "Fix the bug": "[main 12ab34c] Fix the bug"',
    ]);
  });

  it('cuts no word', () => {
    const words = 'several words of many '.repeat(20);
    expect([
      line('ask', { question: words }, words),
      line('ask', { question: 'x'.repeat(500) }, 'y'.repeat(500)),
    ]).toEqual([
      `ask ${'several words of many '.repeat(5)}several …: "${'several words of many '.repeat(3).trimEnd()} …"`,
      'ask',
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
      'Read ×3: a.ts ×2, b.ts · Edit ×3: a.ts, b.ts ×2: all ok',
      'Bash npm test: failed, "1 failed"',
      'Edit b.ts: ok',
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
});
