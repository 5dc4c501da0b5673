/**
 * Public entry `leporello`: folding in process. The package has other entries for `fetch`, for frameworks, codecs, stores, the gateway and tests;
 * docs/library.md describes them.
 */
export { createLeporello, type Leporello, type LeporelloOptions } from './library/leporello.ts';
export type { EngineSettings } from './library/default-engine.ts';
export type { Prepared, PrepareRequest } from './library/prepared.ts';
export type { CompressedResult, ResultRequest } from './library/compress-result.ts';
export { type ErrorCode, LeporelloError } from './errors.ts';
export type { Codec, RecallTool } from './codecs/codec.ts';
export type { ModelReply } from './codecs/codec.ts';
export type { RecalledMedia } from './conversation/conversation.ts';
export type { ModelOverride, ModelOverrides, Tokenizer } from './tokens/models.ts';
export type { PriceOverrides } from './tokens/model-facts.ts';
export type { CountText, OwnCounter } from './tokens/own-counter.ts';
export type { TokenCounter } from './tokens/token-counter.ts';
export type { Compression } from './receipts/receipt.ts';
export type { FoldReport, Outcome } from './receipts/receipt.ts';

// Strategies, and what a strategy of your own needs.
export { defaultStrategies, type ProgramStrategies } from './strategies/default-strategies.ts';
export {
  dropFailedCalls,
  dropOldest,
  type DropOldestOptions,
  dropRecalls,
} from './strategies/drop-messages.ts';
export { type MediaOptions, offloadMedia, offloadResults, stubArguments } from './strategies/offload.ts';
export type { MinBytesOptions } from './strategies/lib/editable-texts.ts';
export { foldSubgoals, type SubgoalOptions } from './strategies/fold-subgoals.ts';
export { summarizeHistory } from './strategies/summarize-history.ts';
export { compressItems, type CompressItemsOptions } from './strategies/compress-items.ts';
export { clipNewest } from './strategies/clip-newest.ts';
export type { FoldView, Measure, Protection, Strategy } from './strategies/strategy.ts';
export type { StrategyChoice, StrategyDefaults, SummarySettings } from './strategies/by-name.ts';
export type { ShrinkSettings } from './strategies/shrink-results.ts';
export type {
  Block,
  Conversation,
  Media,
  MediaPlace,
  Message,
  Part,
  TextPlace,
  Usage,
} from './conversation/conversation.ts';
export type { Edit } from './conversation/edit.ts';

// Triggers, and what a trigger of your own needs.
export { defaultTriggers, type TriggerSettings } from './triggers/default-triggers.ts';
export { messageCount, type MessageCountOptions, mustFit, type MustFitOptions } from './triggers/limits.ts';
export {
  tokenBudget,
  type TokenBudgetOptions,
  windowFraction,
  type WindowFractionOptions,
} from './triggers/limits.ts';
export {
  cacheRent,
  type CacheRentOptions,
  coldCache,
  type ColdCacheOptions,
} from './triggers/cache-costs.ts';
export type { Demand, Economy, Trigger, TriggerState } from './triggers/trigger.ts';

// Stores, and what a store of your own needs.
export { inMemoryStore } from './store/in-memory.ts';
export type { FirstFound, Store, StoreEntry } from './store/store.ts';

// Summaries, and sub-goals of an agent loop.
export { createModelSummarizer } from './outline/model.ts';
export type { Summarizer, SummaryBudget, SummaryRequest, SummaryStep } from './outline/summarizer.ts';
export { findSubgoals, type NeutralStep } from './outline/finder.ts';
export {
  openTrajectory,
  type Trajectory,
  type TrajectoryOptions,
  type TrajectoryReport,
} from './trajectory/trajectory.ts';
export type { TrajectoryRecord } from './trajectory/records.ts';
export type { Action, Subgoal, TrajectoryEntry, TrajectoryState } from './trajectory/state.ts';
