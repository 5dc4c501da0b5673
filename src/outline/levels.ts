/**
 * The shape of summaries upon summaries: how many actions a sub-goal has, how many of a level become one of the next, and which do so
 * next. Pure.
 */
import { LeporelloError } from '../errors.ts';

/** No level is compressed harder than this: what a summary leaves out beyond it is missed (see docs/subgoals.md). */
export const maxRatio = 15;

/** Sub-goals of fewer actions are not worth a summary; longer ones than `longest` are parted. */
export const subgoalLength = { shortest: 3, longest: 7 } as const;

/** The highest level that is made by counting; above it only the budget asks. */
export const overviewLevel = 3;

/** In the words of reports. */
export function levelName(level: number): string {
  return ['action', 'subgoal', 'phase'][level] ?? 'overview';
}

/** How many of a level become one of the next (sub-goals a phase, phases an overview, overviews an overview of these). */
function fanoutOf(level: number): number {
  return level === 1 ? 10 : 5;
}

/** How many of the newest of a level stay when older ones go a level up. */
function newestOf(level: number): number {
  return level === 1 ? 2 : 1;
}

/** 1 a sub-goal, 2 a phase, 3 an overview, 4 and more overviews of overviews. */
export type Leveled = { readonly level: number; readonly tokens: number };

/** Neighbours, oldest first: only these may become one. */
type Stretches<T extends Leveled> = readonly (readonly T[])[];

/** The oldest of a level that has enough of them, the lowest level first; `keep` is 1 where the newest ones stay. */
export function fullLevel<T extends Leveled>(
  stretches: Stretches<T>,
  below: number,
  keep: 0 | 1,
): readonly T[] | undefined {
  for (const run of stretches.flatMap(runsOf).toReversed()) {
    const { level } = run[0]!;
    const fanout = fanoutOf(level);
    if (level < below && run.length >= fanout + keep * newestOf(level)) return run.slice(0, fanout);
  }
  return undefined;
}

/** Fewer than make a level, because the budget needs it: where the most tokens are, and at last the oldest two. */
export function largestLevel<T extends Leveled>(stretches: Stretches<T>): readonly T[] | undefined {
  const runs = stretches
    .flatMap(runsOf)
    .map((run) => run.slice(0, Math.max(run.length - newestOf(run[0]!.level), 2)))
    .filter(({ length }) => length >= 2);
  const largest = runs.toSorted((a, b) => tokensOf(b) - tokensOf(a))[0];
  return largest?.slice(0, fanoutOf(largest[0]!.level)) ?? stretches.find(isMany)?.slice(0, 2);
}

function isMany({ length }: readonly unknown[]): boolean {
  return length >= 2;
}

/** Neighbours of one level. */
function runsOf<T extends Leveled>(entries: readonly T[]): readonly (readonly T[])[] {
  const runs: T[][] = [];
  for (const entry of entries) {
    const run = runs.at(-1);
    if (run?.[0]?.level === entry.level) run.push(entry);
    else runs.push([entry]);
  }
  return runs;
}

function tokensOf(run: readonly Leveled[]): number {
  return run.reduce((sum, { tokens }) => sum + tokens, 0);
}

const softest = 5;

/** Share of new word triples at which a stretch counts as all repetition, and as all news. */
const repetitive = 0.3;
const varied = 0.8;

/** Tokens in for one token out. */
export function ratioFor(ratio: number | 'adaptive', steps: readonly string[]): number {
  if (ratio !== 'adaptive') return ratio;
  const news = (varietyOf(steps) - repetitive) / (varied - repetitive);
  return maxRatio - (maxRatio - softest) * Math.min(Math.max(news, 0), 1);
}

/**
 * Of the runs of three words the share that did not come before; numbers count as one and the same, since a log repeats itself though
 * its times do not. 1 for texts too short to tell.
 */
export function varietyOf(steps: readonly string[]): number {
  const seen = new Set<string>();
  let all = 0;
  for (const step of steps) {
    const words =
      step
        .toLowerCase()
        .replaceAll(/\d+/g, '0')
        .match(/[\p{L}_]+|0/gu) ?? [];
    for (let at = 0; at + 2 < words.length; at++) {
      seen.add(`${words[at]} ${words[at + 1]} ${words[at + 2]}`);
      all++;
    }
  }
  return all === 0 ? 1 : seen.size / all;
}

export const presetNames = ['production', 'debugging', 'long-horizon', 'cost'] as const;

export type Preset = (typeof presetNames)[number];

export type CompressionLevel = {
  /** Tokens in for one token out, on each level; `adaptive`: 15 where a stretch repeats itself, down to 5 where it is varied. */
  readonly ratio: number | 'adaptive';
  /** Whether ten sub-goals become a phase, and five phases an overview, as soon as there are so many, or when that is needed. */
  readonly levels: 'always' | 'as-needed';
  /** Tasks of fewer actions are left alone. */
  readonly minActions: number;
};

const minActions = 20;

const presets: Readonly<Record<Preset, CompressionLevel>> = {
  production: { ratio: 10, levels: 'as-needed', minActions },
  debugging: { ratio: 3, levels: 'as-needed', minActions },
  'long-horizon': { ratio: maxRatio, levels: 'always', minActions },
  cost: { ratio: 12, levels: 'as-needed', minActions },
};

/** What stands beside the preset overrules it. Throws `bad-config` for a name that is none, and for what is out of range; `whose` is said of it. */
export function compressionLevelOf(
  preset: Preset,
  options: { readonly [Key in keyof CompressionLevel]?: CompressionLevel[Key] | undefined },
  whose: string,
): CompressionLevel {
  if (!Object.hasOwn(presets, preset)) {
    const use = presetNames.join(', ');
    throw bad(`${whose} preset ${JSON.stringify(preset)} is unknown: use ${use}.`);
  }
  const { ratio, levels, minActions: least } = presets[preset];
  const chosen = {
    ratio: options.ratio ?? ratio,
    levels: options.levels ?? levels,
    minActions: options.minActions ?? least,
  };
  if (chosen.ratio !== 'adaptive' && !(chosen.ratio >= 1.5 && chosen.ratio <= maxRatio)) {
    throw bad(`${whose} ratio ${chosen.ratio} is out of range: use 1.5 to ${maxRatio}, or "adaptive".`);
  }
  if (!(chosen.minActions >= 0)) {
    throw bad(`${whose} minActions ${chosen.minActions} is out of range: use 0 or more.`);
  }
  return chosen;
}

function bad(message: string): LeporelloError {
  return new LeporelloError('bad-config', message);
}
