/**
 * The stored records of a trajectory, and how an id leads to its record. Each summary's record contains what it replaced, so records form a tree: an
 * overview's record contains its phases, a phase's its sub-goals, a sub-goal's its actions in full. No I/O except through `read`.
 */
import { levelName } from '../outline/levels.ts';
import { entryText, taskId } from './view.ts';
import {
  type Action,
  type CoveredNumbers,
  letterOf,
  numberOf,
  type Subgoal,
  type Summary,
  type TrajectoryState,
} from './state.ts';

/** The full record of an id. */
export type TrajectoryRecord =
  | { readonly kind: 'task'; readonly id: string; readonly goal: string }
  | ({ readonly kind: 'action'; readonly id: string } & Action)
  | {
      readonly kind: 'subgoal';
      readonly id: string;
      readonly goal: string;
      readonly outcome?: string;
      readonly actions: readonly (Action & { readonly id: string })[];
    }
  /** A phase or an overview: the entries of the level below, as they were in the context. */
  | {
      readonly kind: 'level';
      readonly id: string;
      readonly level: number;
      readonly entries: readonly Summary[];
    };

type SubgoalRecord = Extract<TrajectoryRecord, { readonly kind: 'subgoal' }>;
type LevelRecord = Extract<TrajectoryRecord, { readonly kind: 'level' }>;
type StoredTrajectoryRecord = SubgoalRecord | LevelRecord;

/** Reads an original by its memory id; undefined if there is none. */
type ReadRecord = (memory: string) => Promise<Uint8Array | undefined>;

/** Encodes a record as JSON for the store. */
export function bytesOf(record: StoredTrajectoryRecord): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(record));
}

/** Builds the record of a sub-goal. */
export function subgoalRecord({ id, goal, outcome, actions }: Subgoal): SubgoalRecord {
  const named = outcome === undefined ? { goal } : { goal, outcome };
  return { kind: 'subgoal', id, ...named, actions: actions.map(withoutCost) };
}

/** Builds the record of a phase or an overview. */
export function levelRecord(id: string, level: number, entries: readonly Summary[]): LevelRecord {
  return { kind: 'level', id, level, entries };
}

/** Finds the record of an id; undefined for an id that is not of this trajectory, and if the original was lost. */
export async function findRecord(
  state: TrajectoryState,
  id: string,
  read: ReadRecord,
): Promise<TrajectoryRecord | undefined> {
  if (id === taskId) return { kind: 'task', id, goal: state.goal };
  if (!/^[aspo][1-9]\d{0,11}$/.test(id)) return undefined;
  const present = [...state.entries, ...(state.open ? [state.open] : [])];
  for (const entry of present) {
    if (entry.kind === 'subgoal') {
      const found = inSubgoal(subgoalRecord(entry), id);
      if (found) return found;
    } else {
      const found = await inSummary(entry, id, read);
      if (found) return found;
    }
  }
  return undefined;
}

async function inSummary(
  summary: Summary,
  id: string,
  read: ReadRecord,
): Promise<TrajectoryRecord | undefined> {
  if (summary.id !== id && !isCovered(summary.covers, id)) return undefined;
  const bytes = await read(summary.memory);
  if (bytes === undefined) return undefined;
  // The store returns a record of ours, or nothing.
  const record = JSON.parse(new TextDecoder().decode(bytes)) as StoredTrajectoryRecord;
  if (record.kind === 'subgoal') return inSubgoal(record, id);
  if (summary.id === id) return record;
  for (const entry of record.entries) {
    const found = await inSummary(entry, id, read);
    if (found) return found;
  }
  return undefined;
}

function inSubgoal(record: SubgoalRecord, id: string): TrajectoryRecord | undefined {
  if (record.id === id) return record;
  const action = record.actions.find((one) => one.id === id);
  return action && { kind: 'action', ...action };
}

function isCovered(covers: CoveredNumbers, id: string): boolean {
  const range = covers[id.charAt(0) as keyof CoveredNumbers];
  const number = numberOf(id);
  return range !== undefined && range[0] <= number && number <= range[1];
}

/** Writes a record as a model reads it. */
export function recordText(record: TrajectoryRecord): string {
  switch (record.kind) {
    case 'task':
      return record.goal;
    case 'action':
      return `${record.id} ${record.action}\n${record.observation}`;
    case 'subgoal': {
      const outcome = record.outcome === undefined ? '' : `\nOutcome: ${record.outcome}`;
      const actions = record.actions.map(({ id, action, observation }) => `${id} ${action}\n${observation}`);
      return [`Sub-goal ${record.id}: ${record.goal}${outcome}`, ...actions].join('\n\n');
    }
    case 'level': {
      const below = levelName(record.entries[0]?.level ?? 1);
      const head = `${levelName(record.level)} ${record.id}: each ${below} as it was summarised. Read ${letterOf(record.entries[0]?.level ?? 1)} and a ids for more.`;
      return [head, ...record.entries.map(entryText)].join('\n\n');
    }
  }
}

function withoutCost({ id, action, observation, recalls }: Subgoal['actions'][number]) {
  return recalls === undefined ? { id, action, observation } : { id, action, observation, recalls };
}
