/** Reads a stream with the official client of OpenAI Responses. */
import OpenAI from 'openai';
import type { OfficialView, StreamFixture } from '../fixture.ts';
import { fetchOf } from '../sse.ts';
import { type ResponseView, viewOf } from './responses.ts';

export const official: StreamFixture['official'] = { client: 'openai', read };

async function read(sse: string): Promise<OfficialView> {
  const client = new OpenAI({ apiKey: 'none', maxRetries: 0, fetch: fetchOf(sse) });
  const response = await client.responses.stream({ model: 'm', input: 'a' }).finalResponse();
  const { calls, finish, usage } = viewOf(response as unknown as ResponseView);
  return { text: response.output_text, calls, finish, usage };
}
