import { describe, expect, it } from 'vitest';
import { chatBody } from '../../test/support/chat-conversation.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { unremembered } from '../codecs/read-body.ts';
import { callsOf, decisionOf, type Level, sumsOf } from './decision.ts';

const call = (name: string, sent: unknown) => ({
  id: 'c',
  name,
  argumentsJson: typeof sent === 'string' ? sent : JSON.stringify(sent),
});

type Calls = readonly ReturnType<typeof call>[];

/** Returns the levels at which two replies are the same decision. */
function same(one: Calls, other: Calls): readonly Level[] {
  const [left, right] = [one, other].map((calls) => decisionOf({ calls, finish: 'tool_use' }));
  return (['tool', 'target', 'arguments'] as const).filter((level) => left![level] === right![level]);
}

const read = (path: string, more = {}) => call('Read', { file_path: path, ...more });
const run = (command: string | readonly string[], more = {}) => call('Bash', { command, ...more });

describe('two replies', () => {
  it('are one decision with the same calls in another order', () => {
    expect(same([read('a/b.ts'), run('ls')], [run('ls'), read('a/b.ts')])).toHaveLength(3);
  });

  it('differ at all levels with another tool, or with another number of calls', () => {
    expect(same([read('a/b.ts')], [run('ls')])).toEqual([]);
    expect(same([run('ls')], [run('ls'), run('ls')])).toEqual([]);
  });

  it('have the same target when they read other lines of a file', () => {
    expect(same([read('/repo/src/a.ts')], [read('src/a.ts', { offset: 10 })])).toEqual(['tool', 'target']);
    expect(same([read('src/a.ts')], [read('src/b.ts')])).toEqual(['tool']);
  });

  it('have the same target when a command differs in its options only', () => {
    expect(same([run('cd /repo && npm test -- src/a.ts')], [run('npm  test src/a.ts')])).toEqual([
      'tool',
      'target',
    ]);
    expect(same([run('git diff')], [run('git log')])).toEqual(['tool']);
    expect(same([run('ls  -l', { description: 'Lists.' })], [run('ls -l')])).toHaveLength(3);
  });

  it('have the same arguments when an edit results in the same lines', () => {
    const edit = (old: string) => call('Edit', { new_string: 'b', file_path: 'x/y', old_string: old });
    expect(same([edit('a')], [edit('aa')])).toHaveLength(3);
  });

  it('are compared by the file of a patch that is not JSON', () => {
    const patch = (line: string) =>
      call('apply_patch', `*** Begin Patch\n*** Update File: src/a.ts\n${line}`);
    expect(same([patch('+a')], [patch('+b')])).toEqual(['tool', 'target']);
  });

  it('without a call are compared by why the model stopped', () => {
    const stopped = (finish: string) => decisionOf({ calls: [], finish }).target;
    expect(stopped('end_turn')).toBe(stopped('end_turn'));
    expect(stopped('end_turn')).not.toBe(stopped('max_tokens'));
  });
});

describe('the sums over replies', () => {
  it('count those whose calls are all calls of the conversation, with their arguments in any order', () => {
    const steps = [{ calls: [{ name: 'Read', input: '{"file_path":"src/a.ts", "limit":5}', result: 'a' }] }];
    const body = chatBody([{ user: 'Go on.' }, ...steps], { tools: ['Read'], model: 'gpt-4o' });
    const earlier = callsOf(openaiChat.read(body, unremembered));
    const again = call('Read', { limit: 5, file_path: 'src/a.ts' });
    const replies = [[again], [again, run('ls')], [read('src/a.ts')], []].map((calls) => ({
      reply: { calls },
      tokensOut: 7,
    }));
    expect(sumsOf(replies, earlier)).toEqual({ replies: 4, tokensOut: 28, repeats: 1 });
  });
});
