/** The library's public face. Codecs are `leporello/codecs/*`, the embedded store `leporello/stores/sqlite`, the gateway `leporello/gateway`. */
export type { Codec, RecallTool } from './codecs/codec.ts';
export type { FoldSettings } from './compact/default-engine.ts';
export type { CompressedResult, ResultRequest } from './compact/compress-result.ts';
export { createEngine, type Engine } from './compact/engine.ts';
export type { EngineOptions } from './compact/options.ts';
export {
  type Compacted,
  createLeporello,
  type Leporello,
  type LeporelloOptions,
} from './compact/leporello.ts';
export type { Prepared } from './compact/prepared.ts';
export type { Conversation, Message, Part } from './conversation/conversation.ts';
export type { Edit } from './conversation/edit.ts';
export { type ErrorCode, LeporelloError } from './errors.ts';
export type { HierarchyOptions } from './hierarchy/settings.ts';
export type { Action, TrajectoryState } from './hierarchy/state.ts';
export {
  openTrajectory,
  type Trajectory,
  type TrajectoryOptions,
  type TrajectoryReport,
} from './hierarchy/trajectory.ts';
export type { TrajectoryRecord } from './hierarchy/records.ts';
export type { Context, ContextMessage } from './hierarchy/view.ts';
export { sha256 } from './memory/digest.ts';
export { inMemoryStore } from './memory/in-memory.ts';
export { createLedger, type Ledger } from './memory/ledger.ts';
export type { Clock, FirstFound, Store, StoreEntry } from './memory/store.ts';
export { createVault, type Vault } from './memory/vault.ts';
export type { Compression, CompressionTotals } from './metrics/compression.ts';
export type { FoldReport, FoldStep, Outcome, Receipt } from './metrics/receipt.ts';
export { defaultStrategies } from './strategies/default-strategies.ts';
export { findSubgoals, type FoundSubgoal, type NeutralStep } from './strategies/find-subgoals.ts';
export { createFoldSubgoals, type SubgoalOptions } from './strategies/fold-subgoals.ts';
export type { FoldView, Strategy } from './strategies/strategy.ts';
export { createSummarizeHistory, type SummaryOptions } from './strategies/summarize-history.ts';
export { extractiveSummarizer } from './summarizers/extractive.ts';
export { createModelSummarizer, type ModelSummarizerOptions } from './summarizers/model.ts';
export type { Preset } from './summarizers/presets.ts';
export type { Summarizer, SummaryRequest, SummaryStep } from './summarizers/summarizer.ts';
export { type Calibration, type CalibrationOptions, createCalibration } from './tokens/calibration.ts';
export { loadTokenCounter } from './tokens/load-counter.ts';
export { loadModelInfo, type ModelOverrides } from './tokens/models.ts';
export type { CountText, OwnCounter } from './tokens/own-counter.ts';
export type { TokenCounter } from './tokens/token-counter.ts';
export { defaultTriggers, type TriggerOptions } from './triggers/default-triggers.ts';
export type { Demand, Trigger, TriggerState } from './triggers/trigger.ts';
