/** Defines the parts that serve requests: those of the gateway, its limits, clock and source of ids; and those that continue one model call. */
import type { Caches } from '../caches.ts';
import type { Codec } from '../codecs/codec.ts';
import type { Engine, EngineRequest, PreparedRequest } from '../engine/types.ts';
import type { ExperimentResults } from '../experiment/spell.ts';
import type { FoldSettings } from '../library/default-engine.ts';
import type { PageClients } from '../page/setup.ts';
import type { ReceiptTotals } from '../receipts/totals.ts';
import type { Controls } from '../store/controls.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import type { StoreWatch } from '../store/wrapped-store.ts';
import type { BackgroundSummarizer } from './background-summarizer.ts';
import type { Handler, HeaderList, Upstream } from './http/http.ts';
import type { RecallLimits, RecallWatch } from '../recall/tool.ts';
import type { ReceiptArchive } from './receipts/archive.ts';
import type { ExchangeNotes, GatewayLog, GatewayMetrics } from './receipts/metrics.ts';
import type { Prices } from '../tokens/model-facts.ts';
import type { AnyReceipt, CostTracker, ReceiptLog, ReceiptSource } from './receipts/receipts.ts';
import type { ContinuationDeps } from './send-with-retries.ts';
import type { UpstreamUrls } from './routing/routes.ts';
import type { TenantRule } from './routing/tenant.ts';

/** Traces the requests of a gateway: it wraps the parts whose calls it traces. Spans contain names, counts and ids, never content. */
export interface GatewayTracing {
  parts(parts: GatewayOptions): GatewayOptions;
  handler(handler: Handler, urls: UpstreamUrls): Handler;
  readonly storeCall: StoreWatch;
}

/** The experiments of a gateway. Their code is loaded when it is first used. */
export type GatewayExperiment = {
  /** Returns what the engine needs to know of a request for experiments. */
  requestFields(tenant: string, headers: HeaderList): Pick<EngineRequest, 'session' | 'held'>;
  /** Notes a receipt. Resolves at once but for the first one, for which the code is loaded. */
  note(tenant: string, receipt: AnyReceipt, source: ReceiptSource | undefined): Promise<void>;
  /** Returns the results of a tenant. Rejects with `store-failed`. */
  report(tenant: string): Promise<ExperimentResults>;
};

export type GatewayOptions = {
  readonly engine: Engine;
  readonly encryptedStore: EncryptedStore;
  /** The settings of the engine. */
  readonly foldSettings: FoldSettings;
  /** Opens caches for engines in this thread. */
  readonly caches: Caches;
  readonly upstream: Upstream;
  readonly urls: UpstreamUrls;
  readonly receipts: ReceiptLog;
  /** Measures what folding costs; undefined when nothing is measured. */
  readonly experiment: GatewayExperiment | undefined;
  /** Keeps receipts beyond the process; undefined when they end with it. */
  readonly archive: ReceiptArchive | undefined;
  readonly pageClients: PageClients | undefined;
  /** Decisions of users; undefined when there is no page to decide on. */
  readonly controls: Controls | undefined;
  readonly totals: ReceiptTotals;
  readonly prices: Prices;
  readonly costs: CostTracker;
  /** Waits until there is time for work that can wait; false when there was none. */
  readonly whenIdle: () => Promise<boolean>;
  /** Metrics of the gateway; undefined when none are kept. */
  readonly metrics: GatewayMetrics | undefined;
  /** True to show metrics to anyone when there is no `adminToken`. */
  readonly openMetrics: boolean;
  readonly log: GatewayLog;
  /** Writes summaries ahead of the folds that need them; undefined when no model writes summaries. */
  readonly summaries: BackgroundSummarizer | undefined;
  readonly recall: RecallLimits;
  /** Runs each recall. Default: it is just run. */
  readonly watchRecall?: RecallWatch | undefined;
  /** Bytes of a request body at most. Larger bodies are answered with 413. */
  readonly maxBodyBytes: number;
  /**
   * Milliseconds that a request waits for the store, and for a fold that only saves money. After that, known folds are repeated, and only a
   * fold that the request needs to fit is made.
   */
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

/** A model call with everything needed to continue it. */
export type Exchange = ContinuationDeps & {
  readonly codec: Codec;
  readonly prepared: PreparedRequest;
  readonly recall: RecallLimits;
  readonly note: ExchangeNotes;
  readonly watchRecall?: RecallWatch | undefined;
  /** Is called with an error of our own code. */
  readonly failed: (error: unknown) => void;
};
