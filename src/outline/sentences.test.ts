import { describe, expect, it } from 'vitest';
import { linesOf, questionBefore, quotesIn, typedText } from './sentences.ts';

describe('the question before a short answer', () => {
  const options = [
    'There are two ways:',
    '1. **Keep the flag** and document it',
    '2. Remove the flag',
    '```',
    '3. this is code',
    '```',
    'Which one do you prefer?',
  ].join('\n');

  it('has the chosen option with its number, and the question', () => {
    expect(questionBefore(options, '2')).toBe('2. Remove the flag / Which one do you prefer?');
    expect(questionBefore(options, 'option 1 please')).toBe(
      '1. Keep the flag and document it / Which one do you prefer?',
    );
    expect(questionBefore('### Option B: Rename it\nText.', 'B')).toBe('Option B: Rename it');
  });

  it('is the last question where the answer names no option, in any language', () => {
    expect(questionBefore(options, 'yes')).toBe('Which one do you prefer?');
    expect(questionBefore('Erledigt. Soll ich den alten Code löschen?', 'ja')).toBe(
      'Soll ich den alten Code löschen?',
    );
    expect(questionBefore('修正しました。古いコードも消しますか？', 'はい')).toBe('古いコードも消しますか？');
    expect(questionBefore('已修复。要删除旧代码吗？', '好')).toBe('要删除旧代码吗？');
  });

  it('is empty for an answer that says enough, and where nothing was asked', () => {
    expect(questionBefore(options, `Rename it, and ${'then test it '.repeat(6)}`)).toBe('');
    expect(questionBefore('Done.', 'ok')).toBe('');
    expect(questionBefore('', '2')).toBe('');
  });

  it('is short, and no cut word, however much was asked', () => {
    const many = Array.from({ length: 20 }, (_, at) => `${at + 1}. ${'word '.repeat(200)}`).join('\n');
    const question = questionBefore(many, '1 2 3 4 5 6 7');
    expect(question.length).toBeLessThanOrEqual(480);
    expect(question.replaceAll(/word|[\d./ …]/g, '')).toBe('');
  });
});

describe('what the user typed', () => {
  it('does not include a command of the client without arguments', () => {
    expect(typedText('/release-notes')).toEqual({ words: '', note: 'command /release-notes' });
    expect(typedText(' /workflows:review\n').words).toBe('');
    expect(typedText('/compact keep the plan').words).toBe('/compact keep the plan');
    expect(typedText('/srv/a.txt is the file').words).toBe('/srv/a.txt is the file');
  });

  it('keeps the numbers of its items', () => {
    expect(linesOf('Do this:\n1. start it\n- then stop\n  2) again\n12→line of a file')).toEqual([
      'Do this:',
      '1. start it',
      'then stop',
      '2) again',
      'line of a file',
    ]);
  });
});

it('quotes in a text are those of three words or more, each once', () => {
  expect(
    quotesIn(
      'The user said "never touch the schema" and “keep the old API”, again "never touch the schema", "ok".',
    ),
  ).toEqual(['never touch the schema', 'keep the old API']);
  expect(quotesIn('用户说「不要修改数据库结构」。')).toEqual(['不要修改数据库结构']);
  expect(quotesIn('"'.repeat(100_000))).toEqual([]);
});
