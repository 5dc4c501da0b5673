import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../../codecs/anthropic-messages/index.ts';
import { openaiChat } from '../../codecs/openai-chat/index.ts';
import { chatBody, freshReading, type Step } from '../../../test/support/chat-conversation.ts';
import { conversationCounter } from '../../tokens/count-conversation.ts';
import { loadExactCounter } from '../../tokens/load-counter.ts';
import { conversationBody } from './conversation-body.ts';
import { chat, readSource, wholeConversations } from './sources.ts';

const counter = await loadExactCounter('o200k_base');
const options = { format: 'auto', maxBytes: 1_000_000, prefix: 500, counter } as const;
const where = { place: 'runs.jsonl, line 3', file: 'runs.jsonl' };
const bytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

const messages = [
  { role: 'user', content: 'Look.' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: 'c', content: 'Nothing.' },
];

function preambleTokens(body: Uint8Array): number {
  const conversation = openaiChat.read(body, freshReading());
  const counts = conversationCounter(counter);
  return conversation.preamble.reduce((sum, block) => sum + counts.block(conversation, block), 0);
}

describe('conversationBody', () => {
  it('adds tools of a number of tokens: the recorded ones, or those that are called, and a filler', () => {
    const body = conversationBody({ messages }, 500, counter);
    expect(preambleTokens(body)).toBe(500);
    const recorded = conversationBody(
      { messages, tools: [{ type: 'function', function: { name: 'other' } }] },
      500,
      counter,
    );
    expect(preambleTokens(recorded)).toBe(500);
    const namesIn = (from: Uint8Array) => openaiChat.read(from, freshReading()).toolNames;
    expect([namesIn(body), namesIn(recorded)]).toEqual([
      ['look', 'filler'],
      ['other', 'filler'],
    ]);
  });

  it('keeps all tools when there are more', () => {
    expect(preambleTokens(conversationBody({ messages }, 5, counter))).toBeGreaterThan(20);
  });
});

describe('readSource', () => {
  it('adds a prefix and a source to a recorded conversation', () => {
    const read = readSource(bytes({ id: 'run/1', source: 'bench', messages }), where, options);
    expect(read).toMatchObject({ status: 'ok', source: { id: 'run/1', source: 'bench', format: chat } });
    if (read.status === 'ok') expect(preambleTokens(read.source.body)).toBe(500);
  });

  it('reads a request as it was sent', () => {
    const body = bytes({ model: 'm', messages });
    expect(readSource(body, where, options)).toEqual({
      status: 'ok',
      source: { id: where.place, source: where.file, format: chat, body },
    });
    const other = bytes({
      model: 'claude-x',
      system: 'Be brief.',
      messages: [{ role: 'user', content: 'Hi' }],
    });
    const read = readSource(other, where, options);
    expect(read.status === 'ok' && read.source.format.codec).toBe(anthropicMessages);
  });

  it('says why a line cannot be used', () => {
    expect(readSource(bytes({ a: 1 }), where, options)).toEqual({
      status: 'bad',
      reason: "it has no list 'messages', 'input' or 'contents'",
    });
  });
});

describe('wholeConversations', () => {
  it('leaves out requests that others continue, and duplicates', () => {
    const sourceOf = (id: string, steps: readonly Step[]) => ({
      id,
      source: 's',
      format: chat,
      body: chatBody(steps),
    });
    const first: readonly Step[] = [{ user: 'Begin.' }];
    const second: readonly Step[] = [...first, { assistant: 'Begun.' }, { user: 'On.' }];
    const sources = [
      sourceOf('first', first),
      sourceOf('second', second),
      sourceOf('another way', [...first, { assistant: 'No.' }, { user: 'On.' }]),
      sourceOf('second again', second),
      { id: 'broken', source: 's', format: chat, body: new TextEncoder().encode('{') },
    ];
    expect(wholeConversations(sources).map(({ id }) => id)).toEqual(['second', 'another way', 'broken']);
  });
});
