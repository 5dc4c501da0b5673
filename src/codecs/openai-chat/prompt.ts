/** A request of our own in the words of Chat Completions. */
import type { Prompt } from '../codec.ts';

export function promptBody({ model, system, text, maxOutputTokens }: Prompt): Uint8Array {
  const body = {
    model,
    messages: [
      { role: 'system', content: system },
      { role: 'user', content: text },
    ],
    // Models that reason refuse `max_tokens`.
    max_completion_tokens: maxOutputTokens,
  };
  return new TextEncoder().encode(JSON.stringify(body));
}
