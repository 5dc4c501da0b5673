/** Usage as Chat Completions reports it: with the last chunk, and by servers that are asked to, as a running total in every chunk. */
import type { ScriptedTurn, UsageFixture } from '../fixture.ts';
import { sseEvents } from '../sse.ts';
import { type Json, responseSaying } from './responses.ts';
import { streamSaying } from './streams.ts';

export const usage: UsageFixture = {
  rounds: [
    {
      said: {
        prompt_tokens: 100,
        completion_tokens: 20,
        total_tokens: 120,
        prompt_tokens_details: { cached_tokens: 64, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 8, rejected_prediction_tokens: 1 },
      },
      means: { input: 100, cacheRead: 64, cacheWrite: 0, output: 20 },
    },
    {
      // A server of another maker: details are null or its own.
      said: {
        prompt_tokens: 150,
        completion_tokens: 30,
        total_tokens: 180,
        prompt_tokens_details: null,
        cost: 0.25,
      },
      means: { input: 150, cacheRead: 0, cacheWrite: 0, output: 30 },
    },
    {
      said: {
        prompt_tokens: 200,
        completion_tokens: 5,
        total_tokens: 205,
        prompt_tokens_details: { cached_tokens: 128 },
        cost: 0.5,
      },
      means: { input: 200, cacheRead: 128, cacheWrite: 0, output: 5 },
    },
  ],
  total: {
    prompt_tokens: 450,
    completion_tokens: 55,
    total_tokens: 505,
    prompt_tokens_details: { cached_tokens: 192, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 8, rejected_prediction_tokens: 1 },
    cost: 0.75,
  },
  response: responseSaying,
  stream,
  inResponse: (body) => (JSON.parse(new TextDecoder().decode(body)) as Json)['usage'],
  inStream,
};

function stream(turn: ScriptedTurn, number: number, said: unknown): string {
  if (said === undefined) return streamSaying(turn, number, () => undefined, undefined);
  const { prompt_tokens } = said as { readonly prompt_tokens: number };
  const running = (completion_tokens: number) => ({
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
  });
  return streamSaying(turn, number, running, said);
}

function inStream(sse: string): readonly unknown[] {
  return sseEvents(sse).flatMap(({ data }) => {
    const reported = data === '[DONE]' ? undefined : (JSON.parse(data) as Json)['usage'];
    return reported === undefined || reported === null ? [] : [reported];
  });
}
