import { describe, expect, it } from 'vitest';
import { chatBody, chatMessages, readChat, type Step } from '../testing/chat-conversation.ts';
import { foldView, strategySuite, written } from '../testing/strategy-suite.ts';
import { dropFailedCalls } from './drop-failed-calls.ts';

strategySuite(dropFailedCalls);

const tools = ['read_file'];
const good = { name: 'read_file', result: 'text' };
const bad = { name: 'open_file', result: "Error: tool 'open_file' not found. Available tools: read_file" };

function afterDropping(steps: readonly Step[]) {
  const conversation = readChat(chatBody(steps, { tools }));
  const after = written(conversation, dropFailedCalls.propose(foldView(conversation)));
  return (JSON.parse(new TextDecoder().decode(after.body)) as { messages: unknown }).messages;
}

describe('drop-failed-calls', () => {
  it('drops a call to a tool that does not exist, with its error', () => {
    expect(afterDropping([{ user: 'Go' }, { calls: [bad] }, { assistant: 'Hm.' }])).toEqual(
      chatMessages([{ user: 'Go' }, { assistant: 'Hm.' }]),
    );
  });

  it('keeps the other calls of the same message', () => {
    expect(afterDropping([{ user: 'Go' }, { calls: [good, bad] }])).toEqual(
      chatMessages([{ user: 'Go' }, { calls: [good] }]),
    );
  });

  it('keeps what the assistant said beside the call', () => {
    expect(afterDropping([{ user: 'Go' }, { text: 'I look.', calls: [bad] }])).toEqual([
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: 'I look.' },
    ]);
  });

  it.each([
    ['a tool that is offered, whatever it answers', { name: 'read_file', result: 'Unknown tool: x' }],
    [
      'a tool that answered something else than that it does not exist',
      { name: 'open_file', result: 'contents' },
    ],
    [
      'a long text that happens to mention it',
      { name: 'open_file', result: `Unknown tool: x${' '.repeat(2_000)}` },
    ],
  ])('keeps a call to %s', (_, call) => {
    const steps = [{ user: 'Go' }, { calls: [call] }];
    expect(afterDropping(steps)).toEqual(chatMessages(steps));
  });

  it('does nothing when the request offers no tools, as nobody knows then which exist', () => {
    const conversation = readChat(chatBody([{ calls: [bad] }]));
    expect(dropFailedCalls.propose(foldView(conversation))).toEqual([]);
  });
});
