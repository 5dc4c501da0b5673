/** Keeps metrics in the text format of Prometheus, in this process, from its start on. docs/metrics.md describes each series. */
import type * as client from 'prom-client';
import type { Registry } from 'prom-client';
import { type NoteKind, waitingSpecs } from '../../experiment/waiting-notes.ts';
import type { Receipt } from '../../receipts/receipt.ts';
import { tokensFoldedBy } from '../../receipts/totals.ts';
import type { GatewayMetrics } from './metrics.ts';

/** Maximum number of models with series of their own. */
const maxModels = 100;

/**
 * Creates the metrics of one gateway, shown at `/metrics`. The first call of a function loads the package prom-client, about 30 ms.
 * @example
 * const handler = assembleGateway(settings, { ...deps, metrics: prometheusMetrics() });
 */
export function prometheusMetrics(): GatewayMetrics {
  let opened: Promise<GatewayMetrics> | undefined;
  const open = (): Promise<GatewayMetrics> => {
    opened ??= import('prom-client').then(openMetrics);
    return opened;
  };
  const record = (add: (metrics: GatewayMetrics) => void): void => {
    // Without the package, `page` rejects. A number that the package refuses must not end the process as an unhandled rejection.
    open()
      .then(add)
      .catch(() => undefined);
  };
  return {
    requestEnded: (format, receipt) => record((metrics) => metrics.requestEnded(format, receipt)),
    summaryEnded: (ended) => record((metrics) => metrics.summaryEnded(ended)),
    shadowEnded: (ended) => record((metrics) => metrics.shadowEnded(ended)),
    notesLost: (kind, count) => record((metrics) => metrics.notesLost(kind, count)),
    storeCalled: (call, seconds, isAnswered) =>
      record((metrics) => metrics.storeCalled(call, seconds, isAnswered)),
    page: async (state) => (await open()).page(state),
  };
}

function openMetrics(loaded: typeof client): GatewayMetrics {
  const registry = new loaded.Registry();
  const series = seriesIn(loaded, registry);
  const models = createBoundedNames(maxModels);
  startAtZero(series);
  return {
    requestEnded(format, receipt) {
      const model = models.labelOf(receipt.model, receipt.upstreamStatus === 200);
      series.requests.inc({ format, model, outcome: receipt.outcome.status });
      series.prepare.observe(receipt.ms.prepare / 1_000);
      for (const stage of failuresOf(receipt)) series.failures.inc({ stage });
      for (const { strategy } of receipt.fetchedAgain ?? []) series.fetchedAgain.inc({ strategy });
      for (const { found } of receipt.recalls) series.recalls.inc({ found: found ? 'yes' : 'no' });
      addTokens(series, model, receipt);
      addUsage(series, model, receipt);
      addFold(series, receipt);
    },
    summaryEnded({ model: name, outcome, paid }) {
      const isWritten = outcome.status === 'written';
      (isWritten ? series.written : series.failed).inc();
      const model = models.labelOf(name, isWritten);
      if (paid) series.usdPaid.inc({ model, for: 'summaries' }, paid.total);
    },
    shadowEnded({ outcome, calls, usd }) {
      series.compared.inc({ outcome: outcome.status });
      series.measuringCalls.inc(calls);
      series.measuringUsd.inc(usd);
    },
    notesLost(kind, count) {
      series.notesLost.inc({ kind }, count);
    },
    storeCalled(call, seconds, isAnswered) {
      series.store.observe({ call, outcome: isAnswered ? 'answered' : 'failed' }, seconds);
    },
    async page({ summariesRunning }) {
      series.running.set(summariesRunning);
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

/** Sets series to 0, because a missing series cannot be distinguished from one that is not scraped. */
function startAtZero({ failures, recalls, warnings, notesLost }: Series): void {
  for (const kind of Object.keys(waitingSpecs) as NoteKind[]) notesLost.inc({ kind }, 0);
  for (const stage of ['fold', 'upstream', 'response']) failures.inc({ stage }, 0);
  for (const found of ['yes', 'no']) recalls.inc({ found }, 0);
  for (const warning of ['under', 'over']) warnings.inc({ warning }, 0);
}

function failuresOf({ outcome, upstreamStatus = 0, problem, cutOff }: Receipt): readonly string[] {
  const isAnswered = upstreamStatus >= 200 && upstreamStatus < 400;
  const fold = outcome.status === 'failed' ? ['fold'] : [];
  // A client that left is nobody's failure.
  if (cutOff === 'client left') return fold;
  return [
    ...fold,
    ...(isAnswered ? [] : ['upstream']),
    ...(isAnswered && problem !== undefined ? ['response'] : []),
  ];
}

/** The beginning of the reason for which a fold was held back. */
const held = 'held: ';

/** Adds tokens when the provider reported usage, and money when the price is known, as the totals do. */
function addTokens(
  series: Series,
  model: string,
  { outcome, steps, usage, tokensBefore, tokensAfter, money, experiment: arm }: Receipt,
): void {
  if (usage && tokensBefore !== undefined && tokensAfter !== undefined) {
    series.tokensBefore.inc({ model }, tokensBefore);
    series.tokensAfter.inc({ model }, tokensAfter);
  }
  if (arm) series.experimentRequests.inc({ arm });
  if (steps.some(({ refused }) => refused?.startsWith(held))) series.foldsHeld.inc({ model });
  if (!money) return;
  if (arm) series.experimentUsd.inc({ arm }, money.paid.total);
  series.usdPaid.inc({ model, for: 'requests' }, money.paid.total);
  series.usdUntouched.inc({ model }, money.untouched.total);
  series.priced.inc({ model });
  if (outcome.status === 'compacted') series.folded.inc({ model }, tokensFoldedBy({ steps }));
}

/** Adds what the provider reported: its cache, and how far the count of the prompt was off. */
function addUsage(
  { usage: tokens, countError, prefixChanges }: Series,
  model: string,
  receipt: Receipt,
): void {
  const { usage, prompt, unstableFrom } = receipt;
  if (usage) {
    const { input, cacheRead, cacheWrite, output } = usage;
    tokens.inc({ model, kind: 'input' }, Math.max(0, input - cacheRead - cacheWrite));
    tokens.inc({ model, kind: 'cache_read' }, cacheRead);
    tokens.inc({ model, kind: 'cache_write' }, cacheWrite);
    tokens.inc({ model, kind: 'output' }, output);
  }
  if (prompt) countError.observe(prompt.errorPercent / 100);
  if (unstableFrom !== undefined) prefixChanges.inc();
}

function addFold(series: Series, receipt: Receipt): void {
  const { outcome, steps, trigger = 'none', compressions, recalls, memories } = receipt;
  if (outcome.status !== 'compacted') return;
  if (memories.length > 0) series.recallsPerRequest.observe(recalls.length);
  if (steps.some(({ edits }) => edits > 0)) series.folds.inc({ trigger });
  for (const { level, by, ratio, tokensBefore, tokensAfter, warning, problem } of compressions) {
    series.ratio.observe({ level, by }, ratio);
    series.saved.inc({ level }, Math.max(0, tokensBefore - tokensAfter));
    if (warning !== undefined) series.warnings.inc({ warning });
    if (problem !== undefined) series.problems.inc();
  }
}

export type Series = ReturnType<typeof seriesIn>;

function seriesIn({ Counter, Gauge, Histogram }: typeof client, registry: Registry) {
  const registers = [registry];
  const counter = <T extends string>(name: string, help: string, ...labelNames: readonly T[]) =>
    new Counter({ name: `leporello_${name}`, help, labelNames, registers });
  const histogram = <T extends string>(
    name: string,
    help: string,
    buckets: number[],
    ...labelNames: readonly T[]
  ) => new Histogram({ name: `leporello_${name}`, help, buckets, labelNames, registers });
  return {
    requests: counter('requests_total', 'Model calls that ended.', 'format', 'model', 'outcome'),
    failures: counter(
      'failures_total',
      'Failures by stage: fold (the original was sent), upstream (error or no answer), response (broken off).',
      'stage',
    ),
    tokensBefore: counter(
      'tokens_before_total',
      'Prompt tokens that clients sent, in answered requests.',
      'model',
    ),
    tokensAfter: counter(
      'tokens_after_total',
      'Prompt tokens that the gateway sent for the same requests, without continuations after recalls.',
      'model',
    ),
    usdPaid: counter('usd_paid_total', 'Actual cost in USD, at list prices.', 'model', 'for'),
    usdUntouched: counter(
      'usd_untouched_total',
      'Estimated cost in USD of the same requests without Leporello.',
      'model',
    ),
    priced: counter('priced_requests_total', 'Model calls whose cost is in usd_paid_total.', 'model'),
    folded: counter(
      'tokens_folded_total',
      'Tokens that the new folds of these calls took out, each once.',
      'model',
    ),
    folds: counter('folds_total', 'New folds.', 'trigger'),
    foldsHeld: counter(
      'folds_held_total',
      'Requests whose new fold was not made, because a shadow holds its strategies.',
      'model',
    ),
    recalls: counter('recalls_total', 'Recalls that were answered: found, or missed.', 'found'),
    recallsPerRequest: histogram(
      'recalls_per_folded_request',
      'Recalls in each request that was sent with folded content.',
      recallCounts,
    ),
    usage: counter(
      'provider_tokens_total',
      'Tokens that providers reported: input (neither read from nor written to a cache), cache_read, cache_write, output.',
      'model',
      'kind',
    ),
    countError: histogram(
      'count_error_ratio',
      "Counted prompt tokens divided by the provider's, minus 1, after correction: negative when the count was too low.",
      errorRatios,
    ),
    prefixChanges: counter(
      'prefix_changes_total',
      'Requests whose sent prefix changed without a fold, so that the provider could not use its cache: a bug.',
    ),
    experimentRequests: counter(
      'experiment_requests_total',
      'Requests of conversations in an experiment, from the point where its arms parted: control, folded.',
      'arm',
    ),
    experimentUsd: counter('experiment_usd_total', 'Actual cost of these requests in USD.', 'arm'),
    compared: counter(
      'shadow_comparisons_total',
      'Folded requests that were sent again: compared, or failed.',
      'outcome',
    ),
    measuringCalls: counter('shadow_requests_total', 'Requests that were sent for these comparisons.'),
    measuringUsd: counter('shadow_usd_total', 'Cost of these requests in USD. It is in no other series.'),
    notesLost: counter(
      'notes_lost_total',
      'Notes about ended requests that were not stored, because too many were waiting or the store failed: receipt, holdout, shadow.',
      'kind',
    ),
    store: histogram(
      'store_seconds',
      'Seconds of each call of the store, answered or failed.',
      storeSeconds,
      'call',
      'outcome',
    ),
    fetchedAgain: counter(
      'fetched_again_total',
      'Tool results that the agent fetched again after a fold had taken their lines, by the strategy that took them.',
      'strategy',
    ),
    prepare: histogram(
      'prepare_seconds',
      'Seconds from receiving the whole body to sending the request.',
      prepareSeconds,
    ),
    ratio: histogram(
      'compression_ratio',
      'Tokens before divided by tokens after, for each summary and each shortened list.',
      ratios,
      'level',
      'by',
    ),
    saved: counter('compression_tokens_saved_total', 'Tokens before minus tokens after.', 'level'),
    warnings: counter(
      'compression_warnings_total',
      'Compression ratios below 0.7 times or above 1.5 times their target.',
      'warning',
    ),
    problems: counter('compression_problems_total', "Folds that rejected a model's summary."),
    running: new Gauge({
      name: 'leporello_summaries_running',
      help: 'Summaries that a model is writing now, ahead of the next fold.',
      registers,
    }),
    written: counter('summaries_written_total', 'Summaries that a model wrote ahead of a fold.'),
    failed: counter('summaries_failed_total', 'Summaries that a model failed to write.'),
  };
}

const prepareSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const storeSeconds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
const errorRatios = [-0.5, -0.2, -0.1, -0.05, -0.02, 0, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
const recallCounts = [0, 1, 2, 3, 5, 10];
const ratios = [1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 100];

/**
 * Names from clients as labels of metrics. Each label value is a series that is kept forever, so the number of names is bounded, and only
 * names that a provider has accepted count.
 */
interface BoundedNames {
  /** Returns the name itself, `other`, or `unknown` without a name. `isReal`: a provider has accepted the name. */
  labelOf(name: string | undefined, isReal: boolean): string;
}

export function createBoundedNames(maxNames: number): BoundedNames {
  const known = new Set<string>();
  return {
    labelOf(name, isReal) {
      if (name === undefined) return 'unknown';
      if (isReal && known.size < maxNames) known.add(name);
      return known.has(name) ? name : 'other';
    },
  };
}
