import { describe, expect, it } from 'vitest';
import { anthropicMessages } from './anthropic-messages/index.ts';
import type { Codec } from './codec.ts';
import { gemini } from './gemini/index.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';

const facts = (codec: Codec, fields: object) =>
  codec.resending(new TextEncoder().encode(JSON.stringify(fields)));
const own = { type: 'function', name: 'run' };

describe('a request that is sent again', () => {
  it.each<readonly [Codec, object, { readonly maxOutputTokens?: number; readonly replies?: number }]>([
    [openaiChat, { tools: [own, { type: 'custom' }], max_tokens: 5, store: false }, { maxOutputTokens: 5 }],
    [openaiChat, { max_completion_tokens: 7, n: 2 }, { maxOutputTokens: 7, replies: 2 }],
    [openaiChat, { n: 8 }, { replies: 8 }],
    [
      anthropicMessages,
      { tools: [{ name: 'run' }, { type: 'bash_20250124' }], max_tokens: 9 },
      { maxOutputTokens: 9 },
    ],
    [openaiResponses, { store: false, tools: [own], previous_response_id: null }, {}],
    [
      gemini,
      { tools: [{ functionDeclarations: [] }], generationConfig: { maxOutputTokens: 3 } },
      { maxOutputTokens: 3 },
    ],
    [
      gemini,
      { generation_config: { max_output_tokens: 3, candidate_count: 2 } },
      { maxOutputTokens: 3, replies: 2 },
    ],
  ])('has no effect at the provider: %#', (codec, fields, limits) => {
    expect(facts(codec, fields)).toEqual({ effect: undefined, maxOutputTokens: undefined, ...limits });
  });

  it.each<readonly [Codec, object, string]>([
    [openaiChat, { store: true }, 'store'],
    [openaiChat, { web_search_options: {} }, 'web_search_options'],
    [openaiChat, { tools: [own, { type: 'browser' }] }, 'the tool browser of the provider'],
    [anthropicMessages, { mcp_servers: [{ name: 'a' }] }, 'mcp_servers'],
    [anthropicMessages, { container: 'c' }, 'container'],
    [
      anthropicMessages,
      { tools: [{ type: 'web_search_20250305' }] },
      'the tool web_search_20250305 of the provider',
    ],
    [openaiResponses, { tools: [own] }, 'store'],
    [openaiResponses, { store: true }, 'store'],
    [openaiResponses, { store: false, background: true }, 'background'],
    [openaiResponses, { store: false, previous_response_id: 'resp_1' }, 'previous_response_id'],
    [openaiResponses, { store: false, conversation: 'conv_1' }, 'conversation'],
    [
      openaiResponses,
      { store: false, tools: [{ type: 'web_search' }] },
      'the tool web_search of the provider',
    ],
    [gemini, { cachedContent: 'cachedContents/1' }, 'cachedContent'],
    [gemini, { tools: [{ googleSearch: {} }] }, 'the tool googleSearch of the provider'],
  ])('has an effect at the provider: %#', (codec, fields, effect) => {
    expect(facts(codec, fields).effect).toBe(effect);
  });
});
