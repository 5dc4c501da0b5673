/**
 * Counts tokens exactly for the models whose tokenizer is public, in time linear in the text (n log n within one unbroken run).
 * Special tokens in a text are ordinary text, as they are to the provider. The rank data are one to two megabytes of source and
 * take about 100 ms to load, so they are imported dynamically on first use. Pure once loaded.
 */
import { createMerger, createVocabulary, type Vocabulary } from './bpe.ts';
import { END, splitCl100k, splitO200k, type Splitter } from './split.ts';
import { USUAL_COSTS, imageTokens, type Costs, type TokenCounter } from './token-counter.ts';
import { rankData, type Encoding } from './models.ts';

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
      const state: CountState = { at: 0, runEnd: 0, tokens: 0 };
      while (state.at < written) {
        step(bytes, written, state);
        yield;
      }
      return state.tokens;
    },
  };
}

/** The bytes counted so far, the end of the run that is being counted, and the tokens. */
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
