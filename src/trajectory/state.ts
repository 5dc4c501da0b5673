/**
 * What a trajectory remembers between turns, as plain data: JSON that is saved and loaded. Its size follows the budget, not the number
 * of actions: what was folded is in memory, and an entry knows its memory's id. The steps from one state to the next are pure.
 */
import type { CompressionTotals } from '../receipts/compression.ts';
import { subgoalLength } from '../outline/levels.ts';

/** What an agent did and what came of it, both as text. */
export type Action = {
  readonly action: string;
  readonly observation: string;
  /** The id of what was read again, where the observation is an answer of `recall`: it is not summarised a second time. */
  readonly recalls?: string;
};

export type NumberedAction = Action & {
  /** `a1`, `a2`, … */
  readonly id: string;
  /** Tokens of the two as they stand in the context. */
  readonly cost: { readonly action: number; readonly observation: number };
  /** The two texts as they stand in the context, where they were too long for it. */
  readonly shown?: { readonly action: string; readonly observation: string };
};

/** A sub-goal whose actions stand in the context as they are. */
export type Subgoal = {
  readonly kind: 'subgoal';
  /** `s1`, `s2`, … */
  readonly id: string;
  readonly goal: string;
  readonly outcome?: string;
  readonly actions: readonly NumberedAction[];
};

/** What stands for a finished stretch. It never changes, until it goes into one of a higher level as a whole. */
export type Summary = {
  readonly kind: 'summary';
  /** 1 a sub-goal, 2 a phase, 3 an overview, 4 and more overviews of overviews. */
  readonly level: number;
  readonly id: string;
  /** The sub-goal's; empty above. */
  readonly goal: string;
  readonly outcome?: string;
  readonly text: string;
  /** Brings back what it stands for: actions, or the entries of the level below. */
  readonly memory: string;
  /** As it stands in the context. */
  readonly tokens: number;
  /** First and last number of what lies below, by letter. */
  readonly covers: CoveredNumbers;
};

export type Letter = 'a' | 's' | 'p' | 'o';
export type CoveredNumbers = Partial<Readonly<Record<Letter, readonly [first: number, last: number]>>>;

export type TrajectoryEntry = Subgoal | Summary;

export type TrajectoryState = {
  readonly version: 1;
  readonly goal: string;
  /** How many of each letter there were. */
  readonly counts: Readonly<Record<Letter, number>>;
  /** Tokens of all actions there ever were, whole. */
  readonly tokensSeen: number;
  /** Finished, oldest first. */
  readonly entries: readonly TrajectoryEntry[];
  readonly open: Subgoal | undefined;
  /** By the name of the level. */
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

/** A new sub-goal is open; one that was open is finished. */
export function started(state: TrajectoryState, goal: string): TrajectoryState {
  const finished = completed(state, undefined);
  const counts = { ...finished.counts, s: finished.counts.s + 1 };
  return { ...finished, counts, open: { kind: 'subgoal', id: `s${counts.s}`, goal, actions: [] } };
}

/** An action in the open sub-goal; where none is open, in one without a name. */
export function added(
  state: TrajectoryState,
  action: Omit<NumberedAction, 'id'>,
  /** Of the action, whole. */
  tokens: number,
): TrajectoryState {
  const { open, counts, ...rest } = state.open ? state : started(state, '');
  const a = counts.a + 1;
  const next: Subgoal = { ...open!, actions: [...open!.actions, { id: `a${a}`, ...action }] };
  return { ...rest, counts: { ...counts, a }, tokensSeen: rest.tokensSeen + tokens, open: next };
}

/** The open sub-goal is finished, in parts where it is long; one without actions is as if it had not been. */
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

/** Long sub-goals give off their oldest actions while they go on. */
export function isLong(state: TrajectoryState): boolean {
  return (state.open?.actions.length ?? 0) >= subgoalLength.max + newestActions;
}

/** The oldest actions of the open sub-goal become a finished part; it goes on under the same goal with the others. */
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

/** The summary stands where these entries stood. */
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

/** What a summary of these would cover. */
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
