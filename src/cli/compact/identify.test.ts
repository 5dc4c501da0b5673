import { describe, expect, it } from 'vitest';
import type { Format } from '../flags.ts';
import { identify } from './identify.ts';

function identified(value: unknown, format: Format = 'auto'): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const found = identify(new TextEncoder().encode(text), format, 1_000);
  return found.status === 'bad' ? found.reason : `${found.format} ${found.id ?? '-'}`;
}

const user = { role: 'user', content: 'Hello' };
const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'b' }] };

describe('identify', () => {
  it.each<[string, unknown, string]>([
    ['plain texts', { messages: [user] }, 'chat -'],
    ['an id', { id: 'run/1', messages: [user] }, 'chat run/1'],
    ['an id that is not a text', { id: 7, messages: [user] }, 'chat -'],
    ['a tool message', { messages: [user, { role: 'tool', tool_call_id: 'a', content: '' }] }, 'chat -'],
    ['calls next to the content', { messages: [{ role: 'assistant', tool_calls: [] }] }, 'chat -'],
    ['a system text next to the messages', { system: 'Be brief.', messages: [user] }, 'anthropic -'],
    ['tools with input_schema', { tools: [{ input_schema: {} }], messages: [user] }, 'anthropic -'],
    ['result blocks', { messages: [user, result] }, 'anthropic -'],
    ['texts that two formats allow, whatever the model', { model: 'claude-x', messages: [user] }, 'chat -'],
    [
      'a system message first, whatever the model',
      { model: 'claude-x', messages: [{ role: 'system', content: '' }, user] },
      'chat -',
    ],
    [
      'a system message in the middle, as some clients send it',
      { system: [], messages: [user, { role: 'system', content: '' }] },
      'anthropic -',
    ],
    ['a list of items', { id: 'run/2', input: [user] }, 'responses run/2'],
    ['an input that is one text', { input: 'Hello' }, 'responses -'],
    ['contents', { contents: [{ parts: [{ text: 'Hello' }] }] }, 'gemini -'],
    ['messages, whatever else the body contains', { input: 'Hello', messages: [user] }, 'chat -'],
  ])('detects the format by %s', (_, body, expected) => {
    expect(identified(body)).toBe(expected);
  });

  it('uses the given format', () => {
    expect(identified({ messages: [user] }, 'anthropic')).toBe('anthropic -');
    expect(identified({ system: '', messages: [result] }, 'chat')).toBe('chat -');
    expect(identified({ messages: [], input: [] }, 'responses')).toBe('responses -');
    expect(identified({ messages: [], contents: [] }, 'gemini')).toBe('gemini -');
    expect(identified({ messages: [] }, 'gemini')).toBe("it has no list 'contents'");
    expect(identified({ contents: 'Hello' }, 'gemini')).toBe("it has no list 'contents'");
  });

  it.each([
    ['[]', 'not a JSON object'],
    ['{"a":1}', "it has no list 'messages', 'input' or 'contents'"],
    ['{"messages":{},"input":7,"contents":""}', "it has no list 'messages', 'input' or 'contents'"],
    ['x'.repeat(1_001), 'it has 1001 bytes, more than limits.maxBodyBytes (1000)'],
  ])('says what is wrong with %s', (text, reason) => {
    expect(identified(text)).toBe(reason);
  });

  it('says what is wrong with bytes that are not JSON', () => {
    expect(identified('{"messages":')).toMatch(/^not JSON: /);
    expect(identify(new Uint8Array([34, 255, 34]), 'auto', 10)).toEqual({
      status: 'bad',
      reason: 'not UTF-8',
    });
  });
});
