/** A request of our own in the words of Anthropic Messages. */
import type { Prompt } from '../codec.ts';

export function promptBody({ model, system, text, maxOutputTokens }: Prompt): Uint8Array {
  const body = {
    model,
    max_tokens: maxOutputTokens,
    system,
    messages: [{ role: 'user', content: text }],
  };
  return new TextEncoder().encode(JSON.stringify(body));
}
