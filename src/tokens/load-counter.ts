/** Chooses the token counter of a model: the user's own, else exact if the tokenizer is public, else an estimate. */
import { LRUCache } from 'lru-cache';
import { estimateFrom, type TokenCounter } from './token-counter.ts';
import { loadExactCounter } from './exact.ts';
import { bestMatch, nameOf } from './model-names.ts';
import { costsOf, type Encoding, type ModelOverrides, type Tokenizer, tokenizerOf } from './models.ts';
import { completeCounter, type OwnCounter, ownCounterWords, whyNoCounter } from './own-counter.ts';

/**
 * The counter of a model; the same object for the same model and overrides. Loads rank data the first time an encoding
 * is met (about 100 ms).
 *
 * @example
 * const counter = await loadTokenCounter('my-model', { 'my-*': { tokenizer: myCounter } });
 */
export async function loadTokenCounter(
  model: string | undefined,
  overrides: ModelOverrides = noOverrides,
): Promise<TokenCounter> {
  // This name is also the key: its length is bounded, whatever a client calls its model.
  const name = nameOf(model ?? '') ?? '';
  const counters = countersFor(overrides);
  const known = counters.get(name);
  if (known !== undefined) return known;
  const tokenizer = bestMatch(name, overrides)?.tokenizer ?? tokenizerOf(model);
  const counter = isTokenizer(tokenizer)
    ? await createCounter(model, tokenizer)
    : completeCounter(tokenizer, await createCounter(model, tokenizerOf(model)));
  counters.set(name, counter);
  return counter;
}

const noOverrides: ModelOverrides = {};

const remembered = new WeakMap<ModelOverrides, LRUCache<string, TokenCounter>>();

function countersFor(overrides: ModelOverrides): LRUCache<string, TokenCounter> {
  const known = remembered.get(overrides);
  if (known !== undefined) return known;
  const counters = new LRUCache<string, TokenCounter>({ max: 200 });
  remembered.set(overrides, counters);
  return counters;
}

const encodings: readonly unknown[] = ['o200k_base', 'cl100k_base'] satisfies Encoding[];

function isTokenizer(value: Tokenizer | OwnCounter): value is Tokenizer {
  return typeof value === 'object' && 'encoding' in value;
}

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

async function createCounter(model: string | undefined, tokenizer: Tokenizer): Promise<TokenCounter> {
  const costs = costsOf(model);
  const exact = await loadExactCounter(tokenizer.encoding, costs);
  return tokenizer.estimate === undefined ? exact : estimateFrom(exact, tokenizer.estimate);
}
