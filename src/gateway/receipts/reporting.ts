/** Interfaces through which the gateway reports: its log and its metrics. Neither gets content or credentials. */
import type { Receipt, SummaryReceipt } from '../../receipts/receipt.ts';

/** Log of the gateway. Fields contain names, counts and ids. */
export interface GatewayLog {
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** Metrics of the gateway. They contain counts, sums and names of models. */
export interface GatewayMetrics {
  /** Counts a model call when its receipt is written. `format` is the wire format. */
  requestEnded(format: string, receipt: Receipt): void;
  /** Counts a summary that was written in the background, or failed. */
  summaryEnded(receipt: SummaryReceipt): void;
  /** Returns all metrics as text. */
  page(now: { readonly summariesRunning: number }): Promise<{
    readonly contentType: string;
    readonly text: string;
  }>;
}
