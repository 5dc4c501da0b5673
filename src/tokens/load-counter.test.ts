import { describe, expect, it } from 'vitest';
import { loadTokenCounter } from './load-counter.ts';
import type { TokenCounter } from './token-counter.ts';

const own: TokenCounter = {
  name: 'words',
  exact: true,
  count: (text) => text.split(' ').length,
  image: () => 1,
  overhead: { message: 0, tool: 0, request: 0 },
};

describe('loadTokenCounter', () => {
  it('is exact when the tokenizer is public and an estimate otherwise', async () => {
    const counters = await Promise.all(
      ['gpt-5', 'gpt-4', 'claude-opus-4-5', 'claude-opus-5', 'gemini-3-pro', 'llama-4', undefined].map(
        (model) => loadTokenCounter(model),
      ),
    );
    expect(counters.map(({ name, exact }) => `${name}${exact ? '' : ' (estimate)'}`)).toEqual([
      'o200k_base',
      'cl100k_base',
      'o200k_base x 1.18 (estimate)',
      'o200k_base x 1.53 (estimate)',
      'o200k_base + digits x 1.04 (estimate)',
      'o200k_base x 1.2 (estimate)',
      'o200k_base x 1.2 (estimate)',
    ]);
  });

  it('counts images and wrapping as the model does', async () => {
    const size = { width: 1000, height: 1000 };
    expect((await loadTokenCounter('gpt-5')).image(size)).toBe(630);
    expect((await loadTokenCounter('claude-opus-4-5')).image(size)).toBe(1334);
    expect((await loadTokenCounter('claude-opus-4-5')).overhead).toEqual({
      message: 22,
      tool: 0,
      tools: 346,
      request: 3,
    });
  });

  it('uses a counter or a tokenizer of the user, by the pattern that fits best', async () => {
    const overrides = {
      '*': { tokenizer: { encoding: 'cl100k_base', estimate: { factor: 1.5 } } },
      'my-*': { tokenizer: own },
      'my-exact': { windowTokens: 1_000 },
    } as const;
    const { name, exact, overhead, ...counter } = await loadTokenCounter('my-model', overrides);
    expect({ name, exact, overhead }).toEqual({ name: 'words', exact: true, overhead: own.overhead });
    expect([counter.count('three little words'), counter.image(undefined)]).toEqual([3, 1]);
    expect((await loadTokenCounter('gpt-5', overrides)).name).toBe('cl100k_base x 1.5');
    expect((await loadTokenCounter('my-exact', overrides)).name).toBe('o200k_base x 1.2');
  });

  it('gives the same counter for the same model', async () => {
    expect(await loadTokenCounter('gpt-5')).toBe(await loadTokenCounter('gpt-5'));
  });
});
