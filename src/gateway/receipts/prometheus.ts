/** Metrics in the text format of Prometheus. Kept in this process, since it started. */
import { Registry } from 'prom-client';
import type { Receipt } from '../../receipts/receipt.ts';
import { createBoundedNames } from './bounded-names.ts';
import type { GatewayMetrics } from './gateway-metrics.ts';
import { type Series, seriesIn } from './prometheus-series.ts';

/** Models that have series of their own. */
const mostModels = 100;

/**
 * Metrics for one gateway, shown at `/metrics`.
 * @example
 * const handler = assembleGateway(settings, { ...rims, metrics: prometheusMetrics() });
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
