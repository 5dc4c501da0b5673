import { describe, expect, it } from 'vitest';
import { chatBody, readChat, type Step } from '../../test/support/chat-conversation.ts';
import type { Conversation, Message, Part, Role } from './conversation.ts';
import {
  lastAssistant,
  lastUser,
  newestBatch,
  privateToolsOf,
  systemMessages,
  turnStart,
  unitsOf,
} from './turns.ts';

it('tells tools of Leporello from those of a client, even if one of these has both names', () => {
  const tools = privateToolsOf(['read_memory', undefined, 'save_context']);
  const names = ['read_memory', 'save_context', 'read_memory save_context', 'read', ''];
  expect(names.filter((name) => tools.has(name))).toEqual(['read_memory', 'save_context']);
  expect(privateToolsOf([undefined])).toEqual(new Set());
});

describe('where a turn begins', () => {
  it('is the newest user message that answers no call', () => {
    expect(turnStart(conversation('user', 'assistant', 'tool', 'user', 'assistant', 'tool'))).toBe(3);
    expect(turnStart(conversation('system', 'user'))).toBe(1);
  });

  it('is not a message with results, even if the user says something in it', () => {
    const { messages, ...others } = conversation('user', 'assistant', 'tool', 'user');
    const [asked, called, answered, said] = messages as [Message, Message, Message, Message];
    const beside: Message = { ...answered, role: 'user', parts: [...answered.parts, ...said.parts] };
    const mixed = { ...others, messages: [asked, called, beside] };
    expect(turnStart(mixed)).toBe(0);
    expect(lastUser(mixed)).toBe(2);
  });

  it('is not what a tool showed, which clients of Chat Completions send as a message of nothing but media after the result', () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };
    const calls = [{ id: 'c1', type: 'function', function: { name: 'computer', arguments: '{}' } }];
    const step = [
      { role: 'assistant', content: null, tool_calls: calls },
      { role: 'tool', tool_call_id: 'c1', content: 'Clicked.' },
    ];
    const read = (...messages: readonly object[]) =>
      readChat(new TextEncoder().encode(JSON.stringify({ model: 'm', messages })));
    const task = { role: 'user', content: 'Book a flight.' };
    const shown = read(task, ...step, { role: 'user', content: [image] }, ...step);
    expect([turnStart(shown), lastUser(shown)]).toEqual([0, 0]);
    expect(unitsOf(shown).map((unit) => unit.map(({ index }) => index))).toEqual([[0], [1, 2, 3], [4, 5]]);

    const words = { role: 'user', content: [{ type: 'text', text: 'Like this.' }, image] };
    expect(turnStart(read(task, ...step, words))).toBe(3);
    const answered = { role: 'assistant', content: 'Which page?' };
    expect(turnStart(read(task, ...step, answered, { role: 'user', content: [image] }))).toBe(4);
  });

  it("is not a client's reminder, unless nothing else is left", () => {
    const reminder: Step = { user: '<system-reminder>Mind the list.</system-reminder>' };
    const begins = (...steps: readonly Step[]) => {
      const read = readChat(chatBody(steps));
      return [turnStart(read), lastUser(read)];
    };
    expect(begins({ user: 'Go' }, { assistant: 'Done.' }, reminder)).toEqual([0, 0]);
    expect(begins(reminder, { assistant: 'Done.' }, reminder)).toEqual([2, undefined]);
  });

  it('is undefined without a user message', () => {
    expect(turnStart(conversation('system', 'assistant', 'tool'))).toBeUndefined();
    expect(turnStart(conversation())).toBeUndefined();
  });
});

it('finds the same in a conversation that continues as in one that is read for the first time', () => {
  const steps: readonly Step[] = [
    { user: 'Go' },
    { calls: [{ name: 'run', input: '{}', result: 'ok' }] },
    { user: '<system-reminder>Mind the list.</system-reminder>' },
    { assistant: 'Done.' },
    { user: 'And now?' },
    ...Array.from({ length: 12 }, (): Step => ({ calls: [{ name: 'run', input: '{}', result: 'ok' }] })),
  ];
  const { messages, ...others } = readChat(chatBody(steps));
  const list = messages.with(5, { ...messages[5]!, role: 'system' });
  const facts = (one: Conversation) => [lastUser(one), turnStart(one), systemMessages(one)];
  const lengths = [...list.keys(), list.length];
  for (const length of [3, 0, 20, 21, 8, ...lengths, 25, 4, ...lengths.toReversed()]) {
    const first = list.slice(0, length);
    const unread = first.map((message) => ({ ...message }));
    expect(facts({ ...others, messages: first })).toEqual(facts({ ...others, messages: unread }));
  }
  expect(systemMessages({ ...others, messages: list })).toEqual([5]);
});

describe('the newest assistant message', () => {
  it('is found from the end, or undefined', () => {
    expect(lastAssistant(conversation('assistant', 'user', 'assistant', 'tool', 'user'))).toBe(2);
    expect(lastAssistant(conversation('user'))).toBeUndefined();
  });
});

describe('the newest tool batch', () => {
  it('is the run of messages with tool results that ends last', () => {
    expect([...newestBatch(conversation('assistant', 'tool', 'assistant', 'tool', 'tool', 'user'))]).toEqual([
      4, 3,
    ]);
    expect([...newestBatch(conversation('tool', 'tool'))]).toEqual([1, 0]);
  });

  it('is empty when no tool was used', () => {
    expect([...newestBatch(conversation('user', 'assistant'))]).toEqual([]);
  });
});

function conversation(...roles: readonly Role[]): Conversation {
  const span = { start: 0, end: 0 };
  const messages = roles.map((role, index): Message => {
    const part: Part =
      role === 'tool'
        ? { type: 'tool-result', span, callId: 'a', texts: [], media: [], isError: undefined }
        : { type: 'text', span, texts: [span] };
    return { index, role, parts: [part], span, digest: '', canonical: '' };
  });
  const body = new Uint8Array();
  return {
    body,
    model: undefined,
    streaming: false,
    replies: 1,
    maxOutputTokens: undefined,
    toolNames: [],
    preamble: [],
    messages,
  };
}
