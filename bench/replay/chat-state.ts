/** Helps the policies of frameworks: reads new messages of a growing conversation as objects, and writes bodies with other messages. */
import type { Conversation } from '../../src/conversation/conversation.ts';
import { concatBytes } from '../../src/conversation/json-scan.ts';

export type ChatMessage = {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content?: string | null;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
};

export interface ChatState {
  /** Returns the messages that the previous request did not have. A conversation only grows. */
  added(conversation: Conversation): readonly { readonly message: ChatMessage; readonly bytes: Uint8Array }[];
  /** Returns the request's body with its messages replaced by these. */
  body(conversation: Conversation, messages: readonly Uint8Array[]): Uint8Array;
}

const comma = new Uint8Array([0x2c]);

export function createChatState(): ChatState {
  let known = 0;
  return {
    added({ body, messages }) {
      const added = messages.slice(known).map(({ span }) => {
        const bytes = body.slice(span.start, span.end);
        return { message: JSON.parse(new TextDecoder().decode(bytes)) as ChatMessage, bytes };
      });
      known = messages.length;
      return added;
    },
    body({ body, messages }, replacements) {
      const head = body.subarray(0, messages[0]!.span.start);
      const tail = body.subarray(messages.at(-1)!.span.end);
      return concatBytes([
        head,
        ...replacements.flatMap((bytes, at) => (at === 0 ? [bytes] : [comma, bytes])),
        tail,
      ]);
    },
  };
}
