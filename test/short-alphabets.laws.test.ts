/**
 * Folds conversations whose texts are made at random of the few signs that one of the readers looks for, and recalls from them. A loop that does not move on
 * for some text never ends, and the watchdog of the tests ends the run and says where it stood. Longer texts are in `hostile-texts.laws.test.ts`.
 */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { shrink } from '../src/arrival/shrink.ts';
import { runSteps } from '../src/conversation/steps.ts';
import { createLeporello } from '../src/library/leporello.ts';
import { placesFound } from '../src/outline/files-shown.ts';
import { resolveRecall } from '../src/recall/resolve.ts';
import { candidatesOf, holds } from '../src/replay/needs.ts';
import { chatMessages, type Step } from './support/chat-conversation.ts';

/** The signs of each grammar that is read. */
const alphabets = {
  paths: ['/', '//', 'a', '.', '..', '~', 'a.ts', '\\', ' '],
  places: [
    '/a.ts:1:a\n',
    'a.ts:2:b\n',
    'a/b.ts:3:c\n',
    '/a/b.ts:4:d\n',
    'a/b.ts-5-e\n',
    '/',
    '//',
    'a:',
    '\n',
  ],
  commands: [
    'cd ',
    'a',
    ' && ',
    ';',
    '|',
    '\n',
    '"',
    "'",
    '<<',
    'EOF',
    'git ',
    '-a ',
    'rm ',
    '>',
    '(',
    '#',
    '\\',
  ],
  sentences: [
    'a',
    'It is. ',
    '? ',
    '! ',
    '"',
    '’',
    '**',
    '- ',
    '1. ',
    '\n',
    ': ',
    '…',
    '。',
    '```\n',
    '|',
    '# ',
  ],
  json: ['{', '}', '[', ']', '"', 'a', ':', ',', '1', '\\', ' ', '\n', 'null', '"a":'],
  pages: ['<', '>', '</', 'a', 'script', '<p>', '<main>', '<!--', '-->', '"', '&amp;', ' ', '\n'],
  diffs: ['+', '-', ' ', '@@ -1,1 +1,1 @@\n', 'diff --git a/a b/a\n', '--- ', '+++ ', 'a', '\n', '*** '],
  logs: [
    'FAIL ',
    'ok ',
    'Error: ',
    'a',
    '1',
    ' passed',
    ' failed',
    ' at ',
    '(',
    ')',
    '\n',
    '=',
    '\u001b[1m',
    '\r',
  ],
  ranges: ['1', '-', ',', ':', 'c', ' ', '$', '.a', '[*]', '[', ']', '*', "'", 'mem_', '"'],
};

const makes = Array.from(
  { length: 8 },
  (_, at): Step => ({
    calls: [{ name: 'Bash', input: `{"command":"make ${at}"}`, result: `${at} ok\n${'word '.repeat(200)}` }],
  }),
);

/** The first text is what the user and the model say, the second is the argument of each call, the third is the result. */
function conversationOf([said = '', given = '', result = '']: readonly string[]): readonly Step[] {
  const call = (name: string, input: object): Step => ({
    text: said,
    calls: [{ name, input: JSON.stringify(input), result }],
  });
  return [
    { user: `Mend it. ${said}` },
    call('Bash', { command: given }),
    { assistant: said },
    { user: said },
    call('Read', { file_path: given }),
    call('Edit', { file_path: given, old_string: result, new_string: said }),
    call('Grep', { pattern: said, path: given }),
    call('TodoWrite', { todos: [{ content: said, status: 'pending' }] }),
    ...makes,
    { user: 'Go on.' },
  ];
}

const body = (steps: readonly Step[]) => ({
  model: 'gpt-4o',
  tools: [{ type: 'function', function: { name: 'Bash', parameters: { type: 'object' } } }],
  messages: chatMessages(steps),
});

it.each(Object.entries(alphabets))('texts of the signs of %s are folded and recalled', async (_, signs) => {
  const text = fc
    .array(fc.constantFrom(...signs), { maxLength: 60, size: 'max' })
    .map((some) => some.join(''));
  await fc.assert(
    fc.asyncProperty(fc.tuple(text, text, text), async (texts) => {
      const [said, given, result] = texts;
      for (const summaries of [false, { kind: 'extractive' }] as const) {
        const leporello = createLeporello({
          summaries,
          storeDeadlineMs: 60_000,
          triggers: { tokenBudget: { triggerTokens: 1_500, targetTokens: 800, bufferTokens: 0 } },
        });
        const { outcome } = await leporello.prepare({ body: body(conversationOf(texts)) });
        expect(outcome.status).toBe('compacted');
      }
      // Counts with fractions, near the length of the answers.
      const countTokens = (one: string) => one.length / 3;
      const maxTokens = 85 - given.length / 3;
      for (const argumentsJson of [
        given,
        JSON.stringify({ id: 'm1', query: said }),
        JSON.stringify({ id: 'm1', path: given }),
        JSON.stringify({ id: 'm1', lines: given }),
        JSON.stringify({ id: given, query: said }),
      ])
        for (const held of [result, `${result} ${'x'.repeat(300)}`, JSON.stringify([{ a: result }, [said]])])
          await resolveRecall({ argumentsJson, lookup: () => held, maxTokens, countTokens });
      for (const path of ['', given]) runSteps(placesFound({ kind: 'search', about: 'a', path }, result));
      shrink(result.padEnd(3_000, `${given}\n`), { lossless: false });
      for (const { value } of candidatesOf(JSON.stringify({ given }))) holds(result, value);
      holds(result, { kind: 'word', text: '' });
    }),
    { numRuns: 100, interruptAfterTimeLimit: 120_000 },
  );
});
