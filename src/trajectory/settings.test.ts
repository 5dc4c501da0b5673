import { describe, expect, it } from 'vitest';
import { settingsFrom } from './fold.ts';

describe('presets', () => {
  it('set ratios and levels; options override them', () => {
    expect(settingsFrom({})).toEqual({
      ratio: 10,
      levels: 'as-needed',
      budget: 16_000,
      newest: 0.5,
      minActions: 20,
    });
    expect(settingsFrom({ preset: 'debugging' })).toMatchObject({ ratio: 3, levels: 'as-needed' });
    expect(settingsFrom({ preset: 'long-horizon' })).toMatchObject({
      ratio: 15,
      levels: 'always',
      newest: 0.25,
    });
    expect(settingsFrom({ preset: 'cost' })).toMatchObject({ ratio: 12, levels: 'as-needed', newest: 0 });
    expect(
      settingsFrom({
        preset: 'cost',
        ratio: 'adaptive',
        levels: 'always',
        newestShare: 0.1,
        budgetTokens: 4_000,
        minActions: 0,
      }),
    ).toEqual({ ratio: 'adaptive', levels: 'always', newest: 0.1, budget: 4_000, minActions: 0 });
  });
});

describe('options out of range', () => {
  it.each([
    [
      { preset: 'fast' as 'cost' },
      'preset "fast" is unknown: use production, debugging, long-horizon, cost.',
    ],
    [{ ratio: 16 }, 'ratio 16 is out of range: use 1.5 to 15, or "adaptive".'],
    [{ ratio: Number.NaN }, 'ratio NaN is out of range: use 1.5 to 15, or "adaptive".'],
    [{ budgetTokens: 999 }, 'budgetTokens 999 is too small: use at least 1000 tokens.'],
    [{ newestShare: 0.7 }, 'newestShare 0.7 is out of range: use 0 to 0.6.'],
    [{ minActions: -1 }, 'minActions -1 is out of range: use 0 or more.'],
  ])('%j', (options, message) => {
    expect(() => settingsFrom(options)).toThrow(
      expect.objectContaining({ code: 'bad-config', message: `The trajectory's ${message}` }),
    );
  });
});
