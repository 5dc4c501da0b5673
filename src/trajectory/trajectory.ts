/**
 * Implements a trajectory that keeps itself small: an agent loop names its sub-goals and adds its actions, and gets a context that stays
 * under its budget however long it works. Finished work is summarized once, level by level, and stored; every action can be read again.
 */
import { openFixed } from '../caches.ts';
import type { RecallTool } from '../codecs/codec.ts';
import { allowed, type Check, checkSettings, object, positiveNumber, secretFor } from '../checks.ts';
import { isRecord } from '../conversation/json-scan.ts';
import { LeporelloError } from '../errors.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import type { Store } from '../store/store.ts';
import type { Compression } from '../receipts/receipt.ts';
import { addCompression, type CompressionTotals, noCompressions } from '../receipts/totals.ts';
import { recallToolFor } from '../recall/tool.ts';
import type { Summarizer } from '../outline/summarizer.ts';
import { completeCounter } from '../tokens/complete-counter.ts';
import { type OwnCounter, whyNoCounter } from '../tokens/own-counter.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import {
  type FoldWork,
  type HierarchyOptions,
  type TrajectorySettings,
  fold,
  nextWork,
  settingsFrom,
} from './fold.ts';
import {
  shownOf,
  type Context,
  contextOf,
  costOf,
  type ContextMeasure,
  tokensOf,
  waitingTokens,
} from './view.ts';
import {
  bytesOf,
  findRecord,
  levelRecord,
  recordText,
  subgoalRecord,
  type TrajectoryRecord,
} from './records.ts';
import {
  type Action,
  added,
  completed,
  emptyState,
  folded,
  parted,
  started,
  type TrajectoryState,
} from './state.ts';

export type TrajectoryOptions = HierarchyOptions & {
  /** The task of the agent, in its own words. A loaded `state` keeps its own goal. */
  readonly goal: string;
  /** The result of `state()` before a restart; store and secret must be the same as then. */
  readonly state?: TrajectoryState;
  /** Writes the summaries. Default: the local extractive summarizer, which is also used if this one fails. */
  readonly summarizer?: Summarizer;
  /** Deadline for one summary, in milliseconds. Default 30,000. */
  readonly summarizerTimeoutMs?: number;
  /** The store of the originals. Default: in this process's memory, at most 128 MiB. */
  readonly store?: Store;
  /** At least 32 bytes, the same with every start. Required with a `store`; random without one. */
  readonly secret?: Uint8Array;
  /** The tenant that owns the trajectory (a-z, 0-9, -). Default `local`. */
  readonly tenant?: string;
  /** How long originals are kept, in milliseconds. Default 30 days. */
  readonly memoryTtlMs?: number;
  /** How long one call of the store may take, in milliseconds. Default 500. */
  readonly storeDeadlineMs?: number;
  /** Chooses the token counter. */
  readonly model?: string;
  /** A counter to use instead of the model's: a synchronous function that returns the tokens of a text, or an object with it as `count`. */
  readonly counter?: OwnCounter;
  /**
   * Called after each action with the open sub-goal. If it returns true or an outcome, the sub-goal is finished as with `completeSubgoal`. If it throws,
   * the sub-goal stays open.
   */
  readonly isComplete?: (open: OpenSubgoal) => boolean | string | undefined;
  /** Called for each summary that was made. */
  readonly onCompression?: (compression: Compression) => void;
};

/** The sub-goal that a completion check is asked about. */
export type OpenSubgoal = { readonly id: string; readonly goal: string; readonly actions: readonly Action[] };

const anything: Check = () => [];

/** Checks that every option is known. `settingsFrom`, the store and the counter check the values. */
const trajectoryCheck = object<TrajectoryOptions>(
  {
    goal: allowed('the task of the agent, in its own words', (value) => typeof value === 'string'),
    preset: anything,
    ratio: anything,
    levels: anything,
    minRatio: anything,
    maxRatio: anything,
    maxTokens: anything,
    isComplete: anything,
    budgetTokens: anything,
    newestShare: anything,
    minActions: anything,
    state: anything,
    summarizer: anything,
    summarizerTimeoutMs: positiveNumber,
    store: anything,
    secret: anything,
    tenant: anything,
    memoryTtlMs: positiveNumber,
    storeDeadlineMs: positiveNumber,
    model: anything,
    counter: anything,
    onCompression: anything,
  },
  { required: ['goal'] },
);

const isString = allowed('a text', (value) => typeof value === 'string');

const actionCheck = allowed(
  '{ action, observation }, both texts',
  (value) =>
    isRecord(value) && typeof value['action'] === 'string' && typeof value['observation'] === 'string',
);

/** The history of an agent's work. The methods that take texts throw `bad-config` for anything else. */
export interface Trajectory {
  /** Starts a sub-goal and returns its id, such as `s3`. An open sub-goal is finished without an outcome. */
  startSubgoal(goal: string): string;
  /** Adds an action to the open sub-goal and returns its id, such as `a17`. */
  addAction(action: Action): string;
  /** Finishes the open sub-goal. Resolves like `settled`; need not be awaited. */
  completeSubgoal(outcome?: string): Promise<void>;
  /** Returns the messages to send to the model now. Synchronous: work that is not summarized yet is included in full, or cut to the budget. */
  context(): Context;
  /** Resolves when all pending work is folded. Never rejects: a failure is in the report, and is retried at the next change. */
  settled(): Promise<void>;
  /** Returns the full record of an action, a sub-goal, a phase or an overview; undefined for other ids. Rejects with `store-failed`. */
  record(id: string): Promise<TrajectoryRecord | undefined>;
  /** Answers a call of `read_memory` (see `recallTool`) with at most `maxTokens` tokens, by default 2,000. */
  recall(argumentsJson: string, maxTokens?: number): Promise<string>;
  /** The definition of `read_memory`, for the agent's list of tools. */
  readonly recallTool: RecallTool;
  /** Returns the state to save for a restart, as plain data. */
  state(): TrajectoryState;
  /** Returns counts of the trajectory so far. */
  report(): TrajectoryReport;
}

/** Counts of a trajectory. */
export type TrajectoryReport = {
  readonly actions: number;
  /** Tokens of all actions so far. */
  readonly tokensSeen: number;
  /** Tokens of the current context. */
  readonly tokensNow: number;
  /** Totals by level: `subgoal`, `phase`, `overview`. */
  readonly compressions: Readonly<Record<string, CompressionTotals>>;
  /** Why the last round of folding failed (`store-failed`); undefined if it did not. */
  readonly problem: string | undefined;
};

/** Folding continues down to this share of the budget, so that it is not needed again at once. */
const lowShare = 0.75;

/** The same share for the newest finished sub-goals: each time they are folded, everything after them is rewritten. */
const fewerShare = 0.7;

/**
 * Opens a trajectory. Throws `bad-config` at once for options that are unknown or out of range; rejects with it for a counter that fails.
 *
 * @example
 * const trajectory = await openTrajectory({ goal: 'Fix the failing build', preset: 'long-horizon' });
 * trajectory.startSubgoal('Find the failing test');
 * trajectory.addAction({ action: 'npm test', observation: output });
 * await trajectory.completeSubgoal('auth.test.ts fails: the token has expired');
 * const { messages } = trajectory.context();
 */
export function openTrajectory(options: TrajectoryOptions): Promise<Trajectory> {
  checkSettings(trajectoryCheck, options);
  return open(options, settingsFrom(options));
}

async function open(options: TrajectoryOptions, settings: TrajectorySettings): Promise<Trajectory> {
  const counter = await counterOf(options);
  const { checkedTenant, createEncryptedStore } = await import('../store/encrypted-store.ts');
  const { store = inMemoryStore(), memoryTtlMs: ttlMs, storeDeadlineMs } = options;
  const secret = secretFor(options.store, options.secret);
  return trajectoryOf({
    options,
    settings,
    measure: measureOf(counter, settings.budget),
    encryptedStore: createEncryptedStore({ store, secret, ttlMs, storeDeadlineMs }),
    tenant: checkedTenant(options.tenant ?? 'local'),
    state: checkedState(options.state) ?? emptyState(options.goal),
    problem: undefined,
  });
}

/** An open trajectory. Each change replaces its state. */
type OpenTrajectory = {
  readonly options: TrajectoryOptions;
  readonly settings: TrajectorySettings;
  readonly measure: ContextMeasure;
  readonly encryptedStore: EncryptedStore;
  readonly tenant: string;
  state: TrajectoryState;
  /** Why the last round of folding failed; undefined if it did not. */
  problem: string | undefined;
};

function trajectoryOf(opened: OpenTrajectory): Trajectory {
  const { measure, options, settings } = opened;
  const settle = settlerOf(opened);
  const context = () => contextOf(opened.state, settings.budget, measure);
  const find = (id: string) => findRecord(opened.state, id, (memory) => readOriginal(opened, memory));
  return {
    startSubgoal(goal) {
      checkSettings(isString, goal, 'goal');
      opened.state = started(opened.state, goal);
      void settle();
      return opened.state.open!.id;
    },
    addAction(action) {
      checkSettings(actionCheck, action, 'action');
      const id = `a${opened.state.counts.a + 1}`;
      opened.state = withAction(opened, id, action);
      const outcome = outcomeOf(options, opened.state.open);
      if (outcome !== undefined) opened.state = completed(opened.state, outcome === '' ? undefined : outcome);
      void settle();
      return id;
    },
    completeSubgoal(outcome) {
      if (outcome !== undefined) checkSettings(isString, outcome, 'outcome');
      opened.state = completed(opened.state, outcome);
      return settle();
    },
    context,
    settled: settle,
    record: find,
    async recall(argumentsJson, maxTokens = 2_000) {
      const { resolveRecall } = await import('../recall/resolve.ts');
      return resolveRecall({
        argumentsJson,
        async lookup(id) {
          const record = await find(id);
          return record && JSON.stringify(recordText(record));
        },
        maxTokens,
        countTokens: measure.count,
      });
    },
    recallTool: recallToolFor([], 'id'),
    state: () => opened.state,
    report: () => ({
      actions: opened.state.counts.a,
      tokensSeen: opened.state.tokensSeen,
      tokensNow: context().tokens,
      compressions: opened.state.compressions,
      problem: opened.problem,
    }),
  };
}

/** Returns the state with one more action, which is counted as the context shows it. */
function withAction({ state, measure }: OpenTrajectory, id: string, action: Action): TrajectoryState {
  const shown = shownOf(id, action, measure.longest, measure.count);
  const cost = costOf({ id, ...action, ...shown }, measure);
  const whole = shown === undefined ? cost : costOf({ id, ...action }, measure);
  const numbered = { ...action, cost, ...(shown && { shown }) };
  return added(state, numbered, whole.action + whole.observation);
}

/** Asks the program's completion check; undefined if the sub-goal stays open. */
function outcomeOf(options: TrajectoryOptions, subgoal: TrajectoryState['open']): string | undefined {
  if (subgoal === undefined) return undefined;
  try {
    const { id, goal, actions } = subgoal;
    const answer = options.isComplete?.({ id, goal, actions });
    return typeof answer === 'string' ? answer : answer ? '' : undefined;
  } catch {
    return undefined;
  }
}

async function readOriginal(
  { encryptedStore, tenant }: OpenTrajectory,
  memory: string,
): Promise<Uint8Array | undefined> {
  const recalled = await encryptedStore.recall(tenant, memory);
  return recalled.status === 'found' ? recalled.original : undefined;
}

// Folding

/** Returns a function that starts to fold, or has the running round look once more. It resolves when all pending work is folded. */
function settlerOf(opened: OpenTrajectory): () => Promise<void> {
  let running: Promise<void> | undefined;
  let isDue = false;
  const run = async (): Promise<void> => {
    while (isDue) {
      isDue = false;
      try {
        await foldAll(opened);
        opened.problem = undefined;
      } catch (error) {
        // Work that could not be stored stays in the state; the next change retries.
        opened.problem = LeporelloError.isInstance(error) ? error.code : 'failed';
      }
    }
    running = undefined;
  };
  return () => {
    isDue = true;
    running ??= run();
    return running;
  };
}

/** Carries out all pending work, one item after the other: each may cause the next. */
async function foldAll(opened: OpenTrajectory): Promise<void> {
  const { measure, settings } = opened;
  let pressure = { context: false, waiting: false };
  for (;;) {
    pressure = {
      context: tokensOf(opened.state, measure) > settings.budget * (pressure.context ? lowShare : 1),
      waiting:
        waitingTokens(opened.state, measure) >
        settings.budget * settings.newest * (pressure.waiting ? fewerShare : 1),
    };
    const work = nextWork(opened.state, settings, pressure);
    if (work === undefined) return;
    if (work.kind === 'part') opened.state = parted(opened.state, work.length);
    else await foldOne(opened, work);
  }
}

/** Makes one summary. The original is stored before the summary replaces it. */
async function foldOne(opened: OpenTrajectory, work: FoldWork): Promise<void> {
  const { encryptedStore, measure, options, settings, tenant } = opened;
  const { summarizer, summarizerTimeoutMs: timeoutMs = 30_000 } = options;
  const { summary, compression } = await fold(work, opened.state, {
    settings,
    measure,
    summarizer,
    timeoutMs,
  });
  const original = bytesOf(recordOf(work, summary.id));
  const memory = encryptedStore.idOf(tenant, original);
  await encryptedStore.keep(tenant, [{ id: memory, original }]);
  const { level } = compression;
  const { state } = opened;
  const totals = addCompression(state.compressions[level] ?? noCompressions, compression);
  const counted = { ...state, compressions: { ...state.compressions, [level]: totals } };
  opened.state = folded(counted, work.of, { ...summary, memory });
  options.onCompression?.(compression);
}

/** Names and the task are counted each turn, so the counts of short texts are remembered. */
function measureOf(counter: TokenCounter, budget: number): ContextMeasure {
  const known = openFixed<string, number>('record texts');
  const count = (text: string): number => {
    if (text.length > 20_000) return counter.count(text);
    const tokens = known.get(text) ?? counter.count(text);
    known.set(text, tokens);
    return tokens;
  };
  return { count, perMessage: counter.overhead.message, longest: Math.floor(budget / 4) };
}

async function counterOf({ counter, model }: TrajectoryOptions): Promise<TokenCounter> {
  const { loadTokenCounter } = await import('../tokens/load-counter.ts');
  const usual = await loadTokenCounter(model);
  if (counter === undefined) return usual;
  const problem = whyNoCounter(counter);
  const own = problem === undefined ? completeCounter(counter, usual) : undefined;
  if (own && !own.asyncCounts) return own;
  throw new LeporelloError(
    'bad-config',
    `The trajectory's counter ${problem ?? 'is asynchronous, but context() is not'}: pass a function that returns the tokens of a text, or { count } with such a function.`,
  );
}

function recordOf(work: FoldWork, id: string) {
  return work.kind === 'summarize' ? subgoalRecord(work.of[0]) : levelRecord(id, work.level, work.of);
}

function checkedState(state: TrajectoryState | undefined): TrajectoryState | undefined {
  if (state === undefined || state.version === 1) return state;
  throw new LeporelloError(
    'bad-config',
    `The trajectory's state has version ${JSON.stringify(state.version)}: this release reads version 1. Pass the result of state().`,
  );
}
