/**
 * Has summaries written ahead, off the path of any request: one at a time for each conversation, a few at a time in all, with the
 * credential of the conversation they are for. What fails is told to the log, and an extract stands in at the fold.
 */
import type { Codec, ModelReply, Prompt } from '../codecs/codec.ts';
import type { SummaryJob } from '../engine/summary-ahead.ts';
import { LeporelloError, reasonOf } from '../errors.ts';
import { createModelSummarizer } from '../outline/model.ts';
import type { ModelInfo } from '../tokens/models.ts';
import type { GatewayLog, GatewayMetrics } from './receipts/reporting.ts';
import type { UpstreamResponse } from './http/http.ts';
import { readBody } from './http/body.ts';
import type { ReceiptTotals } from '../receipts/totals.ts';
import { type CallUsage, costOf, type SummaryReceipt } from '../receipts/receipt.ts';
import type { ReceiptLog } from './receipts/receipt-log.ts';
import type { Prices } from './receipts/request-receipt.ts';

export interface BackgroundSummarizer {
  /** Which model is asked where a conversation is with `model`. */
  modelFor(model: string | undefined): string | undefined;
  /** Returns at once. */
  start(order: SummaryOrder): void;
  /** How many are being written now. */
  running(): number;
}

export type SummaryOrder = {
  readonly job: SummaryJob;
  readonly codec: Codec;
  /** As `modelFor` says. */
  readonly model: string | undefined;
  /** Sends a request of our own with the credential of the conversation. */
  readonly send: (body: Uint8Array, signal: AbortSignal) => Promise<UpstreamResponse>;
  /** Told once, when it is written or has failed; never where another gateway writes it. */
  readonly ended: (end: SummaryEnd) => void;
};

export type SummaryEnd = {
  /** The tokens of what was written; or why nothing was. */
  readonly result: { readonly tokens: number } | { readonly reason: string };
  /** Calls of the model, answered or not. */
  readonly calls: number;
  readonly usages: CallUsage;
};

export type BackgroundSummarizerOptions = {
  readonly model?: string | undefined;
  /** Milliseconds that one summary may take. */
  readonly deadlineMs: number;
  readonly infoOf: (
    model: string | undefined,
  ) => Promise<Pick<ModelInfo, 'window' | 'maxInput' | 'maxOutput'>>;
  readonly log: GatewayLog;
};

/** Summaries written at once; further ones are asked for again by the next request of their conversation. */
const mostAtOnce = 4;
/** After a failure nothing of this conversation is asked for again so soon: a provider in trouble has enough to do. Milliseconds. */
const restMs = 60_000;
/** How much longer than a summary may take others leave it to this gateway: to keep it, and for clocks that do not quite agree. */
const marginMs = 5_000;
/** Conversations that rest at once. */
const mostResting = 1_000;
const fallbackWindow = 32_000;

export function createBackgroundSummarizer({
  model: configured,
  deadlineMs,
  infoOf,
  log,
}: BackgroundSummarizerOptions): BackgroundSummarizer {
  const running = new Set<string>();
  const resting = new Map<string, number>();

  async function write({ job, codec, model, send, ended }: SummaryOrder): Promise<void> {
    const usages: CallUsage[number][] = [];
    let calls = 0;
    const late = new AbortController();
    const timer = setTimeout(() => {
      const message = `${nameOf(model)} took longer than ${deadlineMs} ms for a summary; an extract stands in for it.`;
      late.abort(new LeporelloError('deadline', message));
    }, deadlineMs);
    try {
      if (!(await job.claim(deadlineMs + marginMs))) return;
      const { window = fallbackWindow, maxInput = window, maxOutput } = await infoOf(model);
      const summarizer = createModelSummarizer({
        model: nameOf(model),
        // A count may be off, most of all for models whose vocabulary nobody knows.
        maxInputTokens: Math.floor(maxInput * 0.7),
        maxOutputTokens: maxOutput,
        ask: async (prompt) => {
          calls++;
          const reply = await askForSummary({ ...prompt, model }, codec, (body) => send(body, late.signal));
          usages.push(reply.usage);
          if (!codec.isCut(reply)) return reply.text;
          const message = `${nameOf(model)} was cut off in its summary; an extract stands in for it.`;
          throw new LeporelloError('summary-failed', message);
        },
      });
      const tokens = await job.write(summarizer, late.signal);
      log.info(
        { model, tokensBefore: job.tokens, tokensAfter: tokens },
        'a summary is ready for the next fold',
      );
      ended({ result: { tokens }, calls, usages });
    } catch (error) {
      const reason = reasonOf(error);
      rest(job.key);
      log.warn({ model, reason }, 'no summary was written ahead; an extract stands in');
      ended({ result: { reason }, calls, usages });
    } finally {
      clearTimeout(timer);
    }
  }

  function rest(key: string): void {
    const now = Date.now();
    for (const [other, until] of resting)
      if (until <= now || resting.size >= mostResting) resting.delete(other);
    resting.set(key, now + restMs);
  }

  function isBusy({ key, earlier }: SummaryJob): boolean {
    if (running.size >= mostAtOnce || running.has(key)) return true;
    const now = Date.now();
    const isResting = [...resting].some(([other, until]) => until > now && earlier().has(other));
    return isResting || [...running].some((other) => earlier().has(other));
  }

  return {
    modelFor: (model) => configured ?? model,
    running: () => running.size,
    start(order) {
      const { key } = order.job;
      if (isBusy(order.job)) return;
      running.add(key);
      void write(order).finally(() => running.delete(key));
    },
  };
}

function nameOf(model: string | undefined): string {
  return model ?? 'the model of the URL';
}

/** A reply that holds a summary is small. */
const maxReplyBytes = 4 * 1024 * 1024;

/** Rejects with `upstream-failed` where the provider does not answer 200, with `bad-response` where it answers something else. */
export async function askForSummary(
  prompt: Prompt,
  codec: Codec,
  send: (body: Uint8Array) => Promise<UpstreamResponse>,
): Promise<ModelReply> {
  const response = await send(codec.promptBody(prompt));
  const body = await readBody(response.body, maxReplyBytes);
  if (response.status === 200) return codec.readResponse(body, undefined);
  throw new LeporelloError(
    'upstream-failed',
    `The upstream answered ${response.status} to a request for a summary.`,
  );
}

type SummaryReceiptDeps = {
  readonly receipts: ReceiptLog;
  readonly totals: ReceiptTotals;
  readonly metrics: GatewayMetrics | undefined;
  readonly prices: Prices;
  readonly clock: () => number;
  readonly newId: () => string;
};

/** What is known when it is begun. */
export type BegunSummary = Pick<
  SummaryReceipt,
  'at' | 'path' | 'session' | 'behind' | 'model' | 'tokensBefore'
> & { readonly tenant: string };

export async function addSummaryReceipt(
  deps: SummaryReceiptDeps,
  { tenant, ...begun }: BegunSummary,
  { result, calls, usages }: SummaryEnd,
): Promise<void> {
  const isWritten = 'tokens' in result;
  const receipt: SummaryReceipt = {
    kind: 'summary',
    id: deps.newId(),
    ...begun,
    outcome: isWritten ? { status: 'written' } : { status: 'failed', reason: result.reason },
    calls,
    tokensAfter: isWritten ? result.tokens : undefined,
    ...costOf(usages, await deps.prices(), begun.model),
    ms: deps.clock() - begun.at,
  };
  deps.receipts.add(tenant, receipt);
  deps.totals.addSummary(tenant, receipt);
  deps.metrics?.summaryEnded(receipt);
}
