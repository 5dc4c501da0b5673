/** How far a fold goes that a window asks for, where much of the request cannot be folded. */

/** Share of the foldable room below the high mark that a fold leaves at least: asking for all of it brings most of it back by recalls. */
const leastLeft = 0.25;

/**
 * Returns `low`, or more where too little of the request could be folded to come down to it: then at most three quarters are asked for of
 * what fits between the fixed tokens and `high`. Where everything is foldable it is `low`. All in tokens.
 */
export function lowMark(low: number, high: number, fixed = 0): number {
  if (fixed >= high) return Math.floor(low);
  return Math.floor(Math.max(low, fixed + (high - fixed) * Math.min(leastLeft, low / high)));
}
