/**
 * A hidden recall: what the model recalled in private while it made one reply. The client saw one message; a hidden recall remembers what it
 * was made of, so that later requests can hold the private calls and answers where they stood. Data: the fold store keeps it, codecs write it.
 */

export type HiddenRecall = {
  /** The rounds in which the model recalled, in order: each ends in recalls. The last may hold calls of the client's beside them. */
  readonly rounds: readonly RecallRound[];
  /**
   * What the model said at last, as the provider's own JSON: by it the client's copy is told from another reply to the same request.
   * Undefined when the last round was the end, and when nobody knows (the client left).
   */
  readonly closing: Uint8Array | undefined;
};

/** The model's turn as the provider's own JSON bytes, and what memory answered. */
export type RecallRound = { readonly turn: Uint8Array; readonly answers: readonly RecallAnswer[] };

export type ToolCall = { readonly id: string; readonly name: string; readonly argumentsJson: string };

export type RecallAnswer = { readonly call: ToolCall; readonly text: string };

export type KeptReply = {
  /** The provider's name for it. */
  readonly name: string;
  /** Answers of private calls it ends with: the provider takes no request that goes on without them. */
  readonly pendingAnswers: readonly RecallAnswer[];
};
