/** What follows from the calls of a reply that is whole. */
import type { ModelReply } from './codec.ts';

/** True when the model waits for memory alone: nothing is there for the client to run. */
export function awaitsRecall(reply: ModelReply): boolean {
  return reply.recalls.length > 0 && reply.calls.length === 0;
}

/** True when the model asked memory beside calls that the client runs. */
export function recallsBeside(reply: ModelReply): boolean {
  return reply.recalls.length > 0 && reply.calls.length > 0;
}
