/**
 * Estimated token counts for the models whose tokenizer is not public: an exact counter times a measured factor. One
 * monotone vocabulary under all estimates keeps before and after comparable; bench/tokens.ts measures the errors. Pure.
 */
import type { Costs } from './costs.ts';
import { imageTokens } from './costs.ts';
import type { TokenCounter } from './token-counter.ts';

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
