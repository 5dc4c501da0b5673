import { describe, expect, it } from 'vitest';
import { view } from '../../test/support/codec-suite/views.ts';
import type { RecallRound } from '../conversation/conversation.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import type { Codec } from './codec.ts';
import { gemini } from './gemini/index.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';

const encoder = new TextEncoder();
const data = 'iVBORw0KGgo=';
const text = 'The image of mem_a, as it was:';

/** Each format's image, the model's turn with a recall (m1) and a call of the client's (c1), the client's result, and the answers. */
const formats: Readonly<Record<string, Case>> = {
  'Anthropic Messages': {
    codec: anthropicMessages,
    image: {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data },
      cache_control: { type: 'ephemeral' },
    },
    list: 'messages',
    first: { role: 'user', content: 'Look.' },
    recall: { type: 'tool_use', id: 'm1', name: 'read_memory', input: { id: 'mem_a' } },
    call: { type: 'tool_use', id: 'c1', name: 'click', input: {} },
    turnOf: (parts) => parts,
    copyOf: (call) => ({ role: 'assistant', content: [call] }),
    result: { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'done' }] },
    alone: [
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'm1',
            content: [
              { type: 'text', text },
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
            ],
          },
        ],
      },
    ],
    beside: [
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'm1',
            content: [
              { type: 'text', text },
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
            ],
          },
          { type: 'tool_result', tool_use_id: 'c1', content: 'done' },
        ],
      },
    ],
  },
  'OpenAI Responses': {
    codec: openaiResponses,
    image: { type: 'input_image', image_url: `data:image/png;base64,${data}` },
    list: 'input',
    first: { role: 'user', content: 'Look.' },
    recall: { type: 'function_call', call_id: 'm1', name: 'read_memory', arguments: '{"id":"mem_a"}' },
    call: { type: 'function_call', call_id: 'c1', name: 'click', arguments: '{}' },
    turnOf: (parts) => parts,
    copyOf: (call) => call,
    result: { type: 'function_call_output', call_id: 'c1', output: 'done' },
    alone: [
      {
        type: 'function_call_output',
        call_id: 'm1',
        output: [
          { type: 'input_text', text },
          { type: 'input_image', image_url: `data:image/png;base64,${data}` },
        ],
      },
    ],
    beside: [
      {
        type: 'function_call_output',
        call_id: 'm1',
        output: [
          { type: 'input_text', text },
          { type: 'input_image', image_url: `data:image/png;base64,${data}` },
        ],
      },
      { type: 'function_call_output', call_id: 'c1', output: 'done' },
    ],
  },
  'Chat Completions': {
    codec: openaiChat,
    image: { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
    list: 'messages',
    first: { role: 'user', content: 'Look.' },
    recall: { id: 'm1', type: 'function', function: { name: 'read_memory', arguments: '{"id":"mem_a"}' } },
    call: { id: 'c1', type: 'function', function: { name: 'click', arguments: '{}' } },
    turnOf: (tool_calls) => ({ role: 'assistant', content: null, tool_calls }),
    copyOf: (call) => ({ role: 'assistant', content: null, tool_calls: [call] }),
    result: { role: 'tool', tool_call_id: 'c1', content: 'done' },
    alone: [
      { role: 'tool', tool_call_id: 'm1', content: text },
      {
        role: 'user',
        content: [
          { type: 'text', text: '[Recalled content]' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
        ],
      },
    ],
    beside: [
      { role: 'tool', tool_call_id: 'm1', content: text },
      { role: 'tool', tool_call_id: 'c1', content: 'done' },
      {
        role: 'user',
        content: [
          { type: 'text', text: '[Recalled content]' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
        ],
      },
    ],
  },
  'Gemini, an image of a result': {
    ...geminiCase(true),
    alone: [
      {
        role: 'user',
        parts: [
          {
            functionResponse: {
              id: 'm1',
              name: 'read_memory',
              response: { output: text },
              parts: [{ inlineData: { mimeType: 'image/png', data } }],
            },
          },
        ],
      },
    ],
    beside: [
      {
        role: 'user',
        parts: [
          {
            functionResponse: {
              id: 'm1',
              name: 'read_memory',
              response: { output: text },
              parts: [{ inlineData: { mimeType: 'image/png', data } }],
            },
          },
          { functionResponse: { id: 'c1', name: 'click', response: { output: 'done' } } },
        ],
      },
    ],
  },
  'Gemini, an image of the user': {
    ...geminiCase(false),
    alone: [
      {
        role: 'user',
        parts: [
          { functionResponse: { id: 'm1', name: 'read_memory', response: { output: text } } },
          { inlineData: { mimeType: 'image/png', data } },
        ],
      },
    ],
    beside: [
      {
        role: 'user',
        parts: [
          { functionResponse: { id: 'm1', name: 'read_memory', response: { output: text } } },
          { functionResponse: { id: 'c1', name: 'click', response: { output: 'done' } } },
          { inlineData: { mimeType: 'image/png', data } },
        ],
      },
    ],
  },
};

type Case = {
  readonly codec: Codec;
  readonly image: object;
  readonly inResult?: boolean;
  readonly list: string;
  readonly first: object;
  readonly recall: object;
  readonly call: object;
  readonly turnOf: (parts: readonly object[]) => unknown;
  readonly copyOf: (call: object) => object;
  readonly result: object;
  readonly alone: readonly object[];
  readonly beside: readonly object[];
};

function geminiCase(inResult: boolean): Omit<Case, 'alone' | 'beside'> {
  return {
    codec: gemini,
    image: { inlineData: { mimeType: 'image/png', data } },
    inResult,
    list: 'contents',
    first: { role: 'user', parts: [{ text: 'Look.' }] },
    recall: { functionCall: { id: 'm1', name: 'read_memory', args: { id: 'mem_a' } } },
    call: { functionCall: { id: 'c1', name: 'click', args: {} } },
    turnOf: (parts) => ({ role: 'model', parts }),
    copyOf: (call) => ({ role: 'model', parts: [call] }),
    result: {
      role: 'user',
      parts: [{ functionResponse: { id: 'c1', name: 'click', response: { output: 'done' } } }],
    },
  };
}

function roundOf({ image, inResult = true, turnOf }: Case, parts: readonly object[]): RecallRound {
  const call = { id: 'm1', name: 'read_memory', argumentsJson: '{"id":"mem_a"}' };
  const media = [{ json: JSON.stringify(image), inResult }];
  return { turn: encoder.encode(JSON.stringify(turnOf(parts))), answers: [{ call, text, media }] };
}

const bodyOf = (one: Case, messages: readonly object[]) =>
  encoder.encode(JSON.stringify({ model: 'm', [one.list]: messages }));

const listOf = (one: Case, body: Uint8Array): readonly unknown[] =>
  (JSON.parse(new TextDecoder().decode(body)) as Record<string, unknown[]>)[one.list]!;

describe.each(Object.entries(formats))('A recalled image in %s', (_, one) => {
  it('is part of the answer, or of a message of the user after it', () => {
    const { turn, answers } = roundOf(one, [one.recall]);
    const sent = one.codec.continueWith(
      bodyOf(one, [one.first]),
      { turn } as Parameters<Codec['continueWith']>[1],
      answers,
    );
    expect(listOf(one, sent).slice(2)).toEqual(one.alone);
  });

  it("comes in a valid order beside the client's own results in later requests", () => {
    const round = roundOf(one, [one.recall, one.call]);
    const client = view(one.codec, bodyOf(one, [one.first, one.copyOf(one.call), one.result]));
    const hiddenRecall = { rounds: [round], closing: undefined };
    const body = one.codec.insertHiddenRecalls(client, [{ at: 1, candidates: [hiddenRecall] }]);
    expect(listOf(one, body).slice(-one.beside.length)).toEqual(one.beside);
    expect(one.codec.rules.problems(view(one.codec, body))).toEqual([]);
    expect(one.codec.rules.faults(body)).toEqual([]);
  });
});
