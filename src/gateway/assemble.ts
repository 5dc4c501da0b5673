/** Puts the gateway together from its settings: engine, vault, ledger, receipts. Opens nothing itself; the rims and the store are passed in. */
import { createEngine, type Engine } from '../compact/engine.ts';
import type { Pins } from '../compact/protection.ts';
import { sha256 } from '../memory/digest.ts';
import { createLedger } from '../memory/ledger.ts';
import type { Store } from '../memory/store.ts';
import { createVault, type Vault } from '../memory/vault.ts';
import { defaultStrategies } from '../strategies/default-strategies.ts';
import { loadTokenCounter } from '../tokens/load-counter.ts';
import { FALLBACK_WINDOW, loadModelInfo, type ModelOverrides } from '../tokens/models.ts';
import { defaultTriggers, type TriggerOptions } from '../triggers/default-triggers.ts';
import { createGateway, type GatewayLog } from './app.ts';
import type { Handler, Upstream } from './http.ts';
import { createReceiptLog } from './receipts.ts';
import { defaultUpstreams, type UpstreamUrls } from './routes.ts';

/** What a user can set of folding. Everything has a default. */
export type FoldSettings = {
  readonly triggers?: TriggerOptions;
  /** Tool results of fewer bytes (UTF-8) are never offloaded. Default 1,000. */
  readonly compressionBytesThreshold?: number;
  readonly pins?: Pins;
  /** Windows, tokenizers and reply limits by model name or glob. */
  readonly models?: ModelOverrides;
  /** Whether the recall tool is offered. Default true. */
  readonly offerRecall?: boolean;
};

export type GatewaySettings = FoldSettings & {
  readonly urls?: Partial<UpstreamUrls>;
  /** Bytes; larger request bodies are answered 413. Default 64 MiB. */
  readonly maxBodyBytes?: number;
  /** Milliseconds; folding that takes longer is given up for this request. Default 2,000. */
  readonly prepareDeadlineMs?: number;
  readonly recall?: { readonly maxRounds?: number; readonly maxTokens?: number };
  /** Credential that sees the receipts and memories of all tenants. */
  readonly adminToken?: string;
  /** How long originals and folds are kept, in milliseconds. Default 30 days. */
  readonly memoryTtlMs?: number;
};

export type GatewayRims = {
  readonly store: Store;
  readonly secret: Uint8Array;
  readonly upstream: Upstream;
  readonly log: GatewayLog;
};

export function assembleGateway(settings: GatewaySettings, rims: GatewayRims): Handler {
  const vault = createVault({ store: rims.store, secret: rims.secret, ...ttl(settings.memoryTtlMs) });
  return createGateway({
    engine: assembleEngine(settings, vault),
    vault,
    upstream: rims.upstream,
    urls: { ...defaultUpstreams, ...settings.urls },
    receipts: createReceiptLog(),
    log: rims.log,
    recall: { maxRounds: settings.recall?.maxRounds ?? 5, maxTokens: settings.recall?.maxTokens ?? 8_000 },
    maxBodyBytes: settings.maxBodyBytes ?? 64 * 1024 * 1024,
    prepareDeadlineMs: settings.prepareDeadlineMs ?? 2_000,
    adminToken: settings.adminToken,
    clock: () => performance.timeOrigin + performance.now(),
    newId: () => crypto.randomUUID(),
  });
}

/** The engine alone, for what folds without serving. */
export function assembleEngine(
  settings: FoldSettings & { readonly memoryTtlMs?: number },
  vault: Vault,
): Engine {
  const models = settings.models ?? {};
  return createEngine({
    vault,
    ledger: createLedger({ vault, ...ttl(settings.memoryTtlMs) }),
    digest: sha256,
    triggers: defaultTriggers(settings.triggers),
    strategies: defaultStrategies,
    counterFor: (model) => loadTokenCounter(model, models),
    async windowFor(model) {
      const { window, maxInput } = await loadModelInfo(model, models);
      return { tokens: maxInput ?? window ?? FALLBACK_WINDOW, holdsReply: maxInput === undefined };
    },
    offerRecall: settings.offerRecall ?? true,
    ...(settings.pins ? { pins: settings.pins } : {}),
    ...(settings.compressionBytesThreshold === undefined
      ? {}
      : { compressionBytesThreshold: settings.compressionBytesThreshold }),
  });
}

function ttl(ttlMs: number | undefined): { readonly ttlMs?: number } {
  return ttlMs === undefined ? {} : { ttlMs };
}
