/**
 * The client of a replayed conversation. Every request contains all messages so far: the recorded ones, and those of tools that were run
 * again.
 */
import type { Conversation } from '../conversation/conversation.ts';
import { concatBytes } from '../conversation/splice.ts';
import type { PolicyRequest } from './policies.ts';
import type { Recording } from './recording.ts';

export interface Client {
  /** Appends the recorded messages before message `at`. */
  reach(at: number): void;
  /** Appends messages that are not in the recording, before the next recorded one. */
  add(messages: readonly Uint8Array[]): void;
  /** Builds the request of all messages so far. */
  request(read: (body: Uint8Array) => Conversation, at: number): PolicyRequest;
}

const comma: Uint8Array = new Uint8Array([0x2c]);

export function createClient({ conversation }: Recording): Client {
  const { body, messages } = conversation;
  const head = body.subarray(0, messages[0]?.span.start ?? 0);
  const tail = body.subarray(messages.at(-1)?.span.end ?? 0);
  const pieces: Uint8Array[] = [];
  const rerun = new Set<number>();
  let reached = 0;
  let count = 0;

  function append(message: Uint8Array): void {
    if (count > 0) pieces.push(comma);
    pieces.push(message);
    count += 1;
  }

  return {
    reach(at) {
      for (const { span } of messages.slice(reached, at)) append(body.subarray(span.start, span.end));
      reached = at;
    },
    add(added) {
      for (const message of added) {
        rerun.add(count);
        append(message);
      }
    },
    request: (read, at) => ({ conversation: read(concatBytes([head, ...pieces, tail])), rerun, at }),
  };
}
