import { describe, expect, it } from 'vitest';
import { chatBody, readChat, type Step } from '../../test/support/chat-conversation.ts';
import { conversationCounter } from '../tokens/count-conversation.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import { costOf, createBill } from './tally.ts';

/** Counts one token per character. */
const characters: TokenCounter = {
  name: 'characters',
  exact: true,
  count: (text) => text.length,
  image: () => 0,
  overhead: { message: 0, tool: 0, request: 0 },
};

const request = (...texts: readonly string[]) =>
  readChat(chatBody(texts.map((text, at): Step => (at % 2 === 0 ? { user: text } : { assistant: text }))));

describe('createBill', () => {
  it('reads the beginning that a request shares with the previous one, and writes the rest', () => {
    const bill = createBill(conversationCounter(characters));
    expect(bill(request('first'))).toEqual({ context: 5, read: 0, written: 5, isStable: true });
    expect(bill(request('first', 'reply', 'on'))).toEqual({
      context: 12,
      read: 5,
      written: 7,
      isStable: true,
    });
    expect(bill(request('first', 'other', 'on'))).toEqual({
      context: 12,
      read: 5,
      written: 7,
      isStable: false,
    });
    expect(bill(request('first'))).toEqual({ context: 5, read: 5, written: 0, isStable: false });
  });

  it('reads nothing if the cache has expired', () => {
    const bill = createBill(conversationCounter(characters));
    bill(request('first'));
    const cold = { context: 12, read: 0, written: 12, isStable: true };
    expect(bill(request('first', 'reply', 'on'), true)).toEqual(cold);
    expect(bill(request('first', 'reply', 'on'))).toEqual({ ...cold, read: 12, written: 0 });
  });

  it('counts tools before the messages', () => {
    const bill = createBill(conversationCounter(characters));
    const withTools = readChat(chatBody([{ user: 'hi' }], { tools: ['look'] }));
    const tools = '{"name":"look","parameters":{"type":"object"}}'.length;
    expect(bill(withTools)).toEqual({ context: tools + 2, read: 0, written: tools + 2, isStable: true });
    expect(bill(withTools)).toEqual({ context: tools + 2, read: tools + 2, written: 0, isStable: true });
  });
});

describe('costOf', () => {
  it('prices tokens read, written and output', () => {
    expect(costOf({ read: 100, written: 10, output: 2 }, { read: 0.1, write: 1.25, output: 5 })).toBe(32.5);
  });
});
