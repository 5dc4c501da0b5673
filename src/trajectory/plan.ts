/** What is to be folded next, if anything: data, so that it can be tested without folding. Pure. */
import { LeporelloError } from '../errors.ts';
import {
  compressionLevelOf,
  fullLevel,
  largestLevel,
  overviewLevel,
  subgoalLength,
  type CompressionLevel,
  type Preset,
} from '../outline/levels.ts';
import { isLong, type Subgoal, type Summary, type TrajectoryEntry, type TrajectoryState } from './state.ts';

export type PendingWork =
  /** A finished sub-goal becomes a summary. */
  | { readonly kind: 'summarize'; readonly of: readonly [Subgoal] }
  /** Summaries become one of a higher level. */
  | { readonly kind: 'level-up'; readonly of: readonly Summary[]; readonly level: number }
  /** The oldest actions of the open sub-goal become a finished part of it. */
  | { readonly kind: 'part'; readonly length: number };

/** What has too many tokens, so that everything that helps is to be done: the context, or the finished sub-goals that stand as they are. */
export type Pressure = { readonly context: boolean; readonly waiting: boolean };

export function nextWork(
  state: TrajectoryState,
  settings: TrajectorySettings,
  pressure: Pressure,
): PendingWork | undefined {
  if (isLong(state)) return { kind: 'part', length: subgoalLength.max };
  const { entries, counts } = state;
  const oldest = entries.find(isSubgoal);
  const waiting: PendingWork | undefined = oldest && { kind: 'summarize', of: [oldest] };
  const isDue = pressure.waiting && (pressure.context || counts.a >= settings.minActions);
  if (waiting && isDue) return waiting;
  const summaries = entries.filter((entry) => entry.kind === 'summary');
  if (!pressure.context) {
    return settings.levels === 'always' ? levelUp(fullLevel([summaries], overviewLevel, 1)) : undefined;
  }
  // What is done now must not squeeze out all that was done before.
  const part = halfOpen(state);
  if (part && openTokens(state) > settings.budget / 2) return part;
  const full = levelUp(fullLevel([summaries], Infinity, 0));
  return full ?? waiting ?? levelUp(largestLevel([summaries])) ?? part;
}

/** All but the newest action of the open sub-goal, the older half first. */
function halfOpen({ open }: TrajectoryState): PendingWork | undefined {
  const length = Math.floor((open?.actions.length ?? 0) / 2);
  return length > 0 ? { kind: 'part', length } : undefined;
}

function openTokens({ open }: TrajectoryState): number {
  return open?.actions.reduce((sum, { cost }) => sum + cost.action + cost.observation, 0) ?? 0;
}

function levelUp(of: readonly Summary[] | undefined): PendingWork | undefined {
  return of && { kind: 'level-up', of, level: Math.max(...of.map(({ level }) => level)) + 1 };
}

function isSubgoal(entry: TrajectoryEntry): entry is Subgoal {
  return entry.kind === 'subgoal';
}

export type HierarchyOptions = {
  /** Default `production`. What stands beside it overrules it. */
  readonly preset?: Preset | undefined;
  /** Tokens in for one token out, 1.5 to 15, on each level; `adaptive`: 15 where a stretch repeats itself, down to 5 where it is varied. */
  readonly ratio?: number | 'adaptive' | undefined;
  /** Whether ten sub-goals become a phase, and five phases an overview, as soon as there are so many, or when the budget needs it. */
  readonly levels?: 'always' | 'as-needed' | undefined;
  /** Tokens that `context()` has at most. At least 1,000; default 16,000. */
  readonly budget?: number | undefined;
  /** Share of the budget, 0 to 0.6, in which the newest finished sub-goals stand as they are: what was read last is what is used next. */
  readonly newest?: number | undefined;
  /** Tasks of fewer actions are left alone as long as they are under the budget. Default 20. */
  readonly minActions?: number | undefined;
};

export type TrajectorySettings = CompressionLevel & { readonly budget: number; readonly newest: number };

const newestBy: Readonly<Record<Preset, number>> = {
  production: 0.5,
  debugging: 0.5,
  'long-horizon': 0.25,
  cost: 0,
};

/** Throws `bad-config`. */
export function settingsFrom(options: HierarchyOptions): TrajectorySettings {
  const { preset = 'production', budget = 16_000 } = options;
  const hardness = compressionLevelOf(preset, options, "The trajectory's");
  const { newest = newestBy[preset] } = options;
  if (!(budget >= 1_000)) throw bad(`budget ${budget} is too small: use 1000 tokens or more`);
  if (!(newest >= 0 && newest <= 0.6)) throw bad(`newest ${newest} is out of range: use 0 to 0.6`);
  return { ...hardness, budget, newest };
}

function bad(what: string): LeporelloError {
  return new LeporelloError('bad-config', `The trajectory's ${what}.`);
}
