/** What is compared: ways to make the context that is sent from the conversation a client has. */
import type { Codec } from '../codecs/codec.ts';
import type { Prepared } from '../engine/prepared.ts';
import type { Conversation } from '../conversation/conversation.ts';

export interface Policy {
  readonly name: string;
  /** Whether what it takes away can be recalled. */
  readonly hasMemory: boolean;
  /** Begins a conversation. Nothing is known of others. */
  open(codec: Codec): PolicySession;
}

export interface PolicySession {
  /** Called for each request of the conversation, in order. */
  send(request: PolicyRequest): Promise<Sent>;
}

export type PolicyRequest = {
  readonly conversation: Conversation;
  /** Messages that a tool was run again for: they were asked for on purpose. */
  readonly rerun: ReadonlySet<number>;
  /** When it is sent, in milliseconds. */
  readonly at: number;
};

export type Sent = {
  readonly body: Uint8Array;
  /** What recalls are answered from; undefined for policies that keep nothing. */
  readonly prepared: Prepared | undefined;
};
