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
