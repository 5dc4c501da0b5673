import { describe, expect, it } from 'vitest';
import { costsOf, loadModelInfo, tokenizerOf } from './models.ts';

const windowsOf = async (model: string | undefined, overrides = {}) => {
  const { window, maxInput, maxOutput } = await loadModelInfo(model, overrides);
  return { window, maxInput, maxOutput };
};
const unlimited = { maxInput: undefined, maxOutput: undefined };

describe('loadModelInfo', () => {
  it.each([
    ['gpt-4o-2024-08-06', 128_000],
    ['openai/gpt-4o', 128_000],
    ['claude-sonnet-4-5-20250929', 200_000],
    ['anthropic/claude-sonnet-4.5', 200_000],
    ['us.anthropic.claude-sonnet-4-20250514-v1:0', 200_000],
    ['claude-opus-4-7', 1_000_000],
    ['gemini-2.5-flash', 1_048_576],
    ['gemini-3-pro-preview', 1_000_000],
    ['deepseek-chat', 64_000],
  ])('knows the window of %s', async (model, window) => {
    expect(await windowsOf(model)).toEqual({ window, ...unlimited });
  });

  it('knows when a part of the window is reserved for the reply', async () => {
    expect(await windowsOf('gpt-5')).toEqual({ window: 400_000, maxInput: 272_000, maxOutput: 128_000 });
    expect(await windowsOf('openai/gpt-5.4')).toEqual({
      window: 1_050_000,
      maxInput: 922_000,
      maxOutput: 128_000,
    });
  });

  it('has no window for an unknown model', async () => {
    expect(await windowsOf('my-own-model')).toEqual({ window: undefined, ...unlimited });
    expect(await windowsOf(undefined)).toEqual({ window: undefined, ...unlimited });
    expect(await windowsOf('x'.repeat(1_000_000))).toEqual({ window: undefined, ...unlimited });
  });

  it("prefers the user's window, which is not divided", async () => {
    const overrides = {
      'gpt-*': { windowTokens: 30_000 },
      'my-*': { windowTokens: 8_000, maxOutputTokens: 1_000 },
    };
    expect(await windowsOf('gpt-5', overrides)).toEqual({
      window: 30_000,
      maxInput: undefined,
      maxOutput: 128_000,
    });
    expect(await windowsOf('my-own-model', overrides)).toEqual({
      window: 8_000,
      maxInput: undefined,
      maxOutput: 1_000,
    });
  });
});

describe('how long a prompt stays cached', () => {
  const minutes = async (model: string, overrides = {}) =>
    (await loadModelInfo(model, overrides)).cacheKeptMs / 60_000;

  it.each([
    ['claude-sonnet-4-5-20250929', 5],
    ['anthropic/claude-opus-4.5', 5],
    ['gpt-5.1', 60],
    ['openai/gpt-5.5', 24 * 60],
    ['gemini-3-pro-preview', 60],
    ['my-own-model', 24 * 60],
  ])('is known of %s', async (model, expected) => {
    expect(await minutes(model)).toBe(expected);
  });

  it("is the user's setting if there is one", async () => {
    expect(await minutes('claude-opus-4-5', { 'claude-*': { cacheKeptMs: 3_600_000 } })).toBe(60);
  });
});

describe('the shortest prompt that is cached', () => {
  it.each<[string, number | undefined]>([
    ['claude-sonnet-4-5-20250929', 1_024],
    ['claude-sonnet-4-6', 2_048],
    ['claude-opus-4-6', 4_096],
    ['anthropic/claude-opus-4.5', 4_096],
    ['claude-opus-4-7', 2_048],
    ['claude-opus-4-8', 1_024],
    ['claude-opus-5-5', 1_024],
    ['claude-haiku-4-5', 4_096],
    ['claude-haiku-5-5', 1_024],
    ['claude-3-5-haiku-latest', 2_048],
    ['anthropic.claude-3-7-sonnet-20250219-v1:0', 1_024],
    ['gpt-4o', 1_024],
    ['o4-mini', 1_024],
    ['gemini-2.5-flash', 2_048],
    ['gemini-3-pro-preview', 4_096],
    ['my-own-model', undefined],
  ])('is known of %s', async (model, tokens) => {
    expect((await loadModelInfo(model)).minCachedTokens).toBe(tokens);
  });
});

describe('tokenizerOf', () => {
  it.each([
    ['gpt-5', 'o200k_base', undefined],
    ['gpt-4o-mini', 'o200k_base', undefined],
    ['gpt-4.1', 'o200k_base', undefined],
    ['openai/gpt-oss-120b', 'o200k_base', undefined],
    ['o3-mini', 'o200k_base', undefined],
    ['gpt-4', 'cl100k_base', undefined],
    ['gpt-4-turbo-2024-04-09', 'cl100k_base', undefined],
    ['gpt-3.5-turbo', 'cl100k_base', undefined],
    ['claude-3-5-haiku-latest', 'o200k_base', 1.18],
    ['claude-sonnet-4-20250514', 'o200k_base', 1.18],
    ['claude-opus-4-1', 'o200k_base', 1.18],
    ['claude-opus-4.6', 'o200k_base', 1.18],
    ['anthropic/claude-sonnet-4.5', 'o200k_base', 1.18],
    ['claude-opus-4-7', 'o200k_base', 1.53],
    ['claude-sonnet-5', 'o200k_base', 1.53],
    ['gemini-3-flash', 'o200k_base', 1.04],
    ['llama-4', 'o200k_base', 1.2],
    [undefined, 'o200k_base', 1.2],
  ])('counts %s with %s, times %s', (model, encoding, factor) => {
    const tokenizer = tokenizerOf(model);
    expect([tokenizer.encoding, tokenizer.estimate?.factor]).toEqual([encoding, factor]);
  });
});

describe('costsOf', () => {
  it.each([
    ['gpt-4o', 'tiles'],
    ['gpt-4.1-mini', 'patches'],
    ['gpt-5', 'tiles'],
    ['gpt-5-mini-2025-08-07', 'patches'],
    ['gpt-5.1', 'tiles'],
    ['gpt-5.4', 'patches'],
    ['claude-opus-4-5', 'area'],
    ['gemini-2.5-pro', 'crops'],
    ['gemini-3-pro-preview', 'flat'],
    ['llama-4', 'tiles'],
  ])('%s counts images by %s', (model, rule) => {
    expect(costsOf(model).image.rule).toBe(rule);
  });

  it('lets newer generations see more of an image', () => {
    expect(['claude-opus-4.6', 'claude-opus-4-7'].map((model) => costsOf(model).image)).toEqual([
      { rule: 'area', pixels: 750, longSide: 1568, max: 1600 },
      { rule: 'area', pixels: 750, longSide: 2576, max: 4784 },
    ]);
  });
});
