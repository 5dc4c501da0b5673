/** A request of our own in the words of Gemini. */
import type { Prompt } from '../codec.ts';

export function promptBody({ system, text, maxOutputTokens }: Prompt): Uint8Array {
  const body = {
    systemInstruction: { parts: [{ text: system }] },
    contents: [{ role: 'user', parts: [{ text }] }],
    generationConfig: { maxOutputTokens },
  };
  return new TextEncoder().encode(JSON.stringify(body));
}
