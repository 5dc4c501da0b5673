/** Reads a stream with the official client of Chat Completions. */
import OpenAI from 'openai';
import type { OfficialView, StreamFixture } from '../fixture.ts';
import { fetchOf } from '../sse.ts';
import { type Call, finishOf, toCall, toUsage } from './responses.ts';

export const official: StreamFixture['official'] = { client: 'openai', read };

async function read(sse: string): Promise<OfficialView> {
  const client = new OpenAI({ apiKey: 'none', maxRetries: 0, fetch: fetchOf(sse) });
  const stream = client.chat.completions.stream({ model: 'm', messages: [{ role: 'user', content: 'a' }] });
  const { choices, usage } = await stream.finalChatCompletion();
  const { message, finish_reason } = choices[0]!;
  const calls = ((message.tool_calls ?? []) as readonly Call[]).map(toCall);
  return {
    text: message.content ?? '',
    calls,
    finish: finishOf(finish_reason, calls.length),
    usage: usage && toUsage({ ...usage }),
  };
}
