/** Token usage of model calls as providers report it, and its sums. Pure. */

/** Token usage. `input` counts all prompt tokens, including cache reads and cache writes. */
export type Usage = {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** The part of `cacheWrite` with a longer lifetime and a higher price; omitted if there is none. */
  readonly cacheWriteLong?: number;
  readonly output: number;
  /**
   * Tokens of the sent prompt, if the provider ran rounds of its own within the call, so that `input` differs. `unknown` if the report does
   * not say; omitted if it equals `input`.
   */
  readonly sentPrompt?: number | 'unknown';
};

/** Returns the tokens that a provider reported for the sent prompt; undefined if its report includes other tokens. */
export function sentPromptOf({ input, sentPrompt = input }: Usage): number | undefined {
  return sentPrompt === 'unknown' ? undefined : sentPrompt;
}

export const noUsage: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 };

export function addedUsage(one: Usage, other: Usage): Usage {
  return combined(one, other, (a, b) => a + b);
}

/** Returns the usage without `sentPrompt`, which only concerns rounds within one call. */
export function plainUsage(usage: Usage): Usage {
  return addedUsage(noUsage, usage);
}

/** Returns the difference of a running total and its `earlier` value. */
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
