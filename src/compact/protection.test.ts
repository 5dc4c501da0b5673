import { describe, expect, it } from 'vitest';
import { chatBody, readChat } from '../testing/chat-conversation.ts';
import { protectionOf } from './protection.ts';

describe('a pinned text', () => {
  it('protects the call whose arguments hold it, however they spell it', () => {
    const inputs = [
      '{"path":"caf\\u00e9","content":"one\\n\\"two\\""}',
      '{"path":"caf\u00e9"}',
      'run caf\u00e9',
      '{"path":"cafe"}',
    ];
    const conversation = readChat(
      chatBody(inputs.map((input) => ({ calls: [{ name: 'run', input, result: 'r' }] }))),
    );
    const heldBy = (...texts: readonly string[]) => {
      const protects = protectionOf(conversation, { pins: { tools: [], texts }, recallTool: undefined });
      return inputs.map((_, at) => protects.part(2 * at, 0));
    };
    expect(heldBy('caf\u00e9')).toEqual([true, true, true, false]);
    expect(heldBy('nothing', 'one\n"two"')).toEqual([true, false, false, false]);
  });
});
