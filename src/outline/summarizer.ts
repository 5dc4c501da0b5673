/**
 * The interface of what writes summaries: steps and the last summary in, text out, within a budget of tokens. Wire formats, memory ids
 * and the frame around the text are the strategy's; which model writes, if one does, is the summarizer's.
 */

export interface Summarizer {
  readonly name: string;
  /**
   * The text of a summary that takes the last one in, at most `budget.most` tokens; undefined where not even the least that it would say
   * fits. Rejects when it fails (a model that cannot be reached, or too late for `signal`); then `extract` stands in.
   */
  summarize(request: SummaryRequest, signal?: AbortSignal): Promise<string | undefined>;
}

export type SummaryRequest = {
  /** What happened since the last summary, in order. */
  readonly steps: readonly SummaryStep[];
  /** What earlier summaries said, oldest first, by whoever wrote them: to be taken in. What they stand for is not among the steps. */
  readonly earlier: readonly string[];
  /** What stands in summaries beside this one, and need not be said again. */
  readonly known: readonly string[];
  readonly budget: SummaryBudget;
  readonly count: (text: string) => number;
  /** What the steps are and what the summary is for, for those who write in words of their own. */
  readonly guidance?: string;
};

/** In tokens. What a user demanded may take a summary beyond `aim`, nothing takes it beyond `most`. */
export type SummaryBudget = { readonly aim: number; readonly most: number };

export type SummaryStep =
  /** A client says what stands in the user's place without being the user's words: reminders, surroundings, a repository's rules. */
  | { readonly type: 'said'; readonly by: 'user' | 'assistant' | 'client'; readonly text: string }
  | {
      readonly type: 'called';
      readonly tool: string;
      /** The arguments as JSON. */
      readonly input: string;
      /** Undefined where nothing answered the call. */
      readonly result: string | undefined;
      /** What the wire format itself says of it. */
      readonly failed: boolean;
    };

/** An error of a provider, a page of one, or a model that will not. */
export function looksFailed(text: string): boolean {
  const start = text.slice(0, 300);
  return (
    /^\{\s*"(?:error|message|detail|type"\s*:\s*"error)"/.test(start) ||
    /^<(?:!doctype|html)/i.test(start) ||
    /^(?:error|http|status)[ :]*(?:4\d\d|5\d\d)\b/i.test(start) ||
    /^error: /i.test(start) ||
    /^(?:\d{3} )?(?:internal server error|bad gateway|service unavailable|too many requests|rate limit)/i.test(
      start,
    ) ||
    /^(?:i['’]?m|i am) (?:sorry|unable|not able)|^sorry,|^i (?:cannot|can['’]?t) |^as an ai\b/i.test(start)
  );
}
