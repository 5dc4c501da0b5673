import { describe, expect, it } from 'vitest';
import { userReply, wholeWords } from './outcome.ts';
import { isFileContent } from './files-shown.ts';
import { typedText } from './lib/typed-text.ts';

describe('what the user typed', () => {
  it('is the text without what clients add', () => {
    expect([
      typedText('Fix the login.'),
      typedText('<system-reminder>Be brief.</system-reminder>\nFix the login.'),
      typedText('<ide_opened_file>The user opened a.ts</ide_opened_file>Fix <b>this</b>.'),
      typedText('<command-name>/compact</command-name>\n<command-args>keep the plan</command-args>'),
      typedText('Base directory for this skill: /home/me/skills/review\n\n# Review\n\nARGUMENTS: only src'),
      typedText('<bash-input>git fetch --all</bash-input>'),
    ]).toEqual([
      { words: 'Fix the login.', note: '' },
      { words: 'Fix the login.', note: '' },
      { words: 'Fix <b>this</b>.', note: '' },
      { words: '/compact keep the plan', note: '' },
      { words: 'only src', note: 'skill review' },
      { words: '(ran) git fetch --all', note: '' },
    ]);
  });

  it('is nothing in texts of skills, commands and reminders, and in summaries of clients', () => {
    expect([
      typedText('<command-name>/exit</command-name><command-message>exit</command-message>'),
      typedText('<local-command-stdout>Bye!</local-command-stdout>'),
      typedText(
        'Base directory for this skill: /me/skills/review\n\nARGUMENTS: all',
        'Launching skill: review',
      ),
      typedText('[Request interrupted by user for tool use]'),
      typedText('This session is being continued from a previous conversation that ran out of context.'),
    ]).toEqual([
      { words: '', note: 'command /exit' },
      { words: '', note: '' },
      { words: '', note: 'skill review' },
      { words: '', note: 'interrupted by the user' },
      { words: '', note: 'summary of an earlier part, by the client' },
    ]);
  });

  it('takes linear time for elements that never end', () => {
    const text = '<system-a>'.repeat(50_000);
    expect(typedText(text).words).toBe(text);
  });
});

describe('what the user said in a result', () => {
  it('is a refusal with its reason', () => {
    expect([
      userReply(
        'The user denied this operation and provided the following feedback:\n<feedback>\nUse pnpm.\n</feedback>',
      ),
      userReply('[Request interrupted by user for tool use]'),
      userReply('A user rejected the idea in 2019.'),
    ]).toEqual([{ isRefusal: true, words: 'Use pnpm.' }, { isRefusal: true, words: '' }, undefined]);
  });
});

describe('whole words', () => {
  it('end at a space, or behind any character of scripts without spaces', () => {
    expect([
      wholeWords('one two three', 9),
      wholeWords('x'.repeat(20), 9),
      wholeWords('日本語の文章です。', 6),
    ]).toEqual(['one two …', '', '日本語の …']);
  });
});

const call = (name: string, input: unknown = {}) => ({ name, input: JSON.stringify(input) });

describe('isFileContent', () => {
  it.each([
    call('Read'),
    call('read_file'),
    call('readFile'),
    call('mcp__files__read'),
    call('str_replace_based_edit_tool', { command: 'view', path: 'a.ts' }),
    call('Bash', { command: 'cat package.json' }),
    call('Bash', { command: 'cd src && sed -n 1,40p a.ts' }),
    call('Bash', { command: 'git -C x diff HEAD~1' }),
    call('Bash', { command: 'ls | xargs cat' }),
    call('shell', { command: ['bash', '-lc', 'cat a.ts'] }),
    call('exec_command', { cmd: 'tail -20 a.ts' }),
  ])('is true for what prints a file: $name $input', (one) => {
    expect(isFileContent(one)).toBe(true);
  });

  it.each([
    call('Grep', { pattern: 'read' }),
    call('Bash', { command: 'npm test 2>&1 | tail -30' }),
    call('Bash', { command: 'grep -rn cat src' }),
    call('Bash', { command: 'tail -100 app.log' }),
    call('get_reservation_details', { id: 'X' }),
    call('thread_list'),
    { name: 'Bash', input: 'not JSON' },
    { name: 'Bash', input: 'null' },
    { name: 'Bash', input: '' },
  ])('is false for what does not: $name $input', (one) => {
    expect(isFileContent(one)).toBe(false);
  });

  it('is decided in linear time for a command of empty lines', () => {
    // With a pattern that backtracks, 6,000 lines took 40 s.
    const lines = '\n \n'.repeat(50_000);
    expect(isFileContent(call('Bash', { command: `ls${lines}x` }))).toBe(false);
    expect(isFileContent(call('Bash', { command: `ls${lines}cat a.ts` }))).toBe(true);
  });
});
