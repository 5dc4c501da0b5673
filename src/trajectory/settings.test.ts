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
      minRatio: 1.5,
      maxRatio: 15,
      maxTokens: Infinity,
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
        maxRatio: 12,
        maxTokens: 500,
      }),
    ).toEqual({
      ratio: 'adaptive',
      levels: 'always',
      newest: 0.1,
      budget: 4_000,
      minActions: 0,
      minRatio: 5,
      maxRatio: 12,
      maxTokens: 500,
    });
  });

  it('reach ratios above 15 by levels', () => {
    expect(settingsFrom({ ratio: 20 })).toMatchObject({ ratio: 20 ** (1 / 2), levels: 'always' });
    expect(settingsFrom({ ratio: 50 })).toMatchObject({ ratio: 50 ** (1 / 2), levels: 'always' });
    expect(settingsFrom({ ratio: 500 })).toMatchObject({ ratio: 500 ** (1 / 3), levels: 'always' });
  });
});

describe('options out of range', () => {
  it.each([
    [
      { preset: 'fast' as 'cost' },
      'preset "fast" is unknown: use production, debugging, long-horizon, cost.',
    ],
    [{ ratio: 1.4 }, 'ratio 1.4 is out of range: use 1.5 to 1000, or "adaptive".'],
    [{ maxRatio: 16 }, 'maxRatio 16 is out of range: use 1.5 to 15.'],
    [{ minRatio: 8, maxRatio: 5 }, 'minRatio 8 is above maxRatio 5: use a lower one.'],
    [{ maxTokens: 10 }, 'maxTokens 10 is out of range: use 40 or more.'],
    [{ ratio: Number.NaN }, 'ratio NaN is out of range: use 1.5 to 1000, or "adaptive".'],
    [{ budgetTokens: 999 }, 'budgetTokens 999 is too small: use at least 1000 tokens.'],
    [{ newestShare: 0.7 }, 'newestShare 0.7 is out of range: use 0 to 0.6.'],
    [{ minActions: -1 }, 'minActions -1 is out of range: use 0 or more.'],
  ])('%j', (options, message) => {
    expect(() => settingsFrom(options)).toThrow(
      expect.objectContaining({ code: 'bad-config', message: `The trajectory's ${message}` }),
    );
  });
});
