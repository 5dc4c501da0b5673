import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isCode } from './code.ts';
import { atLineStart, isChange, isDocument, mayLose, reportsFailure } from './kind.ts';

const calm = 'All 214 tests are done.\n'.repeat(60);

describe('a report of a failure', () => {
  it.each([
    ['an exit code', 'Exit code 1\n[lint] $ golangci-lint run ./...'],
    ['an exit code in words', `${calm}Process exited with code 127`],
    [
      'a trace of Python',
      `${calm}Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n${calm}`,
    ],
    ['a trace of JavaScript', `${calm}    at read (/home/x/a.js:12:7)\n${calm}`],
    ['a trace of Java', `${calm}\tat org.example.Main.run(Main.java:12)\n${calm}`],
    ['a panic', `${calm}panic: runtime error: index out of range\n\ngoroutine 1 [running]:\n${calm}`],
    ['a message at the beginning', 'error: could not compile `cli`\n'],
    ['a message at the end', `${calm}fatal: not a git repository`],
    ['a message after a program and a file', 'sed: a.txt: Error reading'],
    ['an exception by name', 'ValueError: invalid literal for int()'],
    ['a failed test', `${calm}--- FAIL: TestFold (0.22s)\nFAIL`],
    ['an answer in JSON', '{"error":{"code":404,"message":"no such page"}}'],
  ])('is %s', (_what, text) => {
    expect(reportsFailure(text)).toBe(true);
    expect(mayLose(text)).toBe(false);
  });

  it('is not a text that only mentions errors', () => {
    expect(reportsFailure(`0 errors, 0 warnings\n${calm}`)).toBe(false);
    expect(reportsFailure(`${calm}2026-11-21 INFO retried after an error\n${calm}`)).toBe(false);
  });
});

describe('text that is edited, applied or followed', () => {
  it('is a change', () => {
    expect(isChange('diff --git a/x b/x\nindex 1..2')).toBe(true);
    expect(isChange('see:\n@@ -1,3 +1,4 @@ func main() {')).toBe(true);
    expect(isChange('*** Begin Patch\n*** Update File: a.ts')).toBe(true);
    expect(isChange('a diff of 3 lines')).toBe(false);
  });

  it('is a document', () => {
    expect(isDocument('# Skill\n\nDo this.\n\n## When\n\nAlways.')).toBe(true);
    expect(isDocument('---\nname: release\n---\nDo this.')).toBe(true);
    expect(isDocument('Run:\n```sh\nnpm test\n```')).toBe(true);
    expect(isDocument('ok\n<system-reminder>Be brief.</system-reminder>')).toBe(true);
    expect(isDocument('[test] $ go test ./...\n# example.org/cli\nok')).toBe(false);
  });

  it.each([
    ['TypeScript', "import { a } from './a.ts';\n\nexport function b(): void {\n  a(1);\n}"],
    ['Python', 'from a import b\n\ndef c(x):\n    return b(x)\n\nclass D:\n    e = c(2)'],
    ['Go', 'package main\n\nfunc main() {\n\tx := 1\n\tprintln(x)\n}'],
    ['Rust', 'use a::b;\n\nfn main() {\n    let x = b();\n}'],
    ['a style sheet', 'p {\n  margin: 0;\n}\n\nh1 {\n  margin: 1em;\n}'],
    ['a script', '#!/bin/sh\nif true; then\n  export A=1\n  for x in a b; do\n  echo $x;\n  done\nfi'],
  ])('is code: %s', (_language, text) => {
    expect(isCode(text)).toBe(true);
  });

  it.each([
    [
      'a test run',
      '=== RUN   TestA\n--- PASS: TestA (0.00s)\nok  \texample.org/cli\t(cached)\n?   \texample.org\t[no test files]',
    ],
    [
      'a listing',
      'total 8\n-rw-r--r-- 1 ada staff 7214 Jan 19 14:16 a.json\n-rw-r--r-- 1 ada staff 462 Jan 20 09:30 b.json',
    ],
    ['a log', '12:00:01 INFO started\n12:00:02 INFO served in 3 ms\n12:00:03 WARN slow'],
  ])('is not code: %s', (_what, text) => {
    expect(isCode(text)).toBe(false);
  });
});

describe('a test for the beginning of a line', () => {
  it('is true where an expression for each line is', () => {
    const found = atLineStart(' #a', / {0,2}#\d|at [^\n]{0,9}:\d$/);
    const expression = /^(?: {0,2}#\d|at [^\n]{0,9}:\d$)/m;
    const piece = fc.constantFrom(
      ' ',
      '#',
      '1',
      'a',
      ':',
      'at ',
      'at x:1',
      '\n',
      '\r',
      '\r\n',
      '\u2028',
      '中',
      '#1',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join('');
        expect(found(text)).toBe(expression.test(text));
      }),
      { numRuns: 3_000 },
    );
  });
});
