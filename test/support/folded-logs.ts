/** The settings and the results with which the tests of the adapters fill a window. Pure. */

/** Settings of an instance that folds as soon as the window is full, and in every run alike. */
export const folding = {
  models: { '*': { windowTokens: 16_000 } },
  calibration: false,
  storeDeadlineMs: 600_000,
  secret: new Uint8Array(32).fill(5),
} as const;

/** The same with a window that few results fill. */
export const foldingEarly = { ...folding, models: { '*': { windowTokens: 8_000 } } } as const;

/** Returns a result of 60 lines. */
export function log(at: number): string {
  return Array.from({ length: 60 }, (_, line) => `log ${at} line ${line} is well`).join('\n');
}

/** Returns the id of an original that a value names, by its number among all that it names. */
export function memoryIdIn(value: unknown, number = 0): string {
  return [...JSON.stringify(value).matchAll(/mem_[a-z0-9]{16}/g)][number]![0];
}
