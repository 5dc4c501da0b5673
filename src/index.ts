/** Public entry `leporello`: folding in process. Other entries: `leporello/codecs/*`, `leporello/stores/*` and `leporello/gateway`. */
export { createLeporello, type Leporello, type LeporelloOptions } from './library/leporello.ts';
export type { Prepared } from './library/prepared.ts';
export type { CompressedResult, ResultRequest } from './library/compress-result.ts';
export { type ErrorCode, LeporelloError } from './errors.ts';
export type { Codec, RecallTool } from './codecs/codec.ts';
export type { RecalledMedia } from './conversation/conversation.ts';
export type { ModelOverrides } from './tokens/models.ts';
export type { OwnCounter } from './tokens/own-counter.ts';
export type { Compression } from './receipts/receipt.ts';
export type { FoldReport, Outcome } from './receipts/receipt.ts';

// Strategies, and what a strategy of your own needs.
export { defaultStrategies } from './strategies/default-strategies.ts';
export { dropFailedCalls, dropOldest, dropRecalls } from './strategies/drop-messages.ts';
export { offloadMedia, offloadResults, stubArguments } from './strategies/offload.ts';
export { foldSubgoals } from './strategies/fold-subgoals.ts';
export { summarizeHistory } from './strategies/summarize-history.ts';
export { compressItems } from './strategies/compress-items.ts';
export { clipNewest } from './strategies/clip-newest.ts';
export type { FoldView, Strategy } from './strategies/strategy.ts';
export type { Conversation, Message, Part } from './conversation/conversation.ts';
export type { Edit } from './conversation/edit.ts';

// Triggers, and what a trigger of your own needs.
export { defaultTriggers } from './triggers/default-triggers.ts';
export { mustFit } from './triggers/limits.ts';
export { windowFraction } from './triggers/limits.ts';
export { tokenBudget } from './triggers/limits.ts';
export { messageCount } from './triggers/limits.ts';
export { coldCache } from './triggers/cache-costs.ts';
export { cacheRent } from './triggers/cache-costs.ts';
export type { Demand, Trigger, TriggerState } from './triggers/trigger.ts';

// Stores, and what a store of your own needs.
export { inMemoryStore } from './store/in-memory.ts';
export type { FirstFound, Store, StoreEntry } from './store/store.ts';

// Summaries, and sub-goals of an agent loop.
export { createModelSummarizer } from './outline/model.ts';
export type { Summarizer, SummaryRequest, SummaryStep } from './outline/summarizer.ts';
export { findSubgoals, type NeutralStep } from './outline/finder.ts';
export {
  openTrajectory,
  type Trajectory,
  type TrajectoryOptions,
  type TrajectoryReport,
} from './trajectory/trajectory.ts';
export type { TrajectoryRecord } from './trajectory/records.ts';
export type { Action, TrajectoryState } from './trajectory/state.ts';
