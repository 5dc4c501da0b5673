/** Creates the engine with its usual parts: the user's settings, and defaults for the rest. */
import { createCaches, openFixed } from '../caches.ts';
import { createSeenBodies } from '../codecs/earlier-bodies.ts';
import { createEngine } from '../engine/prepare.ts';
import { createLearned } from '../engine/state.ts';
import type { Engine } from '../engine/types.ts';
import type { SummaryAheadOptions, EngineMode, EngineOptions, OfferRecall, Pins } from '../engine/types.ts';
import { type PriceOverrides, createModelFacts } from '../tokens/model-facts.ts';
import { type EncryptedStore, base32Digits, commonLength, sha256 } from '../store/encrypted-store.ts';
import { createFoldStore } from '../store/fold-store.ts';
import { createHiddenRecalls, createKeptReplies } from '../store/hidden-recalls.ts';
import { createReadySummaries } from '../store/ready-summaries.ts';
import { type StrategySettings, strategiesIn } from '../strategies/default-strategies.ts';
import type { ShrinkSettings } from '../strategies/shrink-results.ts';
import { dropOldest } from '../strategies/drop-messages.ts';
import type { Strategy } from '../strategies/strategy.ts';
import { summarizeHistory } from '../strategies/summarize-history.ts';
import type { CalibrationOptions } from '../tokens/calibration.ts';
import type { ModelOverrides } from '../tokens/models.ts';
import { type TriggerSettings, defaultTriggers } from '../triggers/default-triggers.ts';
import { checkedStrategy, checkedTrigger } from './own-parts.ts';

/** The settings of folding as data, such as a configuration file holds them. Each has a default. */
export type FoldSettings = StrategySettings &
  EngineSettings & {
    readonly triggers?: TriggerSettings;
  };

/** The settings of folding, without the triggers and the strategies. Each has a default. */
export type EngineSettings = {
  readonly pins?: Partial<Pins>;
  /** How tool results are made smaller on arrival; `false` leaves them unchanged. Default: without loss, except for large ones. */
  readonly shrinks?: Partial<ShrinkSettings> | false;
  /** Windows, tokenizers and reply limits by model name or glob. */
  readonly models?: ModelOverrides;
  /** `observe` changes nothing and only reports what folding would send. Default `fold`. */
  readonly mode?: EngineMode;
  /** Prices by model name or glob, in addition to the catalog. Folds that only save money depend on it. */
  readonly usdPerMillionTokens?: PriceOverrides;
  /** Sets cache marks for clients that set none, when they pay off. Default true. */
  readonly cacheMarks?: boolean;
  /** Calibrates token counts by the usage that providers report; `false` turns it off. Default: with the usual bounds. */
  readonly calibration?: CalibrationOptions | false;
  /** When the model is offered the recall tool. Default `always`. */
  readonly offerRecall?: OfferRecall;
  /** Offers the tool `save_context` with the recall tool, for notes of the model that stay in view after folds. Default false. */
  readonly offerNotes?: boolean;
  /** Adds the folded lines that a failed edit must match to its result. Default true. */
  readonly repairEdits?: boolean;
  /** How long originals and folds are kept after they were last used, in milliseconds. Default 30 days. */
  readonly memoryTtlMs?: number;
  /**
   * How long one call of the store may take, in milliseconds. After that, requests continue without the store, and functions that need it
   * reject with `store-failed`. Default 500.
   */
  readonly storeDeadlineMs?: number;
  /** Megabytes of memory for caches (docs/memory.md). Default 160: for the three engines of a gateway, or the two of a Leporello in process. */
  readonly cacheMb?: number;
};

/** The settings of folding in a gateway that may measure what folding costs. */
export type ServedSettings = FoldSettings & {
  /** The share of conversations that are not folded: the control group. Default: none. */
  readonly holdout?: number | undefined;
};

const defaultShrinks: ShrinkSettings = { lossless: false, lineNumbers: 'every', repeats: true };

/** Parts of the engine that replace those of the settings. */
export type EngineOverrides = Partial<
  Pick<
    EngineOptions,
    'caches' | 'clock' | 'strategies' | 'triggers' | 'isHistoryKept' | 'keptReplies' | 'learned'
  >
>;

/** Creates an engine from settings. Throws `bad-config` for trigger options out of range. */
export function createDefaultEngine(
  settings: ServedSettings,
  encryptedStore: EncryptedStore,
  others: EngineOverrides = {},
): Engine {
  const { clock = Date.now, isHistoryKept } = others;
  const triggers =
    others.triggers?.map(checkedTrigger) ?? defaultTriggers(settings.triggers, settings.preset);
  const strategies = others.strategies?.map(checkedStrategy) ?? strategiesIn(settings);
  const { caches = createCaches(settings.cacheMb) } = others;
  const kept = { encryptedStore, ttlMs: settings.memoryTtlMs, clock, caches };
  const { calibration } = settings;
  const { keptReplies = createKeptReplies(kept), learned = createLearned({ ...kept, calibration }) } = others;
  return createEngine({
    encryptedStore,
    foldStore: createFoldStore(kept),
    hiddenRecalls: createHiddenRecalls(kept),
    keptReplies,
    summaries: isHistoryKept ? undefined : aheadOf(strategies, encryptedStore),
    texts: isHistoryKept ? undefined : textsAheadOf(strategies, encryptedStore),
    digest: sha256,
    seen: createSeenBodies({ commonLength, caches }),
    caches,
    ...(settings.holdout && { holdout: { rate: settings.holdout, draw: drawerOf(encryptedStore) } }),
    triggers,
    strategies,
    ...createModelFacts(settings.models, settings.usdPerMillionTokens),
    learned,
    cacheMarks: settings.cacheMarks,
    clock,
    mode: settings.mode,
    shrinks: settings.shrinks === false ? undefined : { ...defaultShrinks, ...settings.shrinks },
    offerRecall: settings.offerRecall,
    offerNotes: settings.offerNotes,
    repairEdits: settings.repairEdits,
    isHistoryKept,
    pins: { tools: [], texts: [], ...settings.pins },
    minResultBytes: smallestOf(strategies.map((strategy) => strategy.minResultBytes)),
    keepNewestMedia: smallestOf(strategies.map((strategy) => strategy.keepNewestMedia)),
  });
}

/**
 * Creates the engine for a program that keeps its messages as they were folded. These have no references to results that may be dropped later,
 * and no cache marks.
 */
export function createHistoryEngine(
  settings: EngineSettings,
  encryptedStore: EncryptedStore,
  {
    caches,
    strategies,
    triggers,
  }: Pick<EngineOverrides, 'caches'> & Required<Pick<EngineOverrides, 'strategies' | 'triggers'>>,
): Engine {
  return createDefaultEngine({ ...settings, shrinks: false, cacheMarks: false }, encryptedStore, {
    caches,
    strategies: keptHistoryStrategies(strategies),
    triggers,
    isHistoryKept: true,
  });
}

/**
 * Returns the strategies for a program that keeps its messages as they were folded: old messages always become one extractive summary, and
 * sub-goals are not folded.
 */
function keptHistoryStrategies(strategies: readonly Strategy[]): readonly Strategy[] {
  const others = strategies.filter(({ name, summary }) => !isForRequests.has(name) && summary === undefined);
  const maxTokens = strategies.find(({ summary }) => summary !== undefined)?.summary?.maxTokens;
  const dropping = [summarizeHistory({ maxTokens }), dropOldest({ reach: 'everything' })];
  const at = others.findIndex((strategy) => isDrop(strategy) || strategy.reach !== 'history');
  const before = at === -1 ? others : others.slice(0, at);
  const after = at === -1 ? [] : others.slice(at).filter((strategy) => !isDrop(strategy));
  return [...before, ...dropping, ...after];
}

/** Strategies whose originals `readMemory`, which answers with texts, could not give back, or that need the whole history. */
const isForRequests: ReadonlySet<string> = new Set([
  'fold-subgoals',
  'offload-media',
  'offload-newest-media',
]);

function isDrop({ name }: Strategy): boolean {
  return name === 'drop-oldest';
}

/** Draws numbers from 0 to 1, without 1, that depend only on the secret, the tenant and the key. */
export function drawerOf(encryptedStore: Pick<EncryptedStore, 'idOf'>) {
  return (tenant: string, key: string): number => {
    const digits = encryptedStore.idOf(tenant, new TextEncoder().encode(key)).slice('mem_'.length);
    return digits.split('').reduceRight((after, digit) => (base32Digits.indexOf(digit) + after) / 32, 0);
  };
}

function aheadOf(
  strategies: readonly Strategy[],
  encryptedStore: EncryptedStore,
): SummaryAheadOptions | undefined {
  const summary = strategies.find((strategy) => strategy.summary?.isWrittenAhead)?.summary;
  return summary && { ready: createReadySummaries({ encryptedStore }), maxTokens: summary.maxTokens };
}

function textsAheadOf(
  strategies: readonly Strategy[],
  encryptedStore: EncryptedStore,
): EngineOptions['texts'] {
  if (!strategies.some(({ asksForTexts }) => asksForTexts)) return undefined;
  return {
    known: openFixed('texts ahead', { unitsOf: (text: string) => text.length }),
    planned: openFixed('plans ahead'),
    encryptedStore,
  };
}

/** Returns the smallest of the limits that strategies have; undefined if none has one. */
function smallestOf(all: readonly (number | undefined)[]): number | undefined {
  const limits = all.filter((limit) => limit !== undefined);
  return limits.length === 0 ? undefined : Math.min(...limits);
}
