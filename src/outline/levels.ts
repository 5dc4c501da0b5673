/**
 * The shape of summaries of summaries: presets, compression ratios, how many actions a sub-goal has, how many summaries of one level become
 * one of the next, and which ones do so next. Pure.
 */
import { LeporelloError } from '../errors.ts';

/** Maximum compression ratio of a level: beyond it, omitted facts are missed (see docs/subgoals.md). */
export const maxRatio = 15;

/** Numbers of actions: shorter sub-goals are not worth a summary, longer ones are split. */
export const subgoalLength = { min: 3, max: 7 } as const;

/** The highest level that is made when there are enough summaries below; higher ones are made only for the budget. */
export const overviewLevel = 3;

/** Returns the name of a level in reports. */
export function levelName(level: number): string {
  return ['action', 'subgoal', 'phase'][level] ?? 'overview';
}

/** Returns how many summaries of a level become one of the next (sub-goals a phase, phases an overview, overviews a higher overview). */
function fanoutOf(level: number): number {
  return level === 1 ? 10 : 5;
}

/** Returns how many of the newest summaries of a level stay when older ones move up a level. */
function newestOf(level: number): number {
  return level === 1 ? 2 : 1;
}

/** A summary of some level: 1 a sub-goal, 2 a phase, 3 an overview, 4 and more overviews of overviews. */
export type Leveled = { readonly level: number; readonly tokens: number };

/** Groups of adjacent summaries, oldest first: only adjacent ones may become one. */
type AdjacentGroups<T extends Leveled> = readonly (readonly T[])[];

/** Returns the oldest summaries of a level with enough of them, lowest level first; with `keep` 1 the newest ones stay. */
export function fullLevel<T extends Leveled>(
  groups: AdjacentGroups<T>,
  below: number,
  keep: 0 | 1,
): readonly T[] | undefined {
  for (const run of groups.flatMap(runsOf).toReversed()) {
    const { level } = run[0]!;
    const fanout = fanoutOf(level);
    if (level < below && run.length >= fanout + keep * newestOf(level)) return run.slice(0, fanout);
  }
  return undefined;
}

/** Returns summaries to combine for the budget although they are too few for a level: those with the most tokens, else the oldest two. */
export function largestLevel<T extends Leveled>(groups: AdjacentGroups<T>): readonly T[] | undefined {
  const runs = groups
    .flatMap(runsOf)
    .map((run) => run.slice(0, Math.max(run.length - newestOf(run[0]!.level), 2)))
    .filter(({ length }) => length >= 2);
  const largest = runs.toSorted((a, b) => tokensOf(b) - tokensOf(a))[0];
  return largest?.slice(0, fanoutOf(largest[0]!.level)) ?? groups.find(isMany)?.slice(0, 2);
}

function isMany({ length }: readonly unknown[]): boolean {
  return length >= 2;
}

/** Returns runs of adjacent summaries of the same level. */
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

const minRatio = 5;

/** Shares of new word triples at which text counts as fully repetitive, and as fully varied. */
const repetitive = 0.3;
const varied = 0.8;

/** Returns the ratio to compress texts by, in tokens before for one token after: as asked for, or by how repetitive they are. Linear. */
export function ratioFor(
  { ratio, minRatio: min, maxRatio: max }: Pick<CompressionLevel, 'ratio' | 'minRatio' | 'maxRatio'>,
  texts: readonly string[],
): number {
  if (ratio !== 'adaptive') return Math.min(Math.max(ratio, min), max);
  const news = (varietyOf(texts) - repetitive) / (varied - repetitive);
  return max - (max - min) * Math.min(Math.max(news, 0), 1);
}

/** Minimum tokens of what a node says below its head, whatever the ratio; less says nothing. */
const minText = 48;

/** Minimum tokens of the clause of a child: a few letters of each child would say nothing. */
const minClause = 14;

/** A light merge keeps a third of the tokens, but at most `mergeTokens`. */
const mergeRatio = 3;
const mergeTokens = 300;

/** Returns the tokens of a node with `children` that replaces `before` tokens; with `target` undefined, of a light merge. */
export function roomFor(
  { maxTokens }: Pick<CompressionLevel, 'maxTokens'>,
  {
    before,
    head,
    target,
    children,
  }: {
    readonly before: number;
    readonly head: number;
    readonly target: number | undefined;
    readonly children: number;
  },
): number {
  const wanted =
    target === undefined
      ? Math.max(before / maxRatio, Math.min(before / mergeRatio, mergeTokens))
      : before / target;
  return Math.floor(
    Math.min(
      Math.max(Math.min(wanted, maxTokens), head + Math.max(minText, children * minClause)),
      before - 4,
    ),
  );
}

/**
 * Returns the share of runs of three words that did not occur before. All numbers count as equal, since a log is repetitive although its
 * times differ. 1 for texts that are too short.
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

/** How strongly and in how many levels to compress. */
export type CompressionLevel = {
  /** Tokens before for one token after, on each level; `adaptive`: from 15 for repetitive text to 5 for varied text. */
  readonly ratio: number | 'adaptive';
  /** Whether ten sub-goals become a phase, and five phases an overview, always or only if needed. */
  readonly levels: 'always' | 'as-needed';
  /** Tasks with fewer actions are not compressed. */
  readonly minActions: number;
  /** Bounds of the ratio of a level. */
  readonly minRatio: number;
  readonly maxRatio: number;
  /** Maximum tokens of one node, whatever the ratio. */
  readonly maxTokens: number;
};

/** The options of compression, each optional. A ratio beyond `maxRatio` is reached by levels. */
export type CompressionOptions = {
  readonly [Key in keyof CompressionLevel]?: CompressionLevel[Key] | undefined;
};

const usual = { minActions: 20, minRatio: 1.5, maxRatio, maxTokens: Number.POSITIVE_INFINITY };

/** The highest ratio that can be asked for: three levels of the maximum ratio. */
const highestRatio = 1_000;

const presets: Readonly<Record<Preset, CompressionLevel>> = {
  production: { ...usual, ratio: 10, levels: 'as-needed' },
  debugging: { ...usual, ratio: 3, levels: 'as-needed' },
  'long-horizon': { ...usual, ratio: maxRatio, levels: 'always' },
  cost: { ...usual, ratio: 12, levels: 'as-needed' },
};

/** Returns a preset with overrides. Throws `bad-config` for an unknown preset and for values out of range; `whose` begins the message. */
export function compressionLevelOf(
  preset: Preset,
  options: CompressionOptions,
  whose: string,
): CompressionLevel {
  if (!Object.hasOwn(presets, preset)) {
    const use = presetNames.join(', ');
    throw bad(`${whose} preset ${JSON.stringify(preset)} is unknown: use ${use}.`);
  }
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const chosen: CompressionLevel = {
    ...presets[preset],
    // An adaptive ratio goes from 5 to 15 if nothing else is said.
    ...(options.ratio === 'adaptive' && { minRatio }),
    ...Object.fromEntries(Object.entries(given).filter(([key]) => Object.hasOwn(presets[preset], key))),
  };
  const { ratio } = chosen;
  if (ratio !== 'adaptive' && !(ratio >= 1.5 && ratio <= highestRatio)) {
    throw bad(`${whose} ratio ${ratio} is out of range: use 1.5 to ${highestRatio}, or "adaptive".`);
  }
  for (const key of ['minRatio', 'maxRatio'] as const) {
    if (!(chosen[key] >= 1.5 && chosen[key] <= maxRatio))
      throw bad(`${whose} ${key} ${chosen[key]} is out of range: use 1.5 to ${maxRatio}.`);
  }
  if (chosen.minRatio > chosen.maxRatio)
    throw bad(`${whose} minRatio ${chosen.minRatio} is above maxRatio ${chosen.maxRatio}: use a lower one.`);
  if (!(chosen.minActions >= 0)) {
    throw bad(`${whose} minActions ${chosen.minActions} is out of range: use 0 or more.`);
  }
  if (!(chosen.maxTokens >= 40)) {
    throw bad(`${whose} maxTokens ${chosen.maxTokens} is out of range: use 40 or more.`);
  }
  return ratio === 'adaptive' || ratio <= chosen.maxRatio ? chosen : overLevels(chosen, ratio);
}

/** Reaches a ratio by levels: sub-goals and phases, and overviews if two levels are not enough. */
function overLevels(chosen: CompressionLevel, ratio: number): CompressionLevel {
  const levels = ratio <= chosen.maxRatio ** 2 ? 2 : 3;
  return { ...chosen, ratio: ratio ** (1 / levels), levels: 'always' };
}

function bad(message: string): LeporelloError {
  return new LeporelloError('bad-config', message);
}
