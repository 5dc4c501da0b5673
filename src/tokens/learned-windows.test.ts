import { describe, expect, it } from 'vitest';
import { createLearnedWindows } from './calibration.ts';

const key = { tenant: 't', upstream: 'https://a.example', model: 'm' };

describe('learned windows', () => {
  it('keep the smallest limit per tenant, upstream and model', () => {
    const windows = createLearnedWindows();
    windows.learn(key, 100_000);
    windows.learn(key, 64_000);
    windows.learn(key, 90_000);
    expect(windows.find(key)).toBe(64_000);
    for (const other of [{ tenant: 'u' }, { upstream: 'https://b.example' }, { model: 'n' }])
      expect(windows.find({ ...key, ...other })).toBeUndefined();
  });

  it('are forgotten after a day', () => {
    let now = 0;
    const windows = createLearnedWindows(() => now);
    windows.learn(key, 64_000);
    now = 24 * 60 * 60 * 1_000 - 1;
    expect(windows.find(key)).toBe(64_000);
    now += 1;
    expect(windows.find(key)).toBeUndefined();
  });

  it('are forgotten when the provider accepts a longer prompt', () => {
    const windows = createLearnedWindows();
    windows.learn(key, 64_000);
    windows.accepted(key, 64_000);
    expect(windows.find(key)).toBe(64_000);
    windows.accepted(key, 64_001);
    expect(windows.find(key)).toBeUndefined();
  });
});
