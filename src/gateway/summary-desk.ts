/**
 * Has summaries written ahead, off the path of any request: each once, a few at a time, with the credential of the conversation they are
 * for. What fails is told to the log, and an extract stands in at the fold.
 */
import type { Codec } from '../codecs/codec.ts';
import type { SummaryJob } from '../compact/summary-ahead.ts';
import { LeporelloError } from '../errors.ts';
import { createModelSummarizer } from '../summarizers/model.ts';
import type { SummaryPrompt } from '../summarizers/prompts.ts';
import type { ModelInfo } from '../tokens/models.ts';
import { readBody, type UpstreamResponse } from './http.ts';
import type { GatewayLog } from './gateway-log.ts';

export interface SummaryDesk {
  /** Which model is asked where a conversation is with `model`. */
  modelFor(model: string | undefined): string | undefined;
  /** Returns at once. */
  start(order: SummaryOrder): void;
}

export type SummaryOrder = {
  readonly job: SummaryJob;
  readonly codec: Codec;
  /** As `modelFor` says. */
  readonly model: string | undefined;
  /** Sends a request of our own with the credential of the conversation. */
  readonly send: (body: Uint8Array, signal: AbortSignal) => Promise<UpstreamResponse>;
};

export type SummaryDeskOptions = {
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
const fallbackWindow = 32_000;

export function createSummaryDesk({
  model: configured,
  deadlineMs,
  infoOf,
  log,
}: SummaryDeskOptions): SummaryDesk {
  const running = new Set<string>();
  const resting = new Map<string, number>();

  async function write({ job, codec, model, send }: SummaryOrder): Promise<void> {
    const { window = fallbackWindow, maxInput = window, maxOutput } = await infoOf(model);
    const summarizer = createModelSummarizer({
      model: model ?? 'the model of the URL',
      // A count may be off, most of all for models whose vocabulary nobody knows.
      maxInputTokens: Math.floor(maxInput * 0.7),
      maxOutputTokens: maxOutput,
      ask: (prompt, signal) => ask(codec, model, prompt, (body) => send(body, signal!)),
    });
    const tokens = await job.write(summarizer, AbortSignal.timeout(deadlineMs));
    log.info(
      { model, tokensBefore: job.tokens, tokensAfter: tokens },
      'a summary is ready for the next fold',
    );
  }

  return {
    modelFor: (model) => configured ?? model,
    start(order) {
      const { key } = order.job;
      if (running.has(key) || running.size >= mostAtOnce || (resting.get(key) ?? 0) > Date.now()) return;
      running.add(key);
      void write(order)
        .catch((error: unknown) => {
          if (resting.size > 1_000) resting.clear();
          resting.set(key, Date.now() + restMs);
          log.warn(
            { model: order.model, reason: reasonOf(error) },
            'no summary was written ahead; an extract stands in',
          );
        })
        .finally(() => running.delete(key));
    },
  };
}

/** A reply that holds a summary is small. */
const maxReplyBytes = 4 * 1024 * 1024;

async function ask(
  codec: Codec,
  model: string | undefined,
  prompt: SummaryPrompt,
  send: (body: Uint8Array) => Promise<UpstreamResponse>,
): Promise<string> {
  const response = await send(codec.promptBody({ ...prompt, model }));
  const body = await readBody(response.body, maxReplyBytes);
  if (response.status === 200) return codec.readResponse(body, undefined).text;
  throw new LeporelloError(
    'upstream-failed',
    `The upstream answered ${response.status} to a request for a summary.`,
  );
}

/** Our own errors say no content; of others only the kind is told. */
function reasonOf(error: unknown): string {
  if (LeporelloError.isInstance(error)) return error.message;
  return error instanceof Error ? error.name : 'unexpected error';
}
