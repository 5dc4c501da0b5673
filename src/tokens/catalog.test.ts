import { describe, expect, it } from 'vitest';
import { loadCatalog } from './catalog.ts';

const catalog = await loadCatalog();

describe('loadCatalog', () => {
  it('loads once', async () => {
    expect(await loadCatalog()).toBe(catalog);
  });

  it('finds dated names, names with a vendor and names of cloud regions', () => {
    expect(
      [
        'gpt-4o-2024-08-06',
        'openai/gpt-4o',
        'claude-sonnet-4@20250514',
        'eu.anthropic.claude-sonnet-4-20250514-v1:0',
      ].map((model) => catalog.windowOf(model)),
    ).toEqual([128_000, 128_000, 200_000, 200_000]);
  });

  it('takes the window, but not the prices, of the same model at another vendor', () => {
    expect([catalog.windowOf('qwen3-max'), catalog.ratesOf('qwen3-max')]).toEqual([262_144, undefined]);
  });

  it('keeps price tiers', () => {
    expect(catalog.ratesOf('claude-sonnet-4-5')?.input_mtok).toEqual({
      base: 3,
      tiers: [{ start: 200_000, price: 6 }],
    });
  });

  it('knows nothing of unknown models', () => {
    expect([catalog.windowOf('nobody/knows-this'), catalog.ratesOf('nobody/knows-this')]).toEqual([
      undefined,
      undefined,
    ]);
  });
});
