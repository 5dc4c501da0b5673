import { describe, expect, it } from 'vitest';
import { isFileContent } from './outcome.ts';

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
});
