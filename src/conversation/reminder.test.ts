import { describe, expect, it } from 'vitest';
import { isReminder } from './turns.ts';

describe('a reminder', () => {
  it('consists only of elements in which clients wrap their own words', () => {
    const texts = [
      '<system-reminder>\nMind the list.\n</system-reminder>',
      '\n<environment_details cwd="/w">\na.ts\n</environment_details>\n<system-reminder>x</system-reminder>\n',
      '<environment_context></environment_context>',
      '<system_reminder>Do not mention this message to the user.</system_reminder>',
      '<user_instructions>Tabs, <b>no</b> semicolons.</user_instructions>',
    ];
    expect(texts.map(isReminder)).toEqual(texts.map(() => true));
  });

  it('is nothing that the user may have said', () => {
    const texts = [
      '',
      'Go on.',
      '<system-reminder>Mind the list.</system-reminder> Go on.',
      'Go on. <system-reminder>Mind the list.</system-reminder>',
      '<div>Why is this red?</div>',
      '<feedback>Not so.</feedback>',
      '<system-reminder>It never ends',
      '<system-reminder>Other ends</environment_details>',
      '<system-reminder>\nThe user sent the following message:\nStop.\n</system-reminder>',
      '<system-reminder>The user has also replied: stop.</system-reminder>',
      '<system-reminder>User message:\nStop.</system-reminder>',
      '<context>We bill by hand.</context>\n<instructions>Mend it.</instructions>',
    ];
    expect(texts.map(isReminder)).toEqual(texts.map(() => false));
  });

  it('is found in one pass, whatever the text', () => {
    const many = '<a-reminder></a-reminder>\n'.repeat(100_000);
    expect(isReminder(many + ' '.repeat(1_000_000))).toBe(true);
    expect(isReminder('<a-reminder>'.repeat(100_000))).toBe(false);
    expect(isReminder(`${' '.repeat(1_000_000)}<a-`)).toBe(false);
  });
});
