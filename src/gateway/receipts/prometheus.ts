/** Metrics in the text format of Prometheus. Kept in this process, since it started. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Receipt } from '../../receipts/receipt.ts';
import type { GatewayMetrics } from './reporting.ts';

/** Models that have series of their own. */
const mostModels = 100;

/**
 * Metrics for one gateway, shown at `/metrics`.
 * @example
 * const handler = assembleGateway(settings, { ...deps, metrics: prometheusMetrics() });
 */
export function prometheusMetrics(): GatewayMetrics {
  const registry = new Registry();
  const series = seriesIn(registry);
  const models = createBoundedNames(mostModels);
  startAtNothing(series);
  return {
    requestEnded(format, receipt) {
      const model = models.labelOf(receipt.model, receipt.upstreamStatus === 200);
      series.requests.inc({ format, model, outcome: receipt.outcome.status });
      series.prepare.observe(receipt.ms.prepare / 1_000);
      for (const stage of failuresOf(receipt)) series.failures.inc({ stage });
      for (const { found } of receipt.recalls) series.recalls.inc({ found: found ? 'yes' : 'no' });
      addTokens(series, model, receipt);
      addFold(series, receipt);
    },
    summaryEnded({ model: name, outcome, paid }) {
      const isWritten = outcome.status === 'written';
      (isWritten ? series.written : series.failed).inc();
      const model = models.labelOf(name, isWritten);
      if (paid) series.usdPaid.inc({ model, for: 'summaries' }, paid.total);
    },
    async page({ summariesRunning }) {
      series.running.set(summariesRunning);
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

/** A series that is not there yet cannot be told from one that nobody asks for. */
function startAtNothing({ failures, recalls, warnings }: Series): void {
  for (const stage of ['fold', 'upstream', 'response']) failures.inc({ stage }, 0);
  for (const found of ['yes', 'no']) recalls.inc({ found }, 0);
  for (const warning of ['under', 'over']) warnings.inc({ warning }, 0);
}

function failuresOf({ outcome, upstreamStatus = 0, problem }: Receipt): readonly string[] {
  const isAnswered = upstreamStatus >= 200 && upstreamStatus < 400;
  return [
    ...(outcome.status === 'failed' ? ['fold'] : []),
    ...(isAnswered ? [] : ['upstream']),
    ...(isAnswered && problem !== undefined ? ['response'] : []),
  ];
}

/** Of the same requests as the sums: those for which the provider reported usage, and those whose price is known. */
function addTokens(
  series: Series,
  model: string,
  { usage, tokensBefore, tokensAfter, money }: Receipt,
): void {
  if (usage && tokensBefore !== undefined && tokensAfter !== undefined) {
    series.tokensBefore.inc({ model }, tokensBefore);
    series.tokensAfter.inc({ model }, tokensAfter);
  }
  if (!money) return;
  series.usdPaid.inc({ model, for: 'requests' }, money.paid.total);
  series.usdUntouched.inc({ model }, money.untouched.total);
}

function addFold(series: Series, { outcome, steps, trigger = 'none', compressions }: Receipt): void {
  if (outcome.status !== 'compacted') return;
  if (steps.some(({ edits }) => edits > 0)) series.folds.inc({ trigger });
  for (const { level, by, ratio, tokensBefore, tokensAfter, warning, problem } of compressions) {
    series.ratio.observe({ level, by }, ratio);
    series.saved.inc({ level }, Math.max(0, tokensBefore - tokensAfter));
    if (warning !== undefined) series.warnings.inc({ warning });
    if (problem !== undefined) series.problems.inc();
  }
}

export type Series = ReturnType<typeof seriesIn>;

export function seriesIn(registry: Registry) {
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
      'Folds that failed (the original went out), refusals and absence of the upstream, responses that broke off.',
      'stage',
    ),
    tokensBefore: counter('tokens_before_total', 'Prompt tokens that came, of answered requests.', 'model'),
    tokensAfter: counter(
      'tokens_after_total',
      'Prompt tokens that were to be sent first, of the same requests.',
      'model',
    ),
    usdPaid: counter('usd_paid_total', 'What the provider took, at list prices.', 'model', 'for'),
    usdUntouched: counter(
      'usd_untouched_total',
      'What the requests would have cost untouched: reckoned.',
      'model',
    ),
    folds: counter('folds_total', 'Folds that were made.', 'trigger'),
    recalls: counter('recalls_total', 'Private recalls that were answered.', 'found'),
    prepare: histogram(
      'prepare_seconds',
      'From the whole body received to the request sent.',
      prepareSeconds,
    ),
    ratio: histogram(
      'compression_ratio',
      'Tokens before for one token after, of each summary and shortened list.',
      ratios,
      'level',
      'by',
    ),
    saved: counter('compression_tokens_saved_total', 'Tokens before less tokens after.', 'level'),
    warnings: counter(
      'compression_warnings_total',
      'Ratios under 0.7 or over 1.5 times their target.',
      'warning',
    ),
    problems: counter('compression_problems_total', "Folds in which a model's words were not taken."),
    running: new Gauge({
      name: 'leporello_summaries_running',
      help: 'Summaries that a model is writing ahead now.',
      registers,
    }),
    written: counter('summaries_written_total', 'Summaries that a model wrote ahead.'),
    failed: counter('summaries_failed_total', 'Summaries that a model was asked for in vain.'),
  };
}

const prepareSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const ratios = [1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 100];

export interface BoundedNames {
  /** The name itself, or `other`. `isReal`: somebody answered to it. */
  labelOf(name: string | undefined, isReal: boolean): string;
}

export function createBoundedNames(most: number): BoundedNames {
  const known = new Set<string>();
  return {
    labelOf(name, isReal) {
      if (name === undefined) return 'unknown';
      if (isReal && known.size < most) known.add(name);
      return known.has(name) ? name : 'other';
    },
  };
}
