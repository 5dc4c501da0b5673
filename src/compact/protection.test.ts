import { describe, expect, it } from 'vitest';
import { chatBody, readChat } from '../testing/chat-conversation.ts';
import { sha256 } from '../memory/digest.ts';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { keptMessages, protectionOf } from './protection.ts';

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

describe('what no fold takes', () => {
  it('is what the user asked last, also where a client reminds of something beside each result', () => {
    const step = (id: string) => [
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'run', input: {} }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: id, content: 'Done.' },
          { type: 'text', text: '<system-reminder>Mind the list.</system-reminder>' },
        ],
      },
    ];
    const messages = [
      { role: 'user', content: 'An old question.' },
      { role: 'assistant', content: 'An answer.' },
      { role: 'user', content: 'What is asked now.' },
      ...step('a'),
      ...step('b'),
    ];
    const body = new TextEncoder().encode(JSON.stringify({ model: 'm', max_tokens: 9, messages }));
    const conversation = anthropicMessages.read(body, { digest: sha256, outlines: new Map() });
    expect([...keptMessages(conversation)].toSorted((one, other) => one - other)).toEqual([2, 5, 6]);
  });
});
