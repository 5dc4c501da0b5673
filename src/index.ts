/** Public entry `leporello`: the engine and its parts. Other entries: `leporello/codecs/*`, `leporello/stores/*` and `leporello/gateway`. */
export type { Codec, RecallTool } from './codecs/codec.ts';
export type { FoldSettings } from './library/default-engine.ts';
export type { CompressedResult, ResultRequest } from './library/compress-result.ts';
export { createEngine, type Engine } from './engine/engine.ts';
export type { EngineOptions } from './engine/types.ts';
export {
  type Compacted,
  createLeporello,
  type Leporello,
  type LeporelloOptions,
} from './library/leporello.ts';
export type { Prepared } from './engine/types.ts';
export type { Conversation, Message, Part } from './conversation/conversation.ts';
export type { Edit } from './conversation/edit.ts';
export { type ErrorCode, LeporelloError } from './errors.ts';
export type { HierarchyOptions } from './trajectory/plan.ts';
export type { Action, TrajectoryState } from './trajectory/state.ts';
export {
  openTrajectory,
  type Trajectory,
  type TrajectoryOptions,
  type TrajectoryReport,
} from './trajectory/trajectory.ts';
export type { TrajectoryRecord } from './trajectory/records.ts';
export type { Context, ContextMessage } from './trajectory/view.ts';
export { createEncryptedStore, type EncryptedStore, sha256 } from './store/encrypted-store.ts';
export { createFoldStore, type FoldStore } from './store/fold-store.ts';
export { inMemoryStore } from './store/in-memory.ts';
export type { Clock, FirstFound, Store, StoreEntry } from './store/store.ts';
export type { Compression, CompressionTotals } from './receipts/compression.ts';
export type { FoldReport, FoldStep, Outcome, Receipt } from './receipts/receipt.ts';
export { defaultStrategies } from './strategies/default-strategies.ts';
export { findSubgoals, type FoundSubgoal, type NeutralStep } from './outline/finder.ts';
export { createFoldSubgoals, type SubgoalOptions } from './strategies/fold-subgoals.ts';
export type { FoldView, Strategy } from './strategies/strategy.ts';
export { createSummarizeHistory, type SummaryOptions } from './strategies/summarize-history.ts';
export { extractiveSummarizer } from './outline/extract.ts';
export { createModelSummarizer, type ModelSummarizerOptions } from './outline/model.ts';
export type { Preset } from './outline/levels.ts';
export type { Summarizer, SummaryRequest, SummaryStep } from './outline/summarizer.ts';
export { type Calibration, type CalibrationOptions, createCalibration } from './tokens/calibration.ts';
export { loadTokenCounter } from './tokens/load-counter.ts';
export { loadModelInfo, type ModelOverrides } from './tokens/models.ts';
export type { CountText, OwnCounter } from './tokens/own-counter.ts';
export type { TokenCounter } from './tokens/token-counter.ts';
export { defaultTriggers, type TriggerSettings } from './triggers/default-triggers.ts';
export type { Demand, Trigger, TriggerState } from './triggers/trigger.ts';
