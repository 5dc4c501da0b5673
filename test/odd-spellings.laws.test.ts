/**
 * Tests odd spellings of one step in a folded conversation: the sent request is valid for the provider, which reads it with `JSON.parse`
 * and its own rules, and contains the odd step byte for byte.
 */
import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../src/codecs/codec.ts';
import { geminiFor } from '../src/codecs/gemini/index.ts';
import { openaiChat } from '../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../src/codecs/openai-responses/index.ts';
import { chatRefusal } from './support/fake-provider/chat-rules.ts';
import { geminiRefusal } from './support/fake-provider/gemini-rules.ts';
import { messagesRefusal } from './support/fake-provider/messages-rules.ts';
import { responsesRefusal } from './support/fake-provider/responses-rules.ts';
import type { JsonObject, Refusal } from './support/fake-provider/script.ts';
import { testEngine } from './support/test-engine.ts';

const log = 'one line of the log\\n'.repeat(120);
const model = 'gemini-2.5-pro';

type Shape = {
  readonly codec: Codec;
  readonly refusal: (body: JsonObject) => Refusal | undefined;
  /** Returns a body with these messages, as JSON text. */
  readonly body: (messages: string) => string;
  readonly user: string;
  /** Returns a call and its result. */
  readonly step: (id: string) => string;
};

const shapes: Readonly<Record<string, Shape>> = {
  messages: {
    codec: anthropicMessages,
    refusal: (body) => messagesRefusal(body, { maxTokens: true, strictRoles: false }),
    body: (messages) =>
      `{"model":"claude-sonnet-4-5","max_tokens":9,"tools":[{"name":"run","input_schema":{"type":"object"}}],"messages":[${messages}]}`,
    user: '{"role":"user","content":[{"type":"text","text":"Go."}]}',
    step: (id) =>
      `{"role":"assistant","content":[{"type":"tool_use","id":"${id}","name":"run","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"${id}","is_error":false,"content":[{"type":"text","text":"${log}"}]}]}`,
  },
  chat: {
    codec: openaiChat,
    refusal: chatRefusal,
    body: (messages) =>
      `{"model":"gpt-4o","tools":[{"type":"function","function":{"name":"run"}}],"messages":[${messages}]}`,
    user: '{"role":"user","content":[{"type":"text","text":"Go."}]}',
    step: (id) =>
      `{"role":"assistant","content":null,"tool_calls":[{"id":"${id}","type":"function","function":{"name":"run","arguments":"{}"}}]},{"role":"tool","tool_call_id":"${id}","content":[{"type":"text","text":"${log}"}]}`,
  },
  responses: {
    codec: openaiResponses,
    refusal: (body) => responsesRefusal(body),
    body: (input) =>
      `{"model":"gpt-4o","store":false,"tools":[{"type":"function","name":"run"}],"input":[${input}]}`,
    user: '{"role":"user","content":[{"type":"input_text","text":"Go."}]}',
    step: (id) =>
      `{"type":"function_call","call_id":"${id}","name":"run","arguments":"{}"},{"type":"function_call_output","call_id":"${id}","output":[{"type":"input_text","text":"${log}"}]}`,
  },
  gemini: {
    codec: geminiFor({ model, streaming: false }),
    refusal: (body) => geminiRefusal(body, { model, strictRoles: true }),
    body: (contents) => `{"tools":[{"functionDeclarations":[{"name":"run"}]}],"contents":[${contents}]}`,
    user: '{"role":"user","parts":[{"text":"Go."}]}',
    step: (id) =>
      `{"role":"model","parts":[{"functionCall":{"id":"${id}","name":"run","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"${id}","name":"run","response":{"output":"${log}"}}}]}`,
  },
};

/** Spellings of one member of an object, which `JSON.parse` all reads as the member alone. */
const spellings: Readonly<Record<string, (key: string, value: string) => string>> = {
  'occurs twice': (key, value) => `"${key}":${value},"${key}":${value}`,
  'occurs twice, the first as null': (key, value) => `"${key}":null,"${key}":${value}`,
  'occurs twice, the first as another text': (key, value) => `"${key}":"other","${key}":${value}`,
  'occurs twice, once with an escape': (key, value) =>
    `"${key}":0,"\\u00${key.charCodeAt(0).toString(16)}${key.slice(1)}":${value}`,
  'is spelled with an escape': (key, value) =>
    `"\\u00${key.charCodeAt(0).toString(16)}${key.slice(1)}" : ${value}`,
  'is next to __proto__': (key, value) => `"__proto__":{"${key}":1},"${key}"\n:\t${value},"__proto__":null`,
  'is next to a lone surrogate': (key, value) => `"\\ud83d":"\\ude00","${key}":${value}`,
};

/** Returns the step with one member spelled differently, for each member and spelling. */
function odd(step: string): readonly (readonly [name: string, step: string])[] {
  const places = [...step.matchAll(/"(\w+)":/g)];
  return places.flatMap((place) =>
    Object.entries(spellings).map(([how, spell]) => {
      const start = place.index;
      const from = start + place[0].length;
      const value = step.slice(from, endOfValue(step, from));
      const changed = step.slice(0, start) + spell(place[1]!, value) + step.slice(from + value.length);
      return [`${place[1]} at ${start} ${how}`, changed] as const;
    }),
  );
}

/** Returns the end of the JSON value that begins at `from`: the shortest text that parses. */
function endOfValue(text: string, from: number): number {
  for (let end = from + 1; end <= text.length; end++) {
    if (!/["\]}\w]/.test(text[end - 1]!) || /\w/.test(text[end] ?? '')) continue;
    try {
      JSON.parse(text.slice(from, end));
      return end;
    } catch {
      // The text is not a complete value yet.
    }
  }
  throw new Error('no value');
}

describe.each(Object.entries(shapes))('in %s, a step of which', (_, shape) => {
  const { codec, refusal, body, user, step } = shape;

  it.each(odd(step('call_odd')))('%s is sent valid and unchanged', async (_name, changed) => {
    const steps = Array.from({ length: 12 }, (_step, at) => (at === 4 ? changed : step(`call_${at}`)));
    const whole = body([user, ...steps].join(','));
    expect(refusal(JSON.parse(whole) as JsonObject)).toBeUndefined();
    const { engine } = testEngine({
      triggerOptions: { tokenBudget: { triggerTokens: 1_500, targetTokens: 500, bufferTokens: 100 } },
    });
    const prepared = await engine.prepare({ codec, body: new TextEncoder().encode(whole), tenant: 't' });
    expect(prepared.outcome.status).toBe('compacted');
    const sent = new TextDecoder().decode(prepared.body);
    expect(refusal(JSON.parse(sent) as JsonObject)).toBeUndefined();
    expect(sent.length).toBeLessThan(whole.length / 2);
    // If neighbors of one role are joined, the log of the steps behind this one is a part of its last content.
    const withoutLogs = sent.replaceAll(/,\{"text":"\[Folded (?:[^"\\]|\\.)*"\}/g, '');
    if (/twice|__proto__/.test(_name)) expect(withoutLogs).toContain(changed);
  });
});
