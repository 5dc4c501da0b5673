/**
 * Usage as Anthropic Messages reports it: cached tokens in addition to the input, running totals, server-side compaction in
 * iterations of its own.
 */
import type { ScriptedTurn, UsageFixture } from '../fixture.ts';
import { sseEvents } from '../sse.ts';
import { responseSaying } from './responses.ts';
import { streamSaying } from './streams.ts';

type Json = Readonly<Record<string, unknown>>;

const written = (tokens: number) => ({ ephemeral_5m_input_tokens: tokens, ephemeral_1h_input_tokens: 0 });
const compaction = {
  type: 'compaction',
  input_tokens: 60_385,
  output_tokens: 522,
  cache_creation: written(0),
};
const sampling = { type: 'message', input_tokens: 612, output_tokens: 40, cache_creation: written(0) };

export const usage: UsageFixture = {
  rounds: [
    {
      said: {
        input_tokens: 20,
        cache_creation_input_tokens: 5,
        cache_read_input_tokens: 100,
        cache_creation: written(5),
        output_tokens: 30,
        output_tokens_details: { thinking_tokens: 10 },
        server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 },
        service_tier: 'standard',
      },
      means: { input: 125, cacheRead: 100, cacheWrite: 5, output: 30 },
    },
    {
      // The tokens of the provider's own compaction are in its iteration only.
      said: {
        input_tokens: 612,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        output_tokens: 40,
        iterations: [compaction, sampling],
      },
      means: { input: 612, cacheRead: 0, cacheWrite: 0, output: 40 },
    },
    {
      said: {
        input_tokens: 700,
        cache_creation_input_tokens: null,
        cache_read_input_tokens: null,
        output_tokens: 9,
        server_tool_use: null,
        service_tier: 'priority',
      },
      means: { input: 700, cacheRead: 0, cacheWrite: 0, output: 9 },
    },
  ],
  total: {
    input_tokens: 1332,
    cache_creation_input_tokens: 5,
    cache_read_input_tokens: 100,
    cache_creation: written(5),
    output_tokens: 79,
    output_tokens_details: { thinking_tokens: 10 },
    server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 },
    iterations: [compaction, sampling],
    service_tier: 'priority',
  },
  response: responseSaying,
  stream,
  inResponse: (body) => (JSON.parse(new TextDecoder().decode(body)) as Json)['usage'],
  inStream,
};

/** The start reports the input, the end the output: nulls there replace nothing. Between them may come more totals. */
function stream(turn: ScriptedTurn, number: number, said: unknown): string {
  if (said === undefined) return streamSaying(turn, number, undefined, [undefined]);
  const { iterations, server_tool_use, output_tokens_details, output_tokens, ...start } = said as Json;
  const tools = server_tool_use === undefined ? {} : { server_tool_use };
  const details = output_tokens_details === undefined ? {} : { output_tokens_details };
  const last = {
    input_tokens: null,
    cache_creation_input_tokens: null,
    cache_read_input_tokens: null,
    output_tokens,
    ...tools,
    ...details,
    ...(iterations === undefined ? {} : { iterations }),
  };
  return streamSaying(turn, number, { ...start, output_tokens: 1 }, [{ output_tokens: 2 }, last]);
}

/** A total that is null or absent stays unchanged. */
function inStream(sse: string): readonly unknown[] {
  let known: Json = {};
  return sseEvents(sse).flatMap(({ data }) => {
    const { message, usage: reported } = JSON.parse(data) as {
      readonly message?: Json;
      readonly usage?: Json;
    };
    const said = (message?.['usage'] as Json | undefined) ?? reported;
    if (!said) return [];
    known = {
      ...known,
      ...Object.fromEntries(Object.entries(said).filter(([key, value]) => value !== null || !(key in known))),
    };
    return [known];
  });
}
