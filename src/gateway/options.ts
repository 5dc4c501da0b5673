/** What the gateway's core is given: its parts, its limits, a clock and a source of ids. */
import type { Engine } from '../engine/engine.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import type { ReceiptTotals } from '../receipts/totals.ts';
import type { GatewayLog, GatewayMetrics } from './receipts/reporting.ts';
import type { Upstream } from './http/http.ts';
import type { Prices, CostTracker } from './receipts/request-receipt.ts';
import type { RecallLimits } from './recall-loop.ts';
import type { ReceiptLog } from './receipts/receipt-log.ts';
import type { UpstreamUrls } from './routing/provider-of.ts';
import type { BackgroundSummarizer } from './background-summarizer.ts';
import type { TenantRule } from './routing/tenant.ts';

export type GatewayOptions = {
  readonly engine: Engine;
  readonly encryptedStore: Pick<EncryptedStore, 'recall' | 'recallAny'>;
  readonly upstream: Upstream;
  readonly urls: UpstreamUrls;
  readonly receipts: ReceiptLog;
  readonly totals: ReceiptTotals;
  readonly prices: Prices;
  readonly costs: CostTracker;
  /** Counts for whoever watches the gateway; undefined counts nothing. */
  readonly metrics: GatewayMetrics | undefined;
  /** Whether metrics are shown to anyone where there is no `adminToken`. */
  readonly openMetrics: boolean;
  readonly log: GatewayLog;
  /** Writes summaries ahead of the folds that need them; undefined where no model is to be asked. */
  readonly summaries: BackgroundSummarizer | undefined;
  readonly recall: RecallLimits;
  /** Larger bodies are answered 413. Bytes. */
  readonly maxBodyBytes: number;
  /** Folding that takes longer is given up, and the original goes out. Milliseconds. */
  readonly prepareDeadlineMs: number;
  /** With this token as credential, receipts and memories of all tenants are shown. */
  readonly adminToken: string | undefined;
  /** Says whose data each request is. */
  readonly tenants: TenantRule;
  /** Host names (without a port) that requests may be addressed to; undefined allows any. Guards against web pages on loopback. */
  readonly allowedHosts: readonly string[] | undefined;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly newId: () => string;
};
