/** How far the newest results are made smaller where folding history did not bring a request below a mark. */
import type { Demand } from './trigger.ts';

/** From .85 of a window to .8 of it: enough for what a tool answers next, and no more than must be of what was just asked for. */
const belowTheMark = 0.94;

/** `above`: the mark in tokens. */
export function newestGoal(above: number): NonNullable<Demand['newest']> {
  return { above, target: Math.floor(above * belowTheMark) };
}
