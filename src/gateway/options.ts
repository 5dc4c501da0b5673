/** The parts, limits, clock and id source that the core of the gateway works with. */
import type { Engine } from '../engine/engine.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import type { ReceiptTotals } from '../receipts/totals.ts';
import type { GatewayLog, GatewayMetrics } from './receipts/reporting.ts';
import type { Upstream } from './http/http.ts';
import type { CostTracker, Prices, ReceiptLog } from './receipts/receipts.ts';
import type { RecallLimits } from './recall-loop.ts';
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
  /** Metrics of the gateway; undefined when none are kept. */
  readonly metrics: GatewayMetrics | undefined;
  /** True to show metrics to anyone when there is no `adminToken`. */
  readonly openMetrics: boolean;
  readonly log: GatewayLog;
  /** Writes summaries ahead of the folds that need them; undefined when no model writes summaries. */
  readonly summaries: BackgroundSummarizer | undefined;
  readonly recall: RecallLimits;
  /** Bytes of a request body at most. Larger bodies are answered with 413. */
  readonly maxBodyBytes: number;
  /** Milliseconds that folding may take. After that the original is sent. */
  readonly prepareDeadlineMs: number;
  /** Credential that shows the receipts and originals of all tenants. */
  readonly adminToken: string | undefined;
  /** Decides which tenant each request belongs to. */
  readonly tenants: TenantRule;
  /** Host names (without a port) that requests may be addressed to; undefined allows any. Protects a loopback gateway from web pages. */
  readonly allowedHosts: readonly string[] | undefined;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly newId: () => string;
};
