/**
 * The interface of a token counter, the cost of images, and estimated counters for models whose tokenizer is not public. Counting
 * is synchronous and pure; loading a counter may not be, and an asynchronous counter returns estimates until its answers arrive.
 * An estimate is an exact counter times a measured factor: one monotone vocabulary under all estimates keeps counts before and
 * after a fold comparable; bench/tokens.ts measures the errors.
 */
import type { AsyncCounts } from './async-counts.ts';

export type CountingSteps = Generator<undefined, number, undefined>;

export interface TokenCounter {
  /** Names the vocabulary and factor, for receipts: `o200k_base`, `o200k_base x 1.18`. */
  readonly name: string;
  /** True when the provider uses exactly this tokenizer. */
  readonly exact: boolean;
  /** Counts the tokens of a text. Linear in its length, even for hostile text. */
  count(text: string): number;
  /** Counts a long text in steps of about a millisecond, so that the caller can pause between them. Returns what `count` does. */
  readonly countInSteps?: (text: string) => CountingSteps;
  /** Counts the tokens of an image; `size` in pixels is undefined when it could not be read. */
  image(size: ImageSize | undefined): number;
  readonly overhead: Overhead;
  /** How the model reads tool definitions: as the JSON of the request (the default), or as a TypeScript namespace. */
  readonly toolsAs?: 'json' | 'namespace' | undefined;
  /** For an asynchronous counter: `count` is an estimate that never changes, and these are its answers. */
  readonly asyncCounts?: AsyncCounts | undefined;
}

/** Tokens in addition to those of the content. */
export type Overhead = {
  /** For each message. */
  readonly message: number;
  /** For each tool definition. */
  readonly tool: number;
  /** Once, for having tools at all. Default 0. */
  readonly tools?: number | undefined;
  /** Once for each request. */
  readonly request: number;
};

export type ImageSize = { readonly width: number; readonly height: number };

export type Costs = Pick<TokenCounter, 'overhead' | 'toolsAs'> & { readonly image: ImageRule };

/** How a provider computes the tokens of an image. Sizes are pixels. */
export type ImageRule =
  /**
   * Fits the image into a square of `box`, then shrinks the short side to `shortSide`; counts `base` and `perTile` for each tile
   * begun.
   */
  | {
      readonly rule: 'tiles';
      readonly box: number;
      readonly shortSide: number;
      readonly tile: number;
      readonly base: number;
      readonly perTile: number;
    }
  /** Counts `factor` tokens for each patch begun; the image is shrunk so that there are at most `max` patches. */
  | { readonly rule: 'patches'; readonly patch: number; readonly max: number; readonly factor: number }
  /** Counts a token for every `pixels`, after the long side was shrunk to `longSide`; at most `max`. */
  | { readonly rule: 'area'; readonly pixels: number; readonly longSide: number; readonly max: number }
  /** Counts `perTile` for a small image (both sides up to `small`), else for each tile begun. */
  | { readonly rule: 'crops'; readonly tile: number; readonly small: number; readonly perTile: number }
  | { readonly rule: 'flat'; readonly tokens: number };

/** The costs of most providers, or close to them, for counters that are made for no particular model. */
export const USUAL_COSTS: Costs = {
  image: { rule: 'tiles', box: 2048, shortSide: 768, tile: 512, base: 85, perTile: 170 },
  overhead: { message: 4, tool: 8, request: 3 },
};

/** An image whose size cannot be read (a URL, an unknown format) counts as large, because a count that is too low may not fit. */
const UNKNOWN_SIZE: ImageSize = { width: 2048, height: 2048 };

/** Returns the tokens of an image of this size; undefined means that it could not be read. */
export function imageTokens(rule: ImageRule, size: ImageSize = UNKNOWN_SIZE): number {
  const { width, height } = size;
  switch (rule.rule) {
    case 'tiles': {
      const boxed = Math.min(1, rule.box / Math.max(width, height));
      const scale = boxed * Math.min(1, rule.shortSide / (Math.min(width, height) * boxed));
      return rule.base + rule.perTile * cells(width * scale, height * scale, rule.tile);
    }
    case 'patches':
      return Math.ceil(rule.factor * Math.min(rule.max, cells(width, height, rule.patch)));
    case 'area': {
      const scale = Math.min(1, rule.longSide / Math.max(width, height));
      return Math.min(rule.max, Math.ceil((width * scale * height * scale) / rule.pixels));
    }
    case 'crops':
      return width <= rule.small && height <= rule.small
        ? rule.perTile
        : rule.perTile * cells(width, height, rule.tile);
    case 'flat':
      return rule.tokens;
  }
}

/** Returns the cells of a grid that a rectangle touches. Scaled sides are rounded, as pixels are. */
function cells(width: number, height: number, side: number): number {
  return Math.ceil(Math.round(width) / side) * Math.ceil(Math.round(height) / side);
}

export type Estimate = {
  /** Tokens of the model for one token of the base. */
  readonly factor: number;
  /** True for vocabularies that give every digit a token of its own; the base takes up to three at once. */
  readonly splitDigits?: boolean;
};

/** Makes a counter that is `base` times a factor, rounded up. Images and overheads are the base's unless `costs` are given. */
export function estimateFrom(base: TokenCounter, estimate: Estimate, costs?: Costs): TokenCounter {
  const { factor, splitDigits = false } = estimate;
  const estimated = (text: string, tokens: number): number =>
    Math.ceil((tokens + (splitDigits ? extraDigits(text) : 0)) * factor);
  const { countInSteps } = base;
  return {
    name: `${base.name}${splitDigits ? ' + digits' : ''} x ${factor}`,
    exact: false,
    count: (text) => estimated(text, base.count(text)),
    ...(countInSteps && {
      *countInSteps(text): CountingSteps {
        return estimated(text, yield* countInSteps(text));
      },
    }),
    image: costs === undefined ? (size) => base.image(size) : (size) => imageTokens(costs.image, size),
    overhead: costs?.overhead ?? base.overhead,
    toolsAs: costs ? costs.toolsAs : base.toolsAs,
  };
}

/** Counts the digits of a text, minus the one token for up to three of them that the base has counted. */
function extraDigits(text: string): number {
  let extra = 0;
  let run = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    run = unit >= 0x30 && unit <= 0x39 ? run + 1 : 0;
    if (run % 3 !== 1 && run > 0) extra++;
  }
  return extra;
}
