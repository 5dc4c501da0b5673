/** Puts the gateway together from its settings. Opens nothing itself: the store and the upstream are passed in. */
import { LeporelloError } from '../errors.ts';
import { createDefaultEngine, type FoldSettings } from '../compact/default-engine.ts';
import type { Store } from '../memory/store.ts';
import { createVault } from '../memory/vault.ts';
import { createAggregate } from '../metrics/aggregate.ts';
import { createGateway } from './app.ts';
import type { Handler, Upstream } from './http.ts';
import type { GatewayLog } from './gateway-log.ts';
import type { GatewayMetrics } from './gateway-metrics.ts';
import { pricesFrom } from './prices.ts';
import { createReceiptLog } from './receipts.ts';
import { createReckoner } from './reckoner.ts';
import { loadModelInfo } from '../tokens/models.ts';
import { createSummaryDesk, type SummaryDesk } from './summary-desk.ts';
import { defaultUpstreams, type UpstreamUrls } from './provider-of.ts';

export type GatewaySettings = FoldSettings & {
  readonly urls?: Partial<UpstreamUrls>;
  /** Bytes; larger request bodies are answered 413. Default 64 MiB. */
  readonly maxBodyBytes?: number;
  /** Milliseconds; folding that takes longer is given up for this request. Default 2,000. */
  readonly prepareDeadlineMs?: number;
  readonly recall?: { readonly maxRounds?: number; readonly maxTokens?: number };
  /** Credential that sees the receipts and memories of all tenants; at least 16 characters. It is never sent to a provider. */
  readonly adminToken?: string;
  /**
   * Whether `/metrics`, which is of all tenants, is shown to anyone while there is no `adminToken`. Default: only where there is one
   * `tenant` for all.
   */
  readonly openMetrics?: boolean;
  /**
   * One tenant (a-z, 0-9, -) for all requests. For a gateway that serves one person whose tokens change within a conversation; by
   * default each credential is a tenant of its own.
   */
  readonly tenant?: string;
  /** Host names, without a port, that requests may be addressed to; others are answered 421. Default: any. */
  readonly allowedHosts?: readonly string[];
};

export type GatewayRims = {
  readonly store: Store;
  readonly secret: Uint8Array;
  readonly upstream: Upstream;
  readonly log: GatewayLog;
  /** Counts for whoever watches the gateway, such as `prometheusMetrics()`. Default: none. */
  readonly metrics?: GatewayMetrics;
};

/** The gateway as a handler of requests. Throws `bad-config` for settings out of range. */
export function assembleGateway(settings: GatewaySettings, rims: GatewayRims): Handler {
  const { memoryTtlMs: ttlMs, storeDeadlineMs } = settings;
  const vault = createVault({ store: rims.store, secret: rims.secret, ttlMs, storeDeadlineMs });
  return createGateway({
    engine: createDefaultEngine(settings, vault),
    vault,
    upstream: rims.upstream,
    urls: { ...defaultUpstreams, ...settings.urls },
    receipts: createReceiptLog(),
    totals: createAggregate(),
    prices: pricesFrom(settings.prices),
    reckoner: createReckoner(),
    metrics: rims.metrics,
    openMetrics: settings.openMetrics ?? settings.tenant !== undefined,
    log: rims.log,
    summaries: summaryDesk(settings, rims.log),
    recall: { maxRounds: settings.recall?.maxRounds ?? 5, maxTokens: settings.recall?.maxTokens ?? 8_000 },
    maxBodyBytes: settings.maxBodyBytes ?? 64 * 1024 * 1024,
    prepareDeadlineMs: settings.prepareDeadlineMs ?? 2_000,
    adminToken: checkedToken(settings.adminToken),
    tenant: settings.tenant,
    allowedHosts: settings.allowedHosts,
    clock: () => performance.timeOrigin + performance.now(),
    newId: () => crypto.randomUUID(),
  });
}

/** A short one could be guessed, and would be found in headers that do not hold it. */
function checkedToken(token: string | undefined): string | undefined {
  if (token === undefined || token.length >= 16) return token;
  throw new LeporelloError('bad-config', `adminToken has ${token.length} characters: it needs at least 16.`);
}

function summaryDesk({ summaries, models }: GatewaySettings, log: GatewayLog): SummaryDesk | undefined {
  if (!summaries || summaries.kind !== 'model') return undefined;
  const { model, deadlineMs = 60_000 } = summaries;
  return createSummaryDesk({ model, deadlineMs, infoOf: (name) => loadModelInfo(name, models ?? {}), log });
}
