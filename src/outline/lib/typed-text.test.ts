import { describe, expect, it } from 'vitest';
import { questionBefore, quotedWords } from './typed-text.ts';

describe('a long message of the user', () => {
  const begin = 'The report of June counts refunds twice. '.repeat(21).trim();
  const told = (...end: readonly string[]) => quotedWords([begin, ...end].join('\n'), 800).slice(779);

  it('is told with its last words, ahead of what was pasted at its end', () => {
    expect(
      told('Fix it.', 'Do not touch the tables, and do not commit.', 'select sum(x) from refunds;'),
    ).toBe('The report of June … Fix it. Do not touch the tables, and do not commit.');
    expect(told('请修复这个问题，但是不要提交任何更改。')).toBe(
      'The report of June … 请修复这个问题，但是不要提交任何更改。',
    );
  });

  it('is told once where its beginning goes on into its last words', () => {
    const last = 'A commit is made behind a task (`handleTask`), and only if files have changed.';
    const words = `${'The comment is not accurate. '.repeat(11)}Write this: ${last}`;
    expect(quotedWords(words, 390)).toBe(words);
  });
});

it('an answer with a small letter stands with the option that it picks, and the word a picks none', () => {
  const reply = 'Two ways:\n\na) Redis, in memory\nb) A table in Postgres\n\nWhich one?';
  expect(
    [
      'b',
      'I think a) is fine',
      'let us go with b',
      'option b please',
      'a good idea, go on',
      'do what ls -b does',
    ].map((one) => questionBefore(reply, one)),
  ).toEqual([
    'b) A table in Postgres / Which one?',
    'a) Redis, in memory / Which one?',
    'b) A table in Postgres / Which one?',
    'b) A table in Postgres / Which one?',
    'Which one?',
    'Which one?',
  ]);
});
