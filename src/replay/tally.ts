/** Adds up a replay, in tokens and counts. Pure. */
import { type Billed, noTokens, sumOf, type Tokens } from './bill.ts';

/** Totals over the steps of one conversation, or of many. */
export type Tally = {
  readonly steps: number;
  /** All tokens sent and received, recalls included. */
  readonly tokens: Tokens;
  /** The part of `tokens` for recalls or repeated tool calls. */
  readonly forRecalls: Tokens;
  readonly contextSum: number;
  readonly contextPeak: number;
  /** Values in calls that occur in earlier messages; those not in the context; those not recovered. */
  readonly needs: number;
  readonly missing: number;
  readonly lost: number;
  /** Round trips to recover values. */
  readonly recalls: number;
  /** Requests that begin with all of the previous request. */
  readonly stable: number;
  readonly folds: number;
  /** Requests larger than the window. */
  readonly overWindow: number;
  /** Requests on which the engine failed, and requests that it reported as too large. */
  readonly failed: number;
  readonly unfit: number;
};

export type StepFigures = {
  readonly first: Billed;
  /** The continuations. */
  readonly later: readonly Billed[];
  readonly replyTokens: number;
  readonly needs: number;
  readonly missing: number;
  readonly lost: number;
  readonly isOverWindow: boolean;
  readonly isFold: boolean;
  readonly isFailed: boolean;
  readonly isUnfit: boolean;
};

export const noTally: Tally = {
  steps: 0,
  tokens: noTokens,
  forRecalls: noTokens,
  contextSum: 0,
  contextPeak: 0,
  needs: 0,
  missing: 0,
  lost: 0,
  recalls: 0,
  stable: 0,
  folds: 0,
  overWindow: 0,
  failed: 0,
  unfit: 0,
};

/** Adds one step. `callTokens`: the output tokens of a reply that only recovers values. */
export function addStep(tally: Tally, step: StepFigures, callTokens: number): Tally {
  const { first, later } = step;
  const forRecalls = later.reduce(
    (sum, { read, written }) => sumOf(sum, { read, written, output: callTokens }),
    noTokens,
  );
  const own = { read: first.read, written: first.written, output: step.replyTokens };
  const largest = Math.max(first.context, ...later.map(({ context }) => context));
  return {
    steps: tally.steps + 1,
    tokens: sumOf(sumOf(tally.tokens, own), forRecalls),
    forRecalls: sumOf(tally.forRecalls, forRecalls),
    contextSum: tally.contextSum + first.context,
    contextPeak: Math.max(tally.contextPeak, largest),
    needs: tally.needs + step.needs,
    missing: tally.missing + step.missing,
    lost: tally.lost + step.lost,
    recalls: tally.recalls + later.length,
    stable: tally.stable + Number(first.isStable),
    folds: tally.folds + Number(step.isFold),
    overWindow: tally.overWindow + Number(step.isOverWindow),
    failed: tally.failed + Number(step.isFailed),
    unfit: tally.unfit + Number(step.isUnfit),
  };
}

export function addTally(one: Tally, other: Tally): Tally {
  return {
    steps: one.steps + other.steps,
    tokens: sumOf(one.tokens, other.tokens),
    forRecalls: sumOf(one.forRecalls, other.forRecalls),
    contextSum: one.contextSum + other.contextSum,
    contextPeak: Math.max(one.contextPeak, other.contextPeak),
    needs: one.needs + other.needs,
    missing: one.missing + other.missing,
    lost: one.lost + other.lost,
    recalls: one.recalls + other.recalls,
    stable: one.stable + other.stable,
    folds: one.folds + other.folds,
    overWindow: one.overWindow + other.overWindow,
    failed: one.failed + other.failed,
    unfit: one.unfit + other.unfit,
  };
}
