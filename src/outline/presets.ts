/** How hard and in how many levels is compressed, by the name of what it is for. Pure. */
import { LeporelloError } from '../errors.ts';
import { hardestRatio } from './levels.ts';

export const presetNames = ['production', 'debugging', 'long-horizon', 'cost'] as const;

export type Preset = (typeof presetNames)[number];

export type Hardness = {
  /** Tokens in for one token out, on each level; `adaptive`: 15 where a stretch repeats itself, down to 5 where it is varied. */
  readonly ratio: number | 'adaptive';
  /** Whether ten sub-goals become a phase, and five phases an overview, as soon as there are so many, or when that is needed. */
  readonly levels: 'always' | 'as-needed';
  /** Tasks of fewer actions are left alone. */
  readonly minActions: number;
};

const minActions = 20;

const presets: Readonly<Record<Preset, Hardness>> = {
  production: { ratio: 10, levels: 'as-needed', minActions },
  debugging: { ratio: 3, levels: 'as-needed', minActions },
  'long-horizon': { ratio: hardestRatio, levels: 'always', minActions },
  cost: { ratio: 12, levels: 'as-needed', minActions },
};

/** What stands beside the preset overrules it. Throws `bad-config` for a name that is none, and for what is out of range; `whose` is said of it. */
export function hardnessOf(
  preset: Preset,
  options: { readonly [Key in keyof Hardness]?: Hardness[Key] | undefined },
  whose: string,
): Hardness {
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
  if (chosen.ratio !== 'adaptive' && !(chosen.ratio >= 1.5 && chosen.ratio <= hardestRatio)) {
    throw bad(`${whose} ratio ${chosen.ratio} is out of range: use 1.5 to ${hardestRatio}, or "adaptive".`);
  }
  if (!(chosen.minActions >= 0)) {
    throw bad(`${whose} minActions ${chosen.minActions} is out of range: use 0 or more.`);
  }
  return chosen;
}

function bad(message: string): LeporelloError {
  return new LeporelloError('bad-config', message);
}
