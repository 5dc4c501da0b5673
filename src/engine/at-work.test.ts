import { describe, expect, it } from 'vitest';
import { readsAtWork } from './at-work.ts';
import { type Step, chatBody, readChat } from '../../test/support/chat-conversation.ts';

describe('readsAtWork', () => {
  const call = (name: string, input: object): Step => ({
    calls: [{ name, input: JSON.stringify(input), result: 'text' }],
  });
  const found = (steps: readonly Step[]) => [...readsAtWork(readChat(chatBody(steps, { tools: ['run'] })))];

  it('finds the results of reads, also by a command, of files that the newest message of the user names', () => {
    const steps = [
      { user: 'Read all.' },
      call('read', { file_path: '/app/src/a.ts' }),
      call('bash', { command: 'cat src/b.ts' }),
      call('grep', { pattern: 'foo', path: 'src' }),
    ];
    expect(found(steps)).toEqual([]);
    expect(found([...steps, { user: 'Now change a.ts and `src/b.ts`.' }])).toEqual([
      [4, [0]],
      [2, [0]],
    ]);
    expect(found([...steps, { user: 'Change a.ts.' }, { assistant: 'Done.' }, { user: 'Thanks.' }])).toEqual(
      [],
    );
  });

  it('finds those of files that the newest reply names, in its words or its calls', () => {
    const steps = [{ user: 'Go' }, call('read', { path: 'a.ts' }), call('read', { path: 'b.ts' })];
    expect(found(steps)).toEqual([[4, [0]]]);
    expect(found([...steps, call('edit', { path: 'a.ts', old_string: 'x' })])).toEqual([[2, [0]]]);
    expect(found([...steps, call('run', { command: 'make' })])).toEqual([]);
  });
});
