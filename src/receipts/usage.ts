/** Tokens of model calls as providers report them, and sums of them. Pure. */

/** `input` counts all prompt tokens, those read from and written to a cache included. */
export type Usage = {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** Of `cacheWrite`, what is kept longer than usual and costs more; left out where there is none. */
  readonly cacheWriteLong?: number;
  readonly output: number;
  /**
   * Tokens of the prompt that was sent, where the provider ran rounds of its own within the call, so that `input` holds more (or less) than
   * that prompt. `unknown` where the report does not say; left out where it is all of `input`.
   */
  readonly sentPrompt?: number | 'unknown';
};

/** Tokens that a provider reported for the prompt that it was sent; undefined where it reported a sum of other things, too. */
export function sentPromptOf({ input, sentPrompt = input }: Usage): number | undefined {
  return sentPrompt === 'unknown' ? undefined : sentPrompt;
}

export const noUsage: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 };

export function addedUsage(one: Usage, other: Usage): Usage {
  return combined(one, other, (a, b) => a + b);
}

/** Without what only tells the rounds of one call apart. */
export function plainUsage(usage: Usage): Usage {
  return addedUsage(noUsage, usage);
}

/** What came to a running total since it was `earlier`. */
export function usageSince(earlier: Usage, total: Usage): Usage {
  return combined(total, earlier, (a, b) => a - b);
}

function combined(one: Usage, other: Usage, combine: (a: number, b: number) => number): Usage {
  const long = combine(one.cacheWriteLong ?? 0, other.cacheWriteLong ?? 0);
  return {
    input: combine(one.input, other.input),
    cacheRead: combine(one.cacheRead, other.cacheRead),
    cacheWrite: combine(one.cacheWrite, other.cacheWrite),
    ...(long === 0 ? {} : { cacheWriteLong: long }),
    output: combine(one.output, other.output),
  };
}
