/**
 * Defines the interface of a summarizer: steps and the last summary in, text out, within a token budget. The strategy adds the frame around the
 * text and the memory ids; the summarizer decides which model writes, if any.
 */
import type { CountTokens } from '../conversation/messages.ts';

/** Writes summaries. */
export interface Summarizer {
  readonly name: string;
  /**
   * Writes a summary that includes the earlier ones, of at most `budget.max` tokens; undefined if not even the shortest summary fits.
   * Rejects on failure (the model cannot be reached, or `signal` aborts); then `extract` is used instead.
   */
  summarize(request: SummaryRequest, signal?: AbortSignal): Promise<string | undefined>;
}

/** The input of a summarizer. */
export type SummaryRequest = {
  /** The steps since the last summary, in order. */
  readonly steps: readonly SummaryStep[];
  /** For each step the number of the original that has it, where the part of the summary that tells it stands for several originals. */
  readonly originals?: readonly (number | undefined)[] | undefined;
  /** Earlier summaries to include, oldest first, whoever wrote them. Their messages are not among the steps. */
  readonly earlier: readonly string[];
  /** Other summaries in the context, whose content need not be repeated. */
  readonly known: readonly string[];
  /** How many steps come before what each of the earlier summaries tells. Default: none. */
  readonly stepsAhead?: readonly number[];
  /** The places between the steps where messages stay, in order: the summary is divided there. */
  readonly cuts?: readonly SummaryCut[];
  /** The question in the last reply, if a short answer to it stays behind the summary. */
  readonly question?: string;
  /** True if a newer plan than the one in the steps is in the context. */
  readonly isPlanKnown?: boolean;
  /** True if the newest of the earlier summaries is the text of a model about these steps. */
  readonly isToldByModel?: boolean;
  readonly budget: SummaryBudget;
  readonly count: (text: string) => number;
  /** Explains the steps and the purpose of the summary to summarizers that write their own words. */
  readonly guidance?: string;
  /** Set if the text is used as it is written: for an item of a list, or for what came of a sub-goal. Default: a summary. */
  readonly form?: TextForm | undefined;
};

/** A place where messages stay between what a summary tells. */
export type SummaryCut = {
  /** How many steps, and how many earlier summaries, come before it. */
  readonly steps: number;
  readonly summaries: number;
  /** True if words of the user stay there: the reply ahead of them ended a turn. */
  readonly isTurn: boolean;
  /** The question in that reply that a short answer among these words answers; empty if there is none. */
  readonly question: string;
};

export type TextForm = 'item' | 'record';

/** A text that a summarizer may write ahead of the fold that will need it. */
export type WantedText = Required<Pick<SummaryRequest, 'steps' | 'guidance'>> & {
  readonly form: TextForm;
  /** The id of its content and of the question that it answers. */
  readonly key: string;
  /** Tokens of what it replaces, and those that it should have. */
  readonly tokens: number;
  readonly aim: number;
};

/** Characters of one step. Summarizers cut longer steps, so a longer item is given as several. */
const charactersPerStep = 7_500;

/** Returns what a summarizer is given for one item of a list that was looked up for `question`; empty if that is unknown. */
export function itemRequest(text: string, question: string): Pick<WantedText, 'steps' | 'guidance'> {
  const steps: SummaryStep[] = [];
  for (let at = 0; at < text.length; at += charactersPerStep)
    steps.push({
      type: 'said',
      by: 'assistant',
      text: text.slice(at, at + charactersPerStep).toWellFormed(),
    });
  const asked = question.trim() === '' ? '' : ` It was looked up for this: ${JSON.stringify(question)}.`;
  const guidance =
    `The transcript is one item of a tool's result, not a conversation.${asked} Keep what answers that; names, numbers, dates and quotations word for ` +
    'word. Plain sentences, no list, no introduction.';
  return { steps, guidance };
}

/** Returns the text of a summarizer if it can take the place of one with `tokens`; undefined otherwise. */
export function usableText(said: unknown, tokens: number, count: CountTokens): string | undefined {
  if (typeof said !== 'string') return undefined;
  const text = said.trim();
  return text === '' || looksFailed(text) || count(text) >= tokens ? undefined : text;
}

/** A budget in tokens. Demands of the user may exceed `aim`; nothing exceeds `max`. */
export type SummaryBudget = { readonly aim: number; readonly max: number };

/** One step of a conversation. */
export type SummaryStep =
  /** A text. A `client` text is in a user message but not by the user: reminders, environment details, a repository's rules. */
  | { readonly type: 'said'; readonly by: 'user' | 'assistant' | 'client'; readonly text: string }
  | {
      readonly type: 'called';
      readonly tool: string;
      /** The arguments as JSON. */
      readonly input: string;
      /** Undefined if the call has no result. */
      readonly result: string | undefined;
      /** True if the wire format marks the result as an error. */
      readonly failed: boolean;
    };

/** True for an answer that is no summary: an error of a provider, an error page, or a refusal of the model. */
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
