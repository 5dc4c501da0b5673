/** Where the gateway reports; fields hold names, counts and ids, never content and never credentials. */
import type { Receipt, SummaryReceipt } from '../../receipts/receipt.ts';

export interface GatewayLog {
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
}

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
