/** Reads a stream with the official client of Anthropic Messages. */
import Anthropic from '@anthropic-ai/sdk';
import type { OfficialView, StreamFixture } from '../fixture.ts';
import { fetchOf } from '../sse.ts';
import { type Block, viewOf } from './responses.ts';

export const official: StreamFixture['official'] = { client: '@anthropic-ai/sdk', read };

async function read(sse: string): Promise<OfficialView> {
  const client = new Anthropic({ apiKey: 'none', maxRetries: 0, fetch: fetchOf(sse) });
  const stream = client.messages.stream({
    model: 'm',
    max_tokens: 1,
    messages: [{ role: 'user', content: 'a' }],
  });
  const message = await stream.finalMessage();
  // It keeps arguments as values.
  const blocks = message.content.map((block) =>
    'input' in block ? { ...block, input: JSON.stringify(block.input) } : block,
  ) as readonly unknown[] as readonly Block[];
  const { text, calls, finish, usage } = viewOf(blocks, message.stop_reason ?? 'none', { ...message.usage });
  return { text, calls, finish, usage };
}
