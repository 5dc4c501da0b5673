/**
 * Writes summaries, and texts of items and records, in the background, ahead of the folds that need them: one job at a time for each conversation, a few
 * at a time in all, with the credential of the conversation. Failures are logged; the fold then uses extracts.
 */
import { maxTimerMs } from '../checks.ts';
import type { Codec, ModelReply, Prompt } from '../codecs/codec.ts';
import type { SummaryJob } from '../engine/types.ts';
import { LeporelloError, reasonOf } from '../errors.ts';
import { readBody } from './http/body.ts';
import type { UpstreamResponse } from './http/http.ts';
import type { GatewayLog, GatewayMetrics } from './receipts/metrics.ts';
import type { Prices } from '../tokens/model-facts.ts';
import type { ReceiptLog } from './receipts/receipts.ts';
import { createModelSummarizer } from '../outline/model.ts';
import { type CallUsage, type SummaryReceipt, costOf } from '../receipts/receipt.ts';
import type { ReceiptTotals } from '../receipts/totals.ts';
import type { ModelInfo } from '../tokens/models.ts';

/** Starts summaries in the background. */
export interface BackgroundSummarizer {
  /** Returns the model that writes the summaries of a conversation with `model`. */
  modelFor(model: string | undefined): string | undefined;
  /** Starts to write a summary, and returns at once. Does nothing while too many are being written or the conversation failed recently. */
  start(order: SummaryOrder): void;
  /** Returns the number of summaries that are being written. */
  running(): number;
}

/** A summary to write. */
type SummaryOrder = {
  readonly job: SummaryJob;
  readonly codec: Codec;
  /** The model that `modelFor` returned. */
  readonly model: string | undefined;
  /** Sends a request with the credential of the conversation. */
  readonly send: (body: Uint8Array, signal: AbortSignal) => Promise<UpstreamResponse>;
  /** Called once, when the summary is written or has failed. Not called when another gateway writes it. */
  readonly ended: (end: SummaryEnd) => void;
};

/** The result of writing a summary. */
type SummaryEnd = {
  /** The tokens of the summary, or the reason why there is none. */
  readonly result: { readonly tokens: number } | { readonly reason: string };
  /** Number of calls of the model, answered or not. */
  readonly calls: number;
  readonly usages: CallUsage;
};

export type BackgroundSummarizerOptions = {
  readonly model?: string | undefined;
  /** Maximum milliseconds for one summary. */
  readonly deadlineMs: number;
  readonly infoOf: (
    model: string | undefined,
  ) => Promise<Pick<ModelInfo, 'window' | 'maxInput' | 'maxOutput'>>;
  readonly log: GatewayLog;
};

/** Maximum number of summaries written at once. The next request of a conversation asks again for one that could not start. */
const maxAtOnce = 4;
/** Milliseconds after a failure in which no summary of the conversation is started, to spare a provider in trouble. */
const restMs = 60_000;
/** Milliseconds that a lease outlasts the deadline of a summary: time to store it, and for clocks that differ between gateways. */
const marginMs = 5_000;
/** Maximum number of conversations that are remembered after a failure. */
const maxResting = 1_000;
/** Tokens of the window of a model that is not in the catalog. */
const fallbackWindow = 32_000;

/** The words of logs and errors about a job. */
const words = {
  summary: {
    what: 'a summary',
    instead: 'an extractive summary is',
    ready: 'a summary is ready for the next fold',
    failed: 'the model wrote no summary; the next fold uses an extractive summary',
  },
  texts: {
    what: 'texts of items and records',
    instead: 'extracts are',
    ready: 'texts of items and records are ready for the next fold',
    failed: 'the model wrote no texts of items and records; the next fold uses extracts',
  },
};

/** Creates the background summarizer of one gateway. */
export function createBackgroundSummarizer({
  model: configured,
  deadlineMs,
  infoOf,
  log,
}: BackgroundSummarizerOptions): BackgroundSummarizer {
  const running = new Set<string>();
  const resting = new Map<string, number>();

  async function write({ job, codec, model, send, ended }: SummaryOrder): Promise<void> {
    const { what, instead, ready, failed } = words[job.writes];
    const usages: CallUsage[number][] = [];
    let calls = 0;
    const late = new AbortController();
    const timer = setTimeout(
      () => {
        const message = `${nameOf(model)} took longer than ${deadlineMs} ms for ${what}; ${instead} used instead.`;
        late.abort(new LeporelloError('deadline', message));
      },
      Math.min(deadlineMs, maxTimerMs),
    );
    try {
      if (!(await job.claim(deadlineMs + marginMs))) return;
      const { window = fallbackWindow, maxInput = window, maxOutput } = await infoOf(model);
      const summarizer = createModelSummarizer({
        model: nameOf(model),
        // Token counts can be wrong, most of all for models without a public tokenizer.
        maxInputTokens: Math.floor(maxInput * 0.7),
        maxOutputTokens: maxOutput,
        ask: async (prompt) => {
          calls++;
          const reply = await askForSummary({ ...prompt, model }, codec, (body) => send(body, late.signal));
          usages.push(reply.usage);
          if (!codec.isTruncated(reply)) return reply.text;
          const message = `${nameOf(model)} reached its output limit before the end of ${what}; ${instead} used instead.`;
          throw new LeporelloError('summary-failed', message);
        },
      });
      const tokens = await job.write(summarizer, late.signal);
      log.info({ model, tokensBefore: job.tokens, tokensAfter: tokens }, ready);
      ended({ result: { tokens }, calls, usages });
    } catch (error) {
      const reason = reasonOf(error);
      rest(job.key);
      log.warn({ model, reason }, failed);
      ended({ result: { reason }, calls, usages });
    } finally {
      clearTimeout(timer);
    }
  }

  function rest(key: string): void {
    const now = Date.now();
    for (const [other, until] of resting)
      if (until <= now || resting.size >= maxResting) resting.delete(other);
    resting.set(key, now + restMs);
  }

  function isBusy({ key, earlier }: SummaryJob): boolean {
    if (running.size >= maxAtOnce || running.has(key)) return true;
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
      const end = () => running.delete(key);
      void write(order).then(end, end);
    },
  };
}

function nameOf(model: string | undefined): string {
  return model ?? 'the model in the URL';
}

/** Bytes of a reply with a summary at most. */
const maxReplyBytes = 4 * 1024 * 1024;

/**
 * Asks a model for a summary, in the wire format of the conversation. Rejects with `upstream-failed` when the provider does not answer 200,
 * and with `bad-response` when its answer cannot be read.
 */
async function askForSummary(
  prompt: Prompt,
  codec: Codec,
  send: (body: Uint8Array) => Promise<UpstreamResponse>,
): Promise<ModelReply> {
  const response = await send(codec.promptBody(prompt));
  const body = await readBody(response.body, maxReplyBytes);
  if (response.status === 200) return codec.readResponse(body, new Set());
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

/** The facts of a summary that are known when it starts. */
type StartedSummary = Pick<
  SummaryReceipt,
  'at' | 'path' | 'session' | 'behind' | 'model' | 'tokensBefore'
> & {
  readonly tenant: string;
};

/** Writes the receipt of a summary: its calls and their cost, whether a fold uses the summary or not. */
export async function addSummaryReceipt(
  deps: SummaryReceiptDeps,
  { tenant, ...started }: StartedSummary,
  { result, calls, usages }: SummaryEnd,
): Promise<void> {
  const isWritten = 'tokens' in result;
  const receipt: SummaryReceipt = {
    kind: 'summary',
    id: deps.newId(),
    ...started,
    outcome: isWritten ? { status: 'written' } : { status: 'failed', reason: result.reason },
    calls,
    tokensAfter: isWritten ? result.tokens : undefined,
    ...costOf(usages, await deps.prices(), started.model),
    ms: deps.clock() - started.at,
  };
  deps.receipts.add(tenant, receipt);
  deps.totals.addSummary(tenant, receipt);
  deps.metrics?.summaryEnded(receipt);
}
