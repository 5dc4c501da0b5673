/** Usage as OpenAI Responses reports it: once, in the response of the last event. */
import type { UsageFixture } from '../fixture.ts';
import { sseEvents } from '../sse.ts';
import { responseSaying } from './responses.ts';
import { streamSaying } from './streams.ts';

type Json = Readonly<Record<string, unknown>>;

export const usage: UsageFixture = {
  rounds: [
    {
      said: {
        input_tokens: 100,
        input_tokens_details: { cached_tokens: 40, cache_write_tokens: 10 },
        output_tokens: 20,
        output_tokens_details: { reasoning_tokens: 12 },
        total_tokens: 120,
      },
      means: { input: 100, cacheRead: 40, cacheWrite: 10, output: 20 },
    },
    {
      said: {
        input_tokens: 150,
        input_tokens_details: { cached_tokens: 100 },
        output_tokens: 30,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 180,
      },
      means: { input: 150, cacheRead: 100, cacheWrite: 0, output: 30 },
    },
    {
      // A server of another maker: without details, with something of its own.
      said: { input_tokens: 200, output_tokens: 5, total_tokens: 205, cost: 0.5 },
      means: { input: 200, cacheRead: 0, cacheWrite: 0, output: 5 },
    },
  ],
  total: {
    input_tokens: 450,
    input_tokens_details: { cached_tokens: 140, cache_write_tokens: 10 },
    output_tokens: 55,
    output_tokens_details: { reasoning_tokens: 12 },
    total_tokens: 505,
    cost: 0.5,
  },
  response: responseSaying,
  stream: streamSaying,
  inResponse: (body) => (JSON.parse(new TextDecoder().decode(body)) as Json)['usage'],
  inStream: (sse) =>
    sseEvents(sse).flatMap(({ data }) => {
      const { response } = JSON.parse(data) as { readonly response?: Json };
      return response?.['usage'] ?? [];
    }),
};
