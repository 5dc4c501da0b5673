/** What frameworks' policies share: messages of a growing conversation as objects, and bodies with other messages in their place. */
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
  /** Messages that the request before did not have. A conversation only grows. */
  added(conversation: Conversation): readonly { readonly message: ChatMessage; readonly bytes: Uint8Array }[];
  /** The body of the request with these messages in place of its own. */
  body(conversation: Conversation, messages: readonly Uint8Array[]): Uint8Array;
}

const comma = new Uint8Array([0x2c]);

export function createChatState(): ChatState {
  let known = 0;
  return {
    added({ body, messages }) {
      const fresh = messages.slice(known).map(({ span }) => {
        const bytes = body.slice(span.start, span.end);
        return { message: JSON.parse(new TextDecoder().decode(bytes)) as ChatMessage, bytes };
      });
      known = messages.length;
      return fresh;
    },
    body({ body, messages }, instead) {
      const head = body.subarray(0, messages[0]!.span.start);
      const tail = body.subarray(messages.at(-1)!.span.end);
      return concatBytes([
        head,
        ...instead.flatMap((bytes, at) => (at === 0 ? [bytes] : [comma, bytes])),
        tail,
      ]);
    },
  };
}
