/**
 * The interface of everything that counts tokens. Counting is synchronous and pure; loading a counter may not be, and one that answers
 * later estimates until then.
 */
import type { LaterCounts } from './later-counts.ts';

export interface TokenCounter {
  /** Which vocabulary or factor this is, for receipts: `o200k_base`, `o200k_base x 1.18`. */
  readonly name: string;
  /** True where the provider uses this very tokenizer. */
  readonly exact: boolean;
  /** Tokens of a text. Linear in its length, also for hostile text. */
  count(text: string): number;
  /** Tokens of an image; `size` in pixels is undefined where it could not be read. */
  image(size: ImageSize | undefined): number;
  readonly overhead: Overhead;
  /** How the model reads tool definitions: as the JSON of the request (the default), or as a TypeScript namespace. */
  readonly toolsAs?: 'json' | 'namespace' | undefined;
  /** For a counter that answers later: `count` is an estimate then, the same for ever, and these are its answers. */
  readonly later?: LaterCounts | undefined;
}

/** Tokens beside what is said. */
export type Overhead = {
  /** A message costs so many beside its content. */
  readonly message: number;
  /** A tool definition, beside its text. */
  readonly tool: number;
  /** Having tools at all, once. Default 0. */
  readonly tools?: number | undefined;
  /** A request, once. */
  readonly request: number;
};

export type ImageSize = { readonly width: number; readonly height: number };

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

export type Estimate = {
  /** Tokens of the model for one token of the base. */
  readonly factor: number;
  /** True for vocabularies that give every digit a token of its own; the base takes up to three at once. */
  readonly splitDigits?: boolean;
};

/** A counter that is `base` times a factor, rounded up. Images and overheads are the base's unless `costs` are given. */
export function estimateFrom(base: TokenCounter, estimate: Estimate, costs?: Costs): TokenCounter {
  const { factor, splitDigits = false } = estimate;
  return {
    name: `${base.name}${splitDigits ? ' + digits' : ''} x ${factor}`,
    exact: false,
    count: (text) => Math.ceil((base.count(text) + (splitDigits ? extraDigits(text) : 0)) * factor),
    image: costs === undefined ? (size) => base.image(size) : (size) => imageTokens(costs.image, size),
    overhead: costs?.overhead ?? base.overhead,
    toolsAs: costs ? costs.toolsAs : base.toolsAs,
  };
}

/** Digits of a text, less the one token for up to three of them that the base has counted. */
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
