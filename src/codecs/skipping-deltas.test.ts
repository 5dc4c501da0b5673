import { describe, expect, it } from 'vitest';
import type { Codec } from './codec.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import { gemini } from './gemini/index.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';
import { eventOf } from '../../test/support/codec-suite/relay.ts';

const encoder = new TextEncoder();

/** Takes the first event, and says whether the second is skipped to its end. */
function skips(codec: Codec, first: string, second: string): boolean {
  const relay = codec.openStream({ privateTools: new Set(['read_memory']) });
  relay.take(eventOf(first));
  const bytes = encoder.encode(`: before\n\n${second}: after\n\n`);
  const from = ': before\n\n'.length;
  const end = relay.skip(bytes, from);
  expect([from, bytes.length - ': after\n\n'.length]).toContain(end);
  return end > from;
}

const chat = (text: string, more = ',"obfuscation":"ab"', delta = `"content":"${text}"`) =>
  `data: {"id":"c","choices":[{"index":0,"delta":{${delta}},"finish_reason":null}]${more}}\n\n`;

describe('a delta is skipped', () => {
  it('when it differs in its text only', () => {
    expect(skips(openaiChat, chat('Hello'), chat(' wörld'))).toBe(true);
    expect(skips(openaiChat, chat('Hello'), chat(''))).toBe(true);
    expect(skips(openaiChat, chat('Hello'), chat(String.raw`\"a\" \\ \n \u00e9`))).toBe(true);
    expect(skips(openaiChat, chat('\\"content\\":\\"x\\"'), chat('b'))).toBe(true);
  });

  it('when the provider pads it, numbers it, or counts its tokens', () => {
    expect(skips(openaiChat, chat('a'), chat('b', ',"obfuscation":"cde"'))).toBe(true);
    const responses = (number: number) =>
      `event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":${number},"output_index":0,"delta":"a"}\n\n`;
    expect(skips(openaiResponses, responses(9), responses(10))).toBe(true);
    const messages = (spaces: string) =>
      `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}${spaces}}\n\n`;
    expect(skips(anthropicMessages, messages('   '), messages(''))).toBe(true);
    const said = (tokens: number) =>
      `data: {"candidates": [{"content": {"parts": [{"text": "a"}],"role": "model"}}],"usageMetadata": {"promptTokenCount": 4,"candidatesTokenCount": ${tokens}}}\n\n`;
    expect(skips(gemini, said(0), said(12))).toBe(true);
    expect(skips(gemini, said(1), said(12).replace('12', '012'))).toBe(false);
  });

  it('when it has the same lines before and after its data', () => {
    const windows = (sse: string) => sse.replaceAll('\n', '\r\n');
    const relay = openaiChat.openStream({ privateTools: new Set() });
    relay.take({ ...eventOf(chat('a')), raw: encoder.encode(windows(chat('a'))) });
    const next = encoder.encode(windows(chat('b')));
    expect(relay.skip(next, 0)).toBe(next.length);
    expect(relay.skip(encoder.encode(chat('b')), 0)).toBe(0);
    expect(relay.skip(next.subarray(0, -1), 0)).toBe(0);
  });
});

describe('a delta is not skipped', () => {
  it('when it calls, ends, reports usage or belongs to another choice', () => {
    const [first] = [chat('a', '')];
    expect(skips(openaiChat, first, chat('b', ',"usage":{"prompt_tokens":1}'))).toBe(false);
    expect(
      skips(openaiChat, first, chat('b', '').replace('"finish_reason":null', '"finish_reason":"stop"')),
    ).toBe(false);
    expect(skips(openaiChat, first, chat('b', '').replace('"index":0', '"index":1'))).toBe(false);
    expect(skips(openaiChat, first, chat('', '', '"tool_calls":[{"index":0}]'))).toBe(false);
  });

  it('when its text is not a JSON string or its bytes could end it', () => {
    for (const text of ['a\nb', 'a"', '\\x', '\\u00g0', '\\'])
      expect(skips(openaiChat, chat('a'), chat(text))).toBe(false);
  });

  it('when a key in it is spelled with escapes', () => {
    const twice = chat('', '', '"content":"a","\\u0063ontent":"b"');
    expect(skips(openaiChat, twice, twice)).toBe(false);
  });
});
