/**
 * What a request costs beside its text: images by their size, and the wrapping of messages and tools. Pure arithmetic;
 * which model follows which rule, with which numbers, is data in `models.ts`.
 */
import type { ImageSize, TokenCounter } from './token-counter.ts';

export type Costs = Pick<TokenCounter, 'overhead' | 'toolsAs'> & { readonly image: ImageRule };

/** How a provider reckons the tokens of an image. Sizes are pixels. */
export type ImageRule =
  /** Fit into a square of `box`, then shrink the short side to `shortSide`; `base` and `perTile` for each tile begun. */
  | {
      readonly rule: 'tiles';
      readonly box: number;
      readonly shortSide: number;
      readonly tile: number;
      readonly base: number;
      readonly perTile: number;
    }
  /** `factor` tokens for each patch begun, shrunk so that there are at most `most` patches. */
  | { readonly rule: 'patches'; readonly patch: number; readonly most: number; readonly factor: number }
  /** A token for every `pixels`, after the long side was shrunk to `longSide`; at most `most`. */
  | { readonly rule: 'area'; readonly pixels: number; readonly longSide: number; readonly most: number }
  /** `perTile` for a small image (both sides up to `small`), else for each tile begun. */
  | { readonly rule: 'crops'; readonly tile: number; readonly small: number; readonly perTile: number }
  | { readonly rule: 'flat'; readonly tokens: number };

/** What most providers do, or close to it: for counters that are made without a model in mind. */
export const USUAL_COSTS: Costs = {
  image: { rule: 'tiles', box: 2048, shortSide: 768, tile: 512, base: 85, perTile: 170 },
  overhead: { message: 4, tool: 0, request: 3 },
};

/** An image whose size cannot be read (a URL, an unknown format) counts as large, since too little may not fit. */
const UNKNOWN_SIZE: ImageSize = { width: 2048, height: 2048 };

/** Tokens of an image of that size; undefined where it could not be read. */
export function imageTokens(rule: ImageRule, size: ImageSize = UNKNOWN_SIZE): number {
  const { width, height } = size;
  switch (rule.rule) {
    case 'tiles': {
      const boxed = Math.min(1, rule.box / Math.max(width, height));
      const scale = boxed * Math.min(1, rule.shortSide / (Math.min(width, height) * boxed));
      return rule.base + rule.perTile * cells(width * scale, height * scale, rule.tile);
    }
    case 'patches':
      return Math.ceil(rule.factor * Math.min(rule.most, cells(width, height, rule.patch)));
    case 'area': {
      const scale = Math.min(1, rule.longSide / Math.max(width, height));
      return Math.min(rule.most, Math.ceil((width * scale * height * scale) / rule.pixels));
    }
    case 'crops':
      return width <= rule.small && height <= rule.small
        ? rule.perTile
        : rule.perTile * cells(width, height, rule.tile);
    case 'flat':
      return rule.tokens;
  }
}

/** Cells of a grid that a rectangle touches. Scaled sides are rounded, as pixels are. */
function cells(width: number, height: number, side: number): number {
  return Math.ceil(Math.round(width) / side) * Math.ceil(Math.round(height) / side);
}
