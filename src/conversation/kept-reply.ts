/**
 * A reply that the provider keeps, as a later request can go on from it. Some providers let a client name a reply in place of sending
 * its history; what the model did in private while it made that reply stands there too. Data: memory keeps it, codecs write it.
 */
import type { RecallAnswer } from './hidden-recall.ts';

export type KeptReply = {
  /** The provider's name for it. */
  readonly name: string;
  /** Answers of private calls it ends with: the provider takes no request that goes on without them. */
  readonly owed: readonly RecallAnswer[];
};
