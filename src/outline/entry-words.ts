/**
 * How long the summary of one stretch is, by what it stands for and the ratio that is asked for, and its words where they are the steps'
 * own lines. Pure.
 */
import type { CountTokens } from '../conversation/fit.ts';
import { hardestRatio } from './levels.ts';
import { tellingLines } from './lines.ts';

/** Tokens: of what is summarised, of the entry as it is wanted, and of its first line, which says what it is. */
export type EntrySizes = { readonly before: number; readonly wanted: number; readonly head: number };

/** A summary has at least so many tokens, whatever the ratio; less says nothing. */
const leastText = 24;

/** Words rarely fill the room they are given, so less is asked for than the hardest ratio allows. */
const hardestAim = 14;

/** A light merge has a third, but no more than this, of what stood there. */
const mergeRatio = 3;
const mergeTokens = 300;

/** Of an entry for so many tokens; `ratio` undefined: of a light merge. */
export function wantedTokens(before: number, ratio: number | undefined): number {
  if (ratio !== undefined) return Math.floor(before / Math.min(ratio, hardestAim));
  return Math.floor(Math.max(before / hardestAim, Math.min(before / mergeRatio, mergeTokens)));
}

/** Tokens that are left beside the first line. */
export function roomOf(sizes: EntrySizes): number {
  return Math.max(0, Math.min(Math.max(sizes.wanted - sizes.head, leastText), mostRoom(sizes)));
}

/** With more nothing would be saved. */
function mostRoom({ before, head }: EntrySizes): number {
  return Math.max(0, before - head - 4);
}

/** The steps' own lines, behind what the entry says already. `tokensOf`: of the entry with such a text. */
export function entryLines(
  steps: readonly string[],
  sizes: EntrySizes,
  { begun = '', mark, tokensOf, count }: EntryMeasure,
): string {
  const least = sizes.before / hardestRatio;
  const taken = tokensOf(begun) - sizes.head;
  const sayOn = (room: number): string => {
    const words = tellingLines(steps, room - taken, count, mark);
    return [begun, words].filter((part) => part !== '').join('\n');
  };
  let room = roomOf(sizes);
  let text = sayOn(room);
  // Lines that do not divide well leave some of the room.
  for (let round = 0; round < 3 && room < mostRoom(sizes); round++) {
    const missing = least - tokensOf(text);
    if (missing <= 0) break;
    room = Math.min(room + Math.ceil(missing) + 16, mostRoom(sizes));
    text = sayOn(room);
  }
  return text;
}

export type EntryMeasure = {
  readonly begun?: string;
  /** As `tellingLines` takes it. */
  readonly mark?: string;
  readonly tokensOf: (text: string) => number;
  readonly count: CountTokens;
};
