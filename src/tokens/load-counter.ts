/** Chooses the token counter of a model: the user's own, else exact if the tokenizer is public, else an estimate. */
import { LRUCache } from 'lru-cache';
import { type Vocabulary, createMerger, createVocabulary } from './bpe.ts';
import { bestMatch, nameOf } from './catalog.ts';
import {
  type Encoding,
  type ModelOverrides,
  type Tokenizer,
  costsOf,
  rankData,
  tokenizerOf,
} from './models.ts';
import { type OwnCounter, completeCounter, ownCounterWords, whyNoCounter } from './own-counter.ts';
import { END, type Splitter, splitCl100k, splitO200k } from './split.ts';
import { type Costs, type TokenCounter, USUAL_COSTS, estimateFrom, imageTokens } from './token-counter.ts';

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

// Exact counts for the models whose tokenizer is public, in time linear in the text. A run of more than 16 kB without a break is cut, and
// each cut changes the count by a few tokens; what people and programs write has breaks. Special tokens
// in a text are ordinary text, as they are to the provider. The rank data are one to two megabytes of source and take about
// 100 ms to load, so they are imported dynamically on first use.

/**
 * The counter of a public encoding. Loads its rank data on first use (about 100 ms), once per process. Lone surrogates
 * count as U+FFFD, which is what they are sent as.
 *
 * @example
 * const counter = await loadExactCounter('o200k_base');
 * counter.count('Keep every page.'); // 4
 */
export async function loadExactCounter(
  encoding: Encoding,
  costs: Costs = USUAL_COSTS,
): Promise<TokenCounter> {
  const vocabulary = await loadVocabulary(encoding);
  const count = counts.get(encoding) ?? createCount(splitters[encoding], vocabulary);
  counts.set(encoding, count);
  return {
    name: encoding,
    exact: true,
    ...count,
    image: (size) => imageTokens(costs.image, size),
    overhead: costs.overhead,
    toolsAs: costs.toolsAs,
  };
}

const splitters: Readonly<Record<Encoding, Splitter>> = { o200k_base: splitO200k, cl100k_base: splitCl100k };

/** One per encoding, because each keeps a buffer. */
const counts = new Map<Encoding, Count>();

type Count = Required<Pick<TokenCounter, 'count' | 'countInSteps'>>;

/** Bytes of the buffer that is kept from text to text; longer texts get one of their own. */
const KEPT_BYTES = 98_304;

function createCount(split: Splitter, vocabulary: Vocabulary): Count {
  const encoder = new TextEncoder();
  const merger = createMerger(vocabulary);
  const kept = new Uint8Array(KEPT_BYTES);
  /** Counts the next `STEP_BYTES` or a little more. A long run without a break is cut into pieces. */
  function step(bytes: Uint8Array, written: number, state: CountState): void {
    const until = Math.min(written, state.at + STEP_BYTES);
    while (state.at < until) {
      if (state.at >= state.runEnd) state.runEnd = split(bytes, state.at);
      const end = Math.min(state.runEnd, state.at + MAX_RUN_BYTES);
      state.tokens += merger.count(bytes, state.at, end);
      state.at = end;
    }
  }
  /** Encodes a text into a buffer of `room` bytes: a UTF-16 unit takes at most three, and `END` one more. */
  function encoded(text: string, bytes: Uint8Array): number {
    const { written } = encoder.encodeInto(text, bytes);
    bytes[written] = END;
    return written;
  }
  return {
    count(text) {
      const room = text.length * 3 + 1;
      const bytes = room <= kept.length ? kept : new Uint8Array(room);
      const written = encoded(text, bytes);
      const state: CountState = { at: 0, runEnd: 0, tokens: 0 };
      while (state.at < written) step(bytes, written, state);
      return state.tokens;
    },
    *countInSteps(text) {
      // The kept buffer may be used by others between two steps.
      const bytes = new Uint8Array(text.length * 3 + 1);
      const written = encoded(text, bytes);
      yield;
      const state: CountState = { at: 0, runEnd: 0, tokens: 0 };
      while (state.at < written) {
        step(bytes, written, state);
        yield;
      }
      return state.tokens;
    },
  };
}

/** Holds the bytes counted so far, the end of the run that is being counted, and the tokens. */
type CountState = { at: number; runEnd: number; tokens: number };

/** Bytes that are counted before a caller may pause. */
const STEP_BYTES = 8_192;

/** Bytes of a run without a break that are merged at once: merging takes n log n, and a run this long is not text. */
const MAX_RUN_BYTES = 16_384;

const loaded = new Map<Encoding, Promise<Vocabulary>>();

/** Loads the vocabulary of an encoding. A load that failed is tried again. */
function loadVocabulary(encoding: Encoding): Promise<Vocabulary> {
  const known = loaded.get(encoding);
  if (known !== undefined) return known;
  const loading = rankData[encoding]().then(createVocabulary);
  loaded.set(encoding, loading);
  loading.catch(() => loaded.delete(encoding));
  return loading;
}
