/**
 * Defines the detail of a receipt: the trigger with its figures, what became of each message, and the edits. Unlike the receipt it quotes
 * content (stubs, titles, queries), so it is only stored encrypted and shown to its tenant; it never reaches logs or metrics. Also says
 * triggers and reasons in words.
 */
import type { FoldReport, RecallReport, Receipt, ShadowReceipt, SummaryReceipt } from './receipt.ts';

/** The detail of one request. */
export type RequestDetail = {
  /** Undefined when no trigger fired. */
  readonly trigger: TriggerFigures | undefined;
  /** The number of messages of the conversation, hidden recalls included. */
  readonly messageCount: number;
  /**
   * With a new fold all messages, at most the newest `maxRows` and those that were changed; otherwise those that were changed now. At most
   * `maxListed`, the newest.
   */
  readonly messages: readonly MessageDetail[];
  /** Edits that were sent for the first time. */
  readonly edits: readonly EditDetail[];
};

/** The numbers that a trigger looked at, in calibrated tokens. */
export type TriggerFigures = {
  readonly name: string;
  /** Tokens of the request before the new fold, with earlier folds applied. */
  readonly tokens: number;
  readonly messages: number;
  readonly window: number | undefined;
  /** Milliseconds since the previous request of the conversation. */
  readonly idleMs: number | undefined;
  readonly goal: { readonly unit: 'tokens' | 'messages'; readonly target: number };
  /** Tokens above which the provider refuses the request. */
  readonly atMost: number | undefined;
  /** True when the request would not fit without the fold. */
  readonly force: boolean;
};

/** One message of the request, with what became of it. Tokens are counts without calibration; `after` is an estimate for changed messages. */
export type MessageDetail = {
  readonly index: number;
  readonly role: string;
  /** A description of the message, such as `result of Read` or `calls Read, Bash`. */
  readonly what: string;
  readonly before: number;
  readonly after: number;
  readonly state: MessageState;
  /** Set for a message that was sent in full although a fold was made. */
  readonly kept?: KeptReason;
};

/** `replayed`: changed by an earlier fold. `shrunk`: made smaller when it arrived. */
export type MessageState = 'sent' | 'folded' | 'replayed' | 'shrunk';

export type KeptReason = 'system' | 'newest' | 'pinned' | 'recalled' | 'small' | 'in use' | 'not needed';

/** One replacement. */
export type EditDetail = {
  readonly by: 'fold' | 'shrink';
  /** Index of the message, or of the first of several. */
  readonly message: number;
  /** The number of messages that it covers. */
  readonly messages: number;
  readonly tool: string | undefined;
  /** A description of the original, such as `result of Read src/app.ts`. */
  readonly title: string;
  /** The id of the original; undefined when nothing was left out. */
  readonly memory: string | undefined;
  /** The text in place of the original, cut after `maxStubLength` characters. */
  readonly stub: string;
  readonly before: number;
  readonly after: number;
  /** The number of replies of the model since the content arrived: with so many requests it was sent. */
  readonly requests: number;
};

/** The largest number of messages that are listed because of a fold. */
export const maxRows = 2_000;

/** The largest number of messages that are listed at all: a receipt with 100,000 would occupy the gateway for 80 ms. */
export const maxListed = 4_000;

/** The characters of a stub that are kept. */
export const maxStubLength = 8_000;

/** A recall as the model asked for it. */
export type AskedRecall = RecallReport & {
  /** Arguments of the call, cut after 500 characters. */
  readonly asked: string;
};

/** A receipt as it is kept: with its detail, and with what groups and explains it. */
export type KeptReceipt = {
  readonly id: string;
  readonly receipt: Receipt | SummaryReceipt | ShadowReceipt;
  readonly detail?: RequestDetail | undefined;
  readonly asked?: readonly AskedRecall[];
  /** Identifies the conversation: the hash that all of its requests share. */
  readonly conversation?: string | undefined;
};

/** Narrows to the receipt of a request; undefined for that of a summary or a shadow. */
export function requestReceipt({ receipt }: Pick<KeptReceipt, 'receipt'>): Receipt | undefined {
  return isOfRequest(receipt) ? receipt : undefined;
}

/** True for the receipt of a request. Those that earlier versions stored have no kind. */
export function isOfRequest(receipt: KeptReceipt['receipt']): receipt is Receipt {
  return receipt.kind !== 'summary' && receipt.kind !== 'shadow';
}

/** Says what a receipt reports. */
export function otherWords({ receipt }: Pick<KeptReceipt, 'receipt'>): string {
  const { status } = receipt.outcome;
  if (isOfRequest(receipt)) return `a request was ${status}`;
  if (receipt.kind === 'summary') return `a summary was ${status}`;
  return status === 'compared' ? 'a folded request was compared' : 'a comparison failed';
}

/** True when the request repeats an earlier fold and made none of its own. */
export function repeatsFold(one: KeptReceipt): boolean {
  const receipt = requestReceipt(one);
  return receipt !== undefined && receipt.replayed > 0 && !isNewFold(receipt);
}

/** Finds the fold that a request repeats: the newest earlier one of its conversation whose originals are all folded in this request, too. */
export function foldRepeatedBy(one: KeptReceipt, others: readonly KeptReceipt[]): KeptReceipt | undefined {
  if (!repeatsFold(one)) return undefined;
  const memories = new Set(requestReceipt(one)?.memories);
  return others.find((other) => {
    const earlier = requestReceipt(other);
    return (
      earlier !== undefined &&
      other.conversation === one.conversation &&
      earlier.at < one.receipt.at &&
      isNewFold(earlier) &&
      earlier.memories.every((id) => memories.has(id))
    );
  });
}

/** True when the request made a fold of its own. */
export function isNewFold({ steps }: Pick<FoldReport, 'steps'>): boolean {
  return steps.some(({ edits }) => edits > 0);
}

const keptWords: Readonly<Record<KeptReason, string>> = {
  system: 'a system message is never folded',
  newest: 'among the newest: the last user message, the newest results and their calls',
  pinned: 'its tool or a text in it is pinned',
  recalled: 'the model recalled it',
  small: 'too small for a stub to save anything',
  'in use': 'still counts as in use',
  'not needed': 'the goal was met without it, or no strategy folds it',
};

/** Says why a message was not folded. */
export function wordsOfKept(reason: KeptReason): string {
  return keptWords[reason];
}

/**
 * Says in one sentence why a request was folded, with the numbers that decided. The trigger looks at the request with its earlier folds, which has fewer
 * tokens than the client sent.
 */
export function wordsOfTrigger(figures: TriggerFigures, { replayed }: Pick<FoldReport, 'replayed'>): string {
  const { name, tokens, messages, window, idleMs, goal, atMost } = figures;
  const request = replayed > 0 ? 'With its earlier folds repeated, the request' : 'The request';
  const had = `${replayed > 0 ? 'with its earlier folds repeated, ' : ''}the request had ${count(tokens, 'token')}`;
  const goalWords = `the goal was at most ${count(goal.target, goal.unit.slice(0, -1))}`;
  const share = window === undefined ? '' : `, ${Math.round((tokens / window) * 100)} % of the window`;
  switch (name) {
    case 'must-fit':
      return `${request} had ${count(tokens, 'token')} and would not fit: at most ${number(atMost ?? 0)} fit beside the reply; ${goalWords}.`;
    case 'overflow':
      return `The provider refused the request as too long (${count(tokens, 'token')} by our count); ${goalWords}.`;
    case 'window-fraction':
      return `${request} had ${count(tokens, 'token')}${share}, more than the share that is allowed; ${goalWords}.`;
    case 'token-budget':
      return `${request} had ${count(tokens, 'token')}, more than its token budget${share && ` (${share.slice(2)})`}; ${goalWords}.`;
    case 'message-count':
      return `${request} had ${count(messages, 'message')}, more than allowed; ${goalWords}.`;
    case 'cold-cache':
      return `The conversation paused for ${duration(idleMs ?? 0)}, so the provider's cache had expired and a fold cost nothing extra; ${had}, and ${goalWords}.`;
    case 'cache-rent':
      return `Sending unused content again with each request had cost several times what folding it costs; ${had}, and ${goalWords}.`;
    default:
      return `The trigger ${name} fired${share && ` at${share.slice(1)}`}; ${had}, and ${goalWords}.`;
  }
}

/** Says in a few words what a trigger means. For lists, where there is no room for numbers. */
function shortTrigger(name: string): string {
  return shortTriggers[name] ?? name;
}

const shortTriggers: Readonly<Record<string, string>> = {
  'must-fit': 'would not fit the window',
  overflow: 'refused as too long',
  'window-fraction': 'share of the window exceeded',
  'token-budget': 'token budget exceeded',
  'message-count': 'too many messages',
  'cold-cache': 'cache had expired',
  'cache-rent': 'old content cost more than a fold',
};

/** Says in a few words what happened to a request. */
export function outcomeWords(
  report: Pick<FoldReport, 'trigger' | 'steps' | 'replayed' | 'shrunk' | 'cacheMarks'>,
  outcome: { readonly status: string; readonly reason?: string },
): string {
  const { trigger, replayed, shrunk, cacheMarks } = report;
  if (outcome.status === 'failed') return `failed, sent as it came: ${outcome.reason ?? ''}`;
  if (outcome.status === 'untouched')
    return `not folded: ${outcome.reason ?? ''}${cacheMarks > 0 ? '; marked for the cache' : ''}`;
  const isNew = trigger !== undefined && isNewFold(report);
  const parts = [
    ...(isNew ? [`folded: ${shortTrigger(trigger)}`] : []),
    ...(replayed > 0 ? [`${count(replayed, 'earlier edit')} repeated`] : []),
    ...(shrunk > 0 ? [`${count(shrunk, 'result')} shortened on arrival`] : []),
  ];
  const done = parts.length === 0 ? 'the recall tool was added' : parts.join('; ');
  return outcome.status === 'observed' ? `observed only: would be ${done}` : done;
}

/** Spells a number with thousands separators. */
export function number(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** Spells a number of things: `2 folds`. */
export function count(value: number, noun: string): string {
  return `${number(value)} ${noun}${Math.round(value) === 1 ? '' : 's'}`;
}

/** Spells dollars with as many digits as small amounts need. */
export function usdText(usd: number | undefined, minus = '-'): string {
  if (usd === undefined) return 'unknown';
  const size = Math.abs(usd);
  const digits = size === 0 || size >= 100 ? 2 : size >= 0.1 ? 3 : 4;
  return `${usd < 0 ? minus : ''}$${size.toFixed(digits)}`;
}

/** Spells milliseconds as seconds, minutes or hours. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}
