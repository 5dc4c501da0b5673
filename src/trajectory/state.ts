/**
 * Defines the state of a trajectory between turns, as plain data: JSON that can be saved and loaded. Its size follows the budget, not the number of
 * actions: folded content is in the store, and an entry has its id there. Steps from one state to the next are pure.
 */
import type { CompressionTotals } from '../receipts/totals.ts';
import { subgoalLength } from '../outline/levels.ts';

/** An action of an agent and its result, both as text. */
export type Action = {
  readonly action: string;
  readonly observation: string;
  /** The recalled id, if the observation is an answer of `recall`: it is not summarized a second time. */
  readonly recalls?: string;
};

/** An action with its id and its tokens. */
export type NumberedAction = Action & {
  /** `a1`, `a2`, … */
  readonly id: string;
  /** Tokens of both texts as shown in the context. */
  readonly cost: { readonly action: number; readonly observation: number };
  /** Both texts as shown in the context, if they were cut. */
  readonly shown?: { readonly action: string; readonly observation: string };
};

/** A sub-goal whose actions are shown in full. */
export type Subgoal = {
  readonly kind: 'subgoal';
  /** `s1`, `s2`, … */
  readonly id: string;
  readonly goal: string;
  readonly outcome?: string;
  readonly actions: readonly NumberedAction[];
};

/** A summary of finished work. It never changes until it becomes part of a summary of the next level. */
export type Summary = {
  readonly kind: 'summary';
  /** 1 a sub-goal, 2 a phase, 3 an overview, 4 and more overviews of overviews. */
  readonly level: number;
  readonly id: string;
  /** The goal of the sub-goal; empty for higher levels. */
  readonly goal: string;
  readonly outcome?: string;
  /** The goal and what came of it, as much as there was room for. Older states lack it. */
  readonly title?: string;
  readonly text: string;
  /** The id of the original: actions, or the entries of the level below. */
  readonly memory: string;
  /** Tokens of the summary in the context. */
  readonly tokens: number;
  /** First and last number of the ids below it, by letter. */
  readonly covers: CoveredNumbers;
};

export type Letter = 'a' | 's' | 'p' | 'o';
export type CoveredNumbers = Partial<Readonly<Record<Letter, readonly [first: number, last: number]>>>;

export type TrajectoryEntry = Subgoal | Summary;

export type TrajectoryState = {
  readonly version: 1;
  readonly goal: string;
  /** Number of ids of each letter so far. */
  readonly counts: Readonly<Record<Letter, number>>;
  /** Tokens of all actions so far, uncut. */
  readonly tokensSeen: number;
  /** Finished entries, oldest first. */
  readonly entries: readonly TrajectoryEntry[];
  readonly open: Subgoal | undefined;
  /** Totals by the name of the level. */
  readonly compressions: Readonly<Record<string, CompressionTotals>>;
};

export function emptyState(goal: string): TrajectoryState {
  const counts = { a: 0, s: 0, p: 0, o: 0 };
  return { version: 1, goal, counts, tokensSeen: 0, entries: [], open: undefined, compressions: {} };
}

export function letterOf(level: number): Letter {
  return (['a', 's', 'p'] as const)[level] ?? 'o';
}

export function numberOf(id: string): number {
  return Number(id.slice(1));
}

/** Starts a sub-goal; an open one is finished. */
export function started(state: TrajectoryState, goal: string): TrajectoryState {
  const finished = completed(state, undefined);
  const counts = { ...finished.counts, s: finished.counts.s + 1 };
  return { ...finished, counts, open: { kind: 'subgoal', id: `s${counts.s}`, goal, actions: [] } };
}

/** Adds an action to the open sub-goal; without one, to a new sub-goal without a name. */
export function added(
  state: TrajectoryState,
  action: Omit<NumberedAction, 'id'>,
  /** Tokens of the uncut action. */
  tokens: number,
): TrajectoryState {
  const { open, counts, ...rest } = state.open ? state : started(state, '');
  const a = counts.a + 1;
  const next: Subgoal = { ...open!, actions: [...open!.actions, { id: `a${a}`, ...action }] };
  return { ...rest, counts: { ...counts, a }, tokensSeen: rest.tokensSeen + tokens, open: next };
}

/** Finishes the open sub-goal, in parts if it is long. A sub-goal without actions is removed. */
export function completed(state: TrajectoryState, outcome: string | undefined): TrajectoryState {
  const { open } = state;
  if (open === undefined) return state;
  if (open.actions.length === 0) return { ...state, open: undefined };
  const parts = Math.ceil(open.actions.length / subgoalLength.max);
  let rest = state;
  for (let left = parts; left > 1; left--) {
    rest = parted(rest, Math.ceil(rest.open!.actions.length / left));
  }
  const last: Subgoal = outcome === undefined ? rest.open! : { ...rest.open!, outcome };
  return { ...rest, entries: [...rest.entries, last], open: undefined };
}

/** The number of newest actions that stay in an open sub-goal when its older ones become a finished part. */
const newestActions = 3;

/** True if the open sub-goal is long enough to split off its oldest actions. */
export function isLong(state: TrajectoryState): boolean {
  return (state.open?.actions.length ?? 0) >= subgoalLength.max + newestActions;
}

/** Splits off the oldest actions of the open sub-goal as a finished part; the rest stays open with the same goal. */
export function parted(state: TrajectoryState, length: number): TrajectoryState {
  const { open } = state;
  if (open === undefined || length < 1 || length >= open.actions.length) return state;
  const counts = { ...state.counts, s: state.counts.s + 1 };
  return {
    ...state,
    counts,
    entries: [...state.entries, { ...open, actions: open.actions.slice(0, length) }],
    open: { ...open, id: `s${counts.s}`, actions: open.actions.slice(length) },
  };
}

/** Replaces these entries by a summary. */
export function folded(
  state: TrajectoryState,
  of: readonly TrajectoryEntry[],
  summary: Summary,
): TrajectoryState {
  const at = state.entries.indexOf(of[0]!);
  const entries = [...state.entries.slice(0, at), summary, ...state.entries.slice(at + of.length)];
  const letter = letterOf(summary.level);
  const number = numberOf(summary.id);
  const counts = { ...state.counts, [letter]: Math.max(state.counts[letter], number) };
  return { ...state, counts, entries };
}

/** Returns the ids that a summary of these entries covers. */
export function coverOf(entries: readonly TrajectoryEntry[]): CoveredNumbers {
  const covers: Partial<Record<Letter, readonly [number, number]>> = {};
  const take = (letter: Letter, [first, last]: readonly [number, number]): void => {
    const known = covers[letter] ?? [first, last];
    covers[letter] = [Math.min(known[0], first), Math.max(known[1], last)];
  };
  for (const entry of entries) {
    const number = numberOf(entry.id);
    if (entry.kind === 'summary') {
      for (const [letter, range] of Object.entries(entry.covers)) take(letter as Letter, range);
      take(letterOf(entry.level), [number, number]);
    } else {
      take('a', [numberOf(entry.actions[0]!.id), numberOf(entry.actions.at(-1)!.id)]);
      take('s', [number, number]);
    }
  }
  return covers;
}
