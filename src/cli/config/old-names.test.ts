import { describe, expect, it } from 'vitest';
import { mergeSources } from './merge-sources.ts';

const oldVariables: readonly (readonly [old: string, now: string])[] = [
  ['TRIGGERS_MUST_FIT_TARGET', 'TRIGGERS_MUST_FIT_TARGET_SHARE'],
  ['TRIGGERS_WINDOW_FRACTION_TRIGGER', 'TRIGGERS_WINDOW_FRACTION_TRIGGER_SHARE'],
  ['TRIGGERS_WINDOW_FRACTION_TARGET', 'TRIGGERS_WINDOW_FRACTION_TARGET_SHARE'],
  ['TRIGGERS_TOKEN_BUDGET_TRIGGER', 'TRIGGERS_TOKEN_BUDGET_TRIGGER_TOKENS'],
  ['TRIGGERS_TOKEN_BUDGET_TARGET', 'TRIGGERS_TOKEN_BUDGET_TARGET_TOKENS'],
  ['TRIGGERS_TOKEN_BUDGET_BUFFER', 'TRIGGERS_TOKEN_BUDGET_BUFFER_TOKENS'],
  ['TRIGGERS_MESSAGE_COUNT_TARGET', 'TRIGGERS_MESSAGE_COUNT_TARGET_MESSAGES'],
  ['TRIGGERS_MESSAGE_COUNT_BUFFER', 'TRIGGERS_MESSAGE_COUNT_BUFFER_MESSAGES'],
  ['TRIGGERS_CACHE_RENT_PATIENCE', 'TRIGGERS_CACHE_RENT_MIN_PAYBACK'],
  ['COMPRESSION_BYTES_THRESHOLD', 'MIN_RESULT_BYTES'],
  ['PRICES', 'USD_PER_MILLION_TOKENS'],
];

describe('the old name of a variable', () => {
  it.each(oldVariables)('is refused with the new one: %s', (old, now) => {
    expect(() => mergeSources({ flags: [], env: { [`LEPORELLO_${old}`]: '1' }, file: undefined })).toThrow(
      `LEPORELLO_${old} is set, but is not a variable of Leporello. Did you mean LEPORELLO_${now}? If not, unset it.`,
    );
  });
});
