/** The series that a gateway shows to Prometheus: names, labels, what they count. docs/metrics.md tells of them. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

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
