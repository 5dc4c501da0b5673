/** What a trajectory is folded by: the presets, and the shape of the levels. Pure. */
import { LeporelloError } from '../errors.ts';
import { type Hardness, hardnessOf, type Preset } from '../outline/presets.ts';

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

export type Settings = Hardness & { readonly budget: number; readonly newest: number };

/** Of an open sub-goal as many of the newest actions stay as they are when it is parted. */
export const newestActions = 3;

const newestBy: Readonly<Record<Preset, number>> = {
  production: 0.5,
  debugging: 0.5,
  'long-horizon': 0.25,
  cost: 0,
};

/** Throws `bad-config`. */
export function settingsFrom(options: HierarchyOptions): Settings {
  const { preset = 'production', budget = 16_000 } = options;
  const hardness = hardnessOf(preset, options, "The trajectory's");
  const { newest = newestBy[preset] } = options;
  if (!(budget >= 1_000)) throw bad(`budget ${budget} is too small: use 1000 tokens or more`);
  if (!(newest >= 0 && newest <= 0.6)) throw bad(`newest ${newest} is out of range: use 0 to 0.6`);
  return { ...hardness, budget, newest };
}

function bad(what: string): LeporelloError {
  return new LeporelloError('bad-config', `The trajectory's ${what}.`);
}
