/**
 * Puts a short record in the place of each finished sub-goal, calls always together with their results; of many records one of a phase, of
 * phases one of an overview. What the user said stays where it is. A record's id brings back what stood there before it, so every message
 * is a few recalls away.
 */
import type { Edit } from '../conversation/edit.ts';
import { pairCalls } from '../conversation/pairing.ts';
import {
  fullLevel,
  largestLevel,
  overviewLevel,
  type CompressionLevel,
  compressionLevelOf,
  type Preset,
} from '../outline/levels.ts';
import { finishedStretches } from './lib/finished-subgoals.ts';
import type { FoldView, Strategy } from './strategy.ts';
import { openRecords } from './lib/subgoal-records.ts';

export type SubgoalOptions = {
  /** Default `production`. What stands beside it overrules it. */
  readonly preset?: Preset | undefined;
  /** Tokens in for one token out, 1.5 to 15, on each level; `adaptive`: 15 where a stretch repeats itself, down to 5 where it is varied. */
  readonly ratio?: number | 'adaptive' | undefined;
  /**
   * Whether ten sub-goals become a phase, and five phases an overview, as soon as there are so many, or when records take a sixth of what
   * is sent, or the request would not fit.
   */
  readonly levels?: 'always' | 'as-needed' | undefined;
  /** Conversations of fewer calls are left alone. Default 20. */
  readonly minActions?: number | undefined;
};

/** Of what is sent, records take no more than this share where levels are made as needed. */
const mostShare = 1 / 6;

/**
 * A strategy that leaves records of sub-goals where whole messages go; before `drop-oldest` in the list. Throws `bad-config` for what is
 * out of range.
 *
 * @example
 * const strategies = [createFoldSubgoals({ ratio: 15, levels: 'always' }), ...defaultStrategies];
 */
export function createFoldSubgoals(options: SubgoalOptions = {}): Strategy {
  const settings = compressionLevelOf(options.preset ?? 'production', options, "The sub-goals'");
  return {
    name: 'fold-subgoals',
    reach: 'history',
    propose: (view) => propose(view, settings),
  };
}

function propose(view: FoldView, settings: CompressionLevel): readonly Edit[] {
  if (pairCalls(view.conversation).pairs.length < settings.minActions) return [];
  const { excess } = view;
  const records = openRecords(view, settings.ratio);
  for (const found of finishedStretches(view)) {
    if (records.saved() >= excess.amount) break;
    records.add(found);
  }
  while (settings.levels === 'always' && records.levelUp((these) => fullLevel([these], overviewLevel, 1)));
  // What is only wished for is not squeezed out of records.
  const isLacking = () => view.isForced && records.saved() < excess.amount;
  const isTooMuch = () => isLacking() || records.tokens() > records.before * mostShare;
  while (isTooMuch() && records.levelUp((these) => fullLevel([these], Infinity, 0) ?? largestLevel([these])));
  return records.saved() > 0 ? records.edits() : [];
}
