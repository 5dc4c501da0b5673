/** A program that uses each entry point of the published package. consumer.laws.test.ts compiles it as users do; it is never run. */
import {
  createLeporello,
  LeporelloError,
  messageCount,
  mustFit,
  type Prepared,
  type Store,
  type Strategy,
} from 'leporello';
import { anthropicMessages } from 'leporello/codecs/anthropic-messages';
import { geminiFor } from 'leporello/codecs/gemini';
import { openaiChat } from 'leporello/codecs/openai-chat';
import { openaiResponses } from 'leporello/codecs/openai-responses';

const leporello = createLeporello({
  models: { 'gpt-4o': { windowTokens: 8_000 } },
  triggers: [mustFit(), messageCount({ targetMessages: 4 })],
});
const codecs = [
  openaiChat,
  openaiResponses,
  anthropicMessages,
  geminiFor({ model: 'gemini-3-pro', streaming: true }),
];

export async function send(body: Uint8Array): Promise<Prepared> {
  const prepared = await leporello.prepare({ codec: codecs[0]!, body });
  if (prepared.outcome.status === 'failed') console.warn(prepared.outcome.reason);
  await fetch('https://api.openai.com/v1/chat/completions', {
    method: 'POST',
    body: new Uint8Array(prepared.body),
  });
  const answer: string = await leporello.recall(prepared, '{"id":"mem_0123456789abcdef"}');
  console.log(answer, prepared.report.tokensAfter);
  return prepared;
}

export const nothing: Strategy = { name: 'nothing', reach: 'history', propose: () => [] };

export function isFull(error: unknown): boolean {
  return LeporelloError.isInstance(error) && error.code === 'store-failed';
}

export function withStore(store: Store): ReturnType<typeof createLeporello> {
  return createLeporello({ store, secret: new Uint8Array(32) });
}
