/** A request of our own in the words of Responses. */
import type { Prompt } from '../codec.ts';

export function promptBody({ model, system, text, maxOutputTokens }: Prompt): Uint8Array {
  const body = {
    model,
    instructions: system,
    input: [{ role: 'user', content: text }],
    max_output_tokens: maxOutputTokens,
    // Nothing goes on from it.
    store: false,
  };
  return new TextEncoder().encode(JSON.stringify(body));
}
