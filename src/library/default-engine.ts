/** The engine with everything it usually has: settings in, the defaults for the rest. */
import { LRUCache } from 'lru-cache';
import { createSeenBodies } from '../codecs/seen-bodies.ts';
import { type Engine, createEngine } from '../engine/engine.ts';
import type {
  SummaryAheadOptions,
  CachePrices,
  EngineMode,
  EngineOptions,
  ModelWindow,
  OfferRecall,
  Pins,
} from '../engine/types.ts';
import type { Preset } from '../outline/levels.ts';
import { type PriceOverrides, createPriceList } from '../receipts/prices.ts';
import { commonLength, sha256 } from '../store/ids.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import { createFoldStore } from '../store/fold-store.ts';
import { createHiddenRecalls } from '../store/hidden-recalls.ts';
import { createKeptReplies } from '../store/kept-replies.ts';
import { createReadySummaries } from '../store/ready-summaries.ts';
import { type SummarySettings, strategiesFor } from '../strategies/default-strategies.ts';
import type { SubgoalOptions } from '../strategies/fold-subgoals.ts';
import type { ShrinkSettings } from '../strategies/shrink-results.ts';
import { defaultMaxTokens } from '../strategies/summarize-history.ts';
import { type Calibration, uncalibrated } from '../tokens/calibration.ts';
import { loadCatalog } from '../tokens/catalog.ts';
import { loadTokenCounter } from '../tokens/load-counter.ts';
import { FALLBACK_WINDOW, type ModelOverrides, loadModelInfo } from '../tokens/models.ts';
import { type TriggerOptions, defaultTriggers } from '../triggers/default-triggers.ts';

/** What a user can set of folding. Everything has a default. */
export type FoldSettings = {
  readonly triggers?: TriggerOptions;
  /** Tool results of fewer bytes (UTF-8) are never offloaded. Default 1,000. */
  readonly compressionBytesThreshold?: number;
  readonly pins?: Partial<Pins>;
  /** How tool results are made smaller when they come; `false` leaves them as they are. Default: without loss, and large ones with. */
  readonly shrinks?: Partial<ShrinkSettings> | false;
  /** Whether old messages leave a summary behind rather than a stub that names what their calls were about. Default: a stub. */
  readonly summaries?: SummarySettings | false;
  /** How hard finished sub-goals are folded, by what it is for: `production`, `debugging`, `long-horizon`, `cost`. Default: they are not. */
  readonly preset?: Preset;
  /** Whether finished sub-goals leave a short record behind, and many of these one of a phase. Overrules `preset`. Default: as that says. */
  readonly subgoals?: SubgoalOptions | false;
  /** Windows, tokenizers and reply limits by model name or glob. */
  readonly models?: ModelOverrides;
  /** `observe` reckons everything and changes nothing. Default `fold`. */
  readonly mode?: EngineMode;
  /** USD per million tokens by model name or glob, beside the catalogue: a fold that only saves money is made where it pays. */
  readonly prices?: PriceOverrides;
  /** Whether clients that mark nothing for their provider's cache get marks where they pay. Default true. */
  readonly cacheMarks?: boolean;
  /** How counts are corrected by what providers report; `false` leaves them as they are. Default: with the usual bounds. */
  readonly calibration?: Calibration | false;
  /** When the model is offered the recall tool. Default `always`. */
  readonly offerRecall?: OfferRecall;
  /** How long originals and folds are kept after they were last used, in milliseconds. Default 30 days. */
  readonly memoryTtlMs?: number;
  /**
   * How long one call of the store may take, in milliseconds; then it is given up, and what needed it goes on without it or rejects with
   * `store-failed`. Default 500.
   */
  readonly storeDeadlineMs?: number;
};

const defaultShrinks: ShrinkSettings = { lossless: false, lineNumbers: 'every', repeats: true };

/** What measurements put in the place of what an engine usually has. */
export type EngineOverrides = Partial<
  Pick<EngineOptions, 'clock' | 'strategies' | 'isHistoryKept' | 'keptReplies'>
>;

/** Throws `bad-config` for trigger options out of range. */
export function createDefaultEngine(
  settings: FoldSettings,
  encryptedStore: EncryptedStore,
  others: EngineOverrides = {},
): Engine {
  const { clock = Date.now, strategies = strategiesFor(settings), isHistoryKept } = others;
  const { keptReplies = createKeptReplies({ encryptedStore, ttlMs: settings.memoryTtlMs, clock }) } = others;
  const models = settings.models ?? {};
  const factsFor = modelFacts(models, settings.prices);
  return createEngine({
    encryptedStore,
    foldStore: createFoldStore({ encryptedStore, ttlMs: settings.memoryTtlMs }),
    hiddenRecalls: createHiddenRecalls({ encryptedStore, ttlMs: settings.memoryTtlMs, clock }),
    keptReplies,
    summaries: aheadOf(settings.summaries, encryptedStore),
    digest: sha256,
    seen: createSeenBodies({ digest: sha256, commonLength }),
    triggers: defaultTriggers(settings.triggers),
    strategies,
    counterFor: (model) => loadTokenCounter(model, models),
    windowFor: async (model) => (await factsFor(model)).window,
    pricesFor: async (model, promptTokens) => (await factsFor(model)).pricesAt(promptTokens),
    calibration: settings.calibration === false ? uncalibrated : settings.calibration,
    cacheMarks: settings.cacheMarks,
    clock,
    mode: settings.mode,
    shrinks: settings.shrinks === false ? undefined : { ...defaultShrinks, ...settings.shrinks },
    offerRecall: settings.offerRecall,
    isHistoryKept,
    pins: { tools: settings.pins?.tools ?? [], texts: settings.pins?.texts ?? [] },
    compressionBytesThreshold: settings.compressionBytesThreshold,
  });
}

type ModelFacts = {
  readonly window: ModelWindow;
  /** Prices of a prompt of so many tokens. */
  readonly pricesAt: (promptTokens: number) => CachePrices | undefined;
};

/** Looks up each model once: its name is matched with a dozen tables of patterns. */
function modelFacts(models: ModelOverrides, overrides: PriceOverrides | undefined) {
  const known = new LRUCache<string, Promise<ModelFacts>>({ max: 500 });
  return function factsFor(model: string | undefined): Promise<ModelFacts> {
    // Longer names are no names, and a client chooses how long they are.
    const name = (model ?? '').slice(0, 200);
    const facts = known.get(name) ?? loadFacts(model, models, overrides);
    known.set(name, facts);
    facts.catch(() => known.delete(name));
    return facts;
  };
}

async function loadFacts(
  model: string | undefined,
  models: ModelOverrides,
  overrides: PriceOverrides | undefined,
): Promise<ModelFacts> {
  const { window, maxInput, cacheKeptMs: keptMs, minCachedTokens } = await loadModelInfo(model, models);
  const prices = createPriceList(await loadCatalog(), overrides);
  return {
    window: { tokens: maxInput ?? window ?? FALLBACK_WINDOW, holdsReply: maxInput === undefined },
    pricesAt(promptTokens) {
      const price = prices.priceOf(model, promptTokens);
      if (!price) return undefined;
      const { input, cacheRead, cacheWrite, cacheWriteLong } = price;
      return {
        read: cacheRead / input,
        write: cacheWrite / input,
        writeLong: cacheWriteLong === undefined ? undefined : cacheWriteLong / input,
        keptMs,
        minCachedTokens,
      };
    },
  };
}

function aheadOf(
  summaries: FoldSettings['summaries'],
  encryptedStore: EncryptedStore,
): SummaryAheadOptions | undefined {
  if (!summaries || summaries.kind !== 'model') return undefined;
  return {
    ready: createReadySummaries({ encryptedStore }),
    maxTokens: summaries.maxTokens ?? defaultMaxTokens,
  };
}
