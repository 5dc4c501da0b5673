/** Chooses the token counter of a model: exact where its tokenizer is public, else an estimate, else the user's own. */
import { LRUCache } from 'lru-cache';
import { estimateFrom } from './estimate.ts';
import { loadExactCounter } from './exact.ts';
import { bestMatch, nameOf } from './model-names.ts';
import { costsOf, type ModelOverrides, type Tokenizer, tokenizerOf } from './models.ts';
import type { TokenCounter } from './token-counter.ts';

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
  // Also the key: bounded, whatever a client calls its model.
  const name = nameOf(model ?? '') ?? '';
  const counters = countersFor(overrides);
  const known = counters.get(name);
  if (known !== undefined) return known;
  const tokenizer = bestMatch(name, overrides)?.tokenizer ?? tokenizerOf(model);
  const counter = isCounter(tokenizer) ? tokenizer : await createCounter(model, tokenizer);
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

function isCounter(tokenizer: Tokenizer | TokenCounter): tokenizer is TokenCounter {
  return 'count' in tokenizer;
}

async function createCounter(model: string | undefined, tokenizer: Tokenizer): Promise<TokenCounter> {
  const costs = costsOf(model);
  const exact = await loadExactCounter(tokenizer.encoding, costs);
  return tokenizer.estimate === undefined ? exact : estimateFrom(exact, tokenizer.estimate);
}
