/** As much of Chat Completions as the demo speaks, on both of its ends. Types, and the sample conversation under them. */
import sample from '../samples/missing-invoices.json' with { type: 'json' };

export type ChatBody = {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly unknown[];
};

export type ChatMessage = {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly ChatCall[];
  readonly tool_call_id?: string;
};

export type ChatCall = {
  readonly id: string;
  readonly type: string;
  readonly function: { readonly name: string; readonly arguments: string };
};

/** An agent's conversation as its client holds it at the end. */
export const sampleBody: ChatBody = sample;
