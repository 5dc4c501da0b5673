import { describe, expect, it } from 'vitest';
import { type ImageRule, imageTokens } from './token-counter.ts';

const tokensOf = (rule: ImageRule, sizes: readonly (readonly [number, number])[]) =>
  sizes.map(([width, height]) => imageTokens(rule, { width, height }));

describe('imageTokens', () => {
  it('counts tiles of the shrunk image, with the examples of the vision guide', () => {
    const rule: ImageRule = { rule: 'tiles', box: 2048, shortSide: 768, tile: 512, base: 85, perTile: 170 };
    expect(
      tokensOf(rule, [
        [1024, 1024],
        [2048, 4096],
        [512, 512],
        [513, 513],
        [1, 1],
      ]),
    ).toEqual([765, 1105, 255, 765, 255]);
  });

  it('counts patches up to the maximum', () => {
    const rule: ImageRule = { rule: 'patches', patch: 32, max: 1536, factor: 1.62 };
    expect(
      tokensOf(rule, [
        [1024, 1024],
        [33, 1],
        [8000, 8000],
      ]),
    ).toEqual([1659, 4, 2489]);
  });

  it('counts by area after shrinking the long side', () => {
    const rule: ImageRule = { rule: 'area', pixels: 750, longSide: 1568, max: 1600 };
    expect(
      tokensOf(rule, [
        [200, 200],
        [1092, 1092],
        [3136, 100],
        [1568, 1568],
      ]),
    ).toEqual([54, 1590, 105, 1600]);
  });

  it('counts crops, one for a small image', () => {
    const rule: ImageRule = { rule: 'crops', tile: 768, small: 384, perTile: 258 };
    expect(
      tokensOf(rule, [
        [384, 384],
        [385, 10],
        [769, 768],
        [1600, 900],
      ]),
    ).toEqual([258, 258, 516, 1548]);
  });

  it('counts the same for every image if the provider does', () => {
    expect(
      tokensOf({ rule: 'flat', tokens: 1120 }, [
        [1, 1],
        [4000, 4000],
      ]),
    ).toEqual([1120, 1120]);
  });

  it('counts an image of unknown size as a large one', () => {
    expect(imageTokens({ rule: 'area', pixels: 750, longSide: 1568, max: 1600 }, undefined)).toBe(1600);
  });
});
