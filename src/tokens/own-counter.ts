/** Checks the tokenizers that a user chooses: a public encoding, or a counter of the user's own, which complete-counter.ts completes. */
import type { ImageSize, TokenCounter } from './token-counter.ts';

/** Counts the tokens of a text, at once or later. The count depends on the text alone. */
export type CountText = (text: string) => number | Promise<number>;

export type OwnCounter =
  | CountText
  | {
      readonly count: CountText;
      /** A name for receipts. Default: `own counter`. */
      readonly name?: string;
      /** True when the provider uses exactly this tokenizer. Default false. */
      readonly exact?: boolean;
      readonly image?: (size: ImageSize | undefined) => number;
      readonly overhead?: Partial<TokenCounter['overhead']>;
    };

const ownCounterWords =
  'a function that returns the tokens of a text (or a promise of them), or { count } with such a function';

/** The tokenizers whose vocabulary is public. */
export type Encoding = 'o200k_base' | 'cl100k_base';

const encodings: readonly unknown[] = ['o200k_base', 'cl100k_base'] satisfies Encoding[];

export const tokenizerWords = `{ encoding: "o200k_base" } or { encoding: "cl100k_base" }, ${ownCounterWords}`;

/** Says what is wrong with the tokenizer of a model, as the end of the sentence "..., which"; undefined for a usable one. */
export function whyNoTokenizer(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || !('encoding' in value)) return whyNoCounter(value);
  const { encoding, estimate, ...more } = value as {
    readonly encoding: unknown;
    readonly estimate?: unknown;
  };
  if (!encodings.includes(encoding)) return 'names an encoding that is not known';
  const [unknown] = Object.keys(more);
  if (unknown !== undefined) return `has ${unknown}, which is not an option`;
  if (estimate === undefined) return undefined;
  const { factor = 1 } = (typeof estimate === 'object' ? (estimate ?? {}) : { factor: 0 }) as {
    readonly factor?: unknown;
  };
  return typeof factor === 'number' && factor > 0 && Number.isFinite(factor)
    ? undefined
    : 'has an estimate without a factor above 0';
}

/**
 * Says what is wrong with a tokenizer, as the end of the sentence "The tokenizer ..."; undefined for a usable counter. Counts one
 * letter.
 */
export function whyNoCounter(value: unknown): string | undefined {
  if (typeof value !== 'function' && (typeof value !== 'object' || value === null || !('count' in value))) {
    return 'is no tokenizer';
  }
  const own = value as { readonly [Key in keyof TokenCounter]?: unknown } | CountText;
  const count = typeof own === 'function' ? own : own.count;
  if (typeof count !== 'function') return 'has a count that is no function';
  const problem = typeof own === 'function' ? undefined : whyNoParts(own);
  if (problem !== undefined) return problem;
  let tokens: unknown;
  try {
    tokens = (count as CountText).call(own, 'a');
  } catch (error) {
    return `throws for the text "a": ${error instanceof Error ? error.message : String(error)}`;
  }
  if (isPromise(tokens)) {
    tokens.then(undefined, () => undefined);
    return undefined;
  }
  return isCount(tokens)
    ? undefined
    : `returns ${Array.isArray(tokens) ? 'a list' : typeof tokens === 'number' ? tokens : `a value of the type ${typeof tokens}`} for the text "a"`;
}

function whyNoParts(own: { readonly [Key in keyof TokenCounter]?: unknown }): string | undefined {
  const { name, exact, image, overhead } = own;
  if (name !== undefined && (typeof name !== 'string' || name === '')) return 'has a name that is no text';
  if (exact !== undefined && typeof exact !== 'boolean') return 'has an exact that is neither true nor false';
  if (image !== undefined && typeof image !== 'function') return 'has an image that is no function';
  if (overhead === undefined) return undefined;
  const parts =
    typeof overhead === 'object' && overhead !== null ? (overhead as Record<string, unknown>) : { overhead };
  const wrong = Object.entries(parts).find(
    ([key, tokens]) => !['message', 'tool', 'tools', 'request'].includes(key) || !isCount(tokens),
  );
  return wrong && `has an overhead whose ${wrong[0]} is no number of tokens`;
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

export function isPromise(value: unknown): value is Promise<unknown> {
  return (
    typeof value === 'object' && value !== null && typeof (value as Promise<unknown>).then === 'function'
  );
}
