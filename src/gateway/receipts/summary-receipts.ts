/** The receipt of a summary that was written ahead: what was asked of a model and paid for, used or not. */
import type { ReceiptTotals } from '../../receipts/totals.ts';
import { costOf, type SummaryReceipt } from '../../receipts/summary-receipt.ts';
import type { GatewayMetrics } from './gateway-metrics.ts';
import type { Prices } from './prices.ts';
import type { ReceiptLog } from './receipt-log.ts';
import type { SummaryEnd } from '../background-summarizer.ts';

type SummaryRim = {
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
  rim: SummaryRim,
  { tenant, ...begun }: BegunSummary,
  { result, calls, usages }: SummaryEnd,
): Promise<void> {
  const isWritten = 'tokens' in result;
  const receipt: SummaryReceipt = {
    kind: 'summary',
    id: rim.newId(),
    ...begun,
    outcome: isWritten ? { status: 'written' } : { status: 'failed', reason: result.reason },
    calls,
    tokensAfter: isWritten ? result.tokens : undefined,
    ...costOf(usages, await rim.prices(), begun.model),
    ms: rim.clock() - begun.at,
  };
  rim.receipts.add(tenant, receipt);
  rim.totals.addSummary(tenant, receipt);
  rim.metrics?.summaryEnded(receipt);
}
