/** Where the gateway counts for whoever watches it, and how that is shown. Holds counts, sums and names of models, never content. */
import type { Receipt } from '../../receipts/receipt.ts';
import type { SummaryReceipt } from '../../receipts/summary-receipt.ts';

export interface GatewayMetrics {
  /** Told of each model call when its receipt is written. `format` is the wire format. */
  requestEnded(format: string, receipt: Receipt): void;
  summaryEnded(receipt: SummaryReceipt): void;
  /** All there is, as text. */
  page(now: { readonly summariesRunning: number }): Promise<{
    readonly contentType: string;
    readonly text: string;
  }>;
}
