import { describe, expect, it } from 'vitest';
import type { Codec } from '../codecs/codec.ts';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { gemini } from '../codecs/gemini/index.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import { itemTokens } from './spelling.ts';
import { counted, instructions, question, weather } from '../../test/support/counted-request.ts';

describe('a conversation', () => {
  const sealed = 'c2VhbGVk'.repeat(20);
  const { parameters, ...named } = weather;
  const [at, input] = ['{"location":"Rome"}', { location: 'Rome' }];
  const call = (id: string) => ({ id, type: 'function', function: { name: weather.name, arguments: at } });
  const requests: readonly (readonly [string, Codec, object])[] = [
    [
      'Messages',
      anthropicMessages,
      {
        system: instructions,
        tools: [{ ...named, input_schema: parameters, cache_control: { type: 'ephemeral' } }],
        messages: [
          { role: 'user', content: question },
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: 'Two.', signature: sealed },
              { type: 'text', text: 'Let me see.' },
              ...['a', 'b'].map((id) => ({ type: 'tool_use', id, name: weather.name, input })),
            ],
          },
          {
            role: 'user',
            content: ['a', 'b'].map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'Sunny.' })),
          },
          { role: 'assistant', content: 'It is sunny.' },
        ],
      },
    ],
    [
      'Responses',
      openaiResponses,
      {
        instructions,
        tools: [{ type: 'function', ...weather, strict: false }],
        input: [
          { role: 'user', content: question },
          {
            type: 'reasoning',
            id: 'rs_1',
            encrypted_content: sealed,
            summary: [{ type: 'summary_text', text: 'Two.' }],
          },
          {
            type: 'message',
            role: 'assistant',
            content: [{ type: 'output_text', text: 'Let me see.', annotations: [] }],
          },
          ...['a', 'b'].map((id) => ({
            type: 'function_call',
            call_id: id,
            name: weather.name,
            arguments: at,
          })),
          ...['a', 'b'].map((id) => ({ type: 'function_call_output', call_id: id, output: 'Sunny.' })),
          { role: 'assistant', content: 'It is sunny.' },
        ],
      },
    ],
    [
      'Chat Completions',
      openaiChat,
      {
        tools: [{ type: 'function', function: weather }],
        messages: [
          { role: 'system', content: instructions },
          { role: 'user', content: question },
          { role: 'assistant', content: 'Let me see.', tool_calls: [call('a'), call('b')] },
          ...['a', 'b'].map((id) => ({ role: 'tool', tool_call_id: id, content: 'Sunny.' })),
          { role: 'assistant', content: 'It is sunny.' },
        ],
      },
    ],
    [
      'Gemini',
      gemini,
      {
        systemInstruction: { parts: [{ text: instructions }] },
        tools: [{ functionDeclarations: [{ ...named, parametersJsonSchema: parameters }] }],
        contents: [
          { role: 'user', parts: [{ text: question }] },
          {
            role: 'model',
            parts: [
              { text: 'Let me see.' },
              ...['a', 'b'].map((id) => ({ functionCall: { id, name: weather.name, args: input } })),
            ],
          },
          {
            role: 'user',
            parts: ['a', 'b'].map((id) => ({
              functionResponse: {
                id,
                name: weather.name,
                response: { name: weather.name, content: 'Sunny.' },
              },
            })),
          },
          { role: 'model', parts: [{ text: 'It is sunny.' }] },
        ],
      },
    ],
  ];

  it.each(['gpt-5', 'claude-sonnet-5', 'gemini-3-pro', 'llama-4'])(
    'has one count in all formats and spellings, for %s',
    async (model) => {
      const counts = await Promise.all(
        requests.flatMap(([, codec, request]) => [
          counted(codec, model, request),
          counted(codec, model, request, 4),
        ]),
      );
      // Chat Completions and Gemini have no sealed copy of the reasoning here: 160 bytes are 32 tokens.
      const [most] = counts;
      expect(counts.map((tokens) => most! - tokens)).toEqual([0, 0, 0, 0, 32, 32, 32, 32]);
    },
  );

  it('has one count with each id of an original', async () => {
    const stub = (id: string) => ({
      messages: [{ role: 'user', content: `[Folded. read_memory {"id":"${id}"} shows it]` }],
    });
    const [one, other] = ['mem_0000000000000000', 'mem_a1b2c3d4e5f6g7h8'];
    expect(await counted(openaiChat, 'gpt-5', stub(one))).toBe(
      await counted(openaiChat, 'gpt-5', stub(other)),
    );
  });
});

describe('an item that no fold edits', () => {
  it.each([
    [
      'as Messages have it',
      '{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"good bread"}}',
    ],
    [
      'as the AI SDK has it',
      '{"type":"ai-sdk-tool-call","part":{"id":"srvtoolu_1","name":"web_search","input":{"query":"good bread"}}}',
    ],
    [
      'as Responses have it',
      '{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"good bread"}}',
    ],
    ['that cannot be read as JSON', 'good bread'],
  ])('counts a quarter of the bytes of its content, %s', (_, json) => {
    expect(itemTokens(json)).toBe(Math.ceil('good bread'.length / 4));
  });

  it('counts definitions of tools whole, because their names are read', () => {
    const tools = [{ name: 'look', input_schema: { properties: { path: { type: 'string' } } } }];
    expect(itemTokens(JSON.stringify({ type: 'tool_search_output', id: 't', tools }))).toBe(
      Math.ceil(JSON.stringify(tools).length / 4),
    );
  });
});
