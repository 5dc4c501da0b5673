/**
 * A hidden recall: the private recalls of the model while it made one reply. The client saw one message; the hidden recall holds
 * the rounds it was made of, so that later requests can include the private calls and answers at their place. The store keeps it,
 * codecs write it.
 */

export type HiddenRecall = {
  /** The rounds in which the model recalled, in order; each ends in recalls. The last one may also hold calls of the client's. */
  readonly rounds: readonly RecallRound[];
  /**
   * The model's final words, as the provider's own JSON: they distinguish the client's copy from another reply to the same
   * request. Undefined when the last round was the end, and when the end is unknown because the client disconnected.
   */
  readonly closing: Uint8Array | undefined;
};

/** The model's turn as the provider's own JSON bytes, and the answers to its recalls. */
export type RecallRound = { readonly turn: Uint8Array; readonly answers: readonly RecallAnswer[] };

export type ToolCall = { readonly id: string; readonly name: string; readonly argumentsJson: string };

export type RecallAnswer = { readonly call: ToolCall; readonly text: string };

export type KeptReply = {
  /** The provider's id of the reply. */
  readonly name: string;
  /** Answers of private calls at the end of the reply: the provider refuses a request that continues it without them. */
  readonly pendingAnswers: readonly RecallAnswer[];
};
