/** Chooses the token counter of a model: the user's own, else exact if the tokenizer is public, else an estimate. */
import { openFixed, type Cache } from '../caches.ts';
import {
  END,
  type PackedVocabulary,
  type Splitter,
  type TextCount,
  createTextCount,
  openVocabulary,
  partsOf,
} from './bpe.ts';
import { bestMatch, nameOf } from './catalog.ts';
import { type ModelOverrides, type Tokenizer, costsOf, rankData, tokenizerOf } from './models.ts';
import { completeCounter } from './complete-counter.ts';
import type { Encoding, OwnCounter } from './own-counter.ts';
import { type Costs, type TokenCounter, USUAL_COSTS, estimateFrom, imageTokens } from './token-counter.ts';

/**
 * Loads the counter of a model; the same object for the same model and overrides. Rank data is read the first time an encoding
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

const remembered = new WeakMap<ModelOverrides, Cache<string, TokenCounter>>();

function countersFor(overrides: ModelOverrides): Cache<string, TokenCounter> {
  const known = remembered.get(overrides);
  if (known !== undefined) return known;
  const counters = openFixed<string, TokenCounter>('token counters');
  remembered.set(overrides, counters);
  return counters;
}

function isTokenizer(value: Tokenizer | OwnCounter): value is Tokenizer {
  return typeof value === 'object' && 'encoding' in value;
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
 * Loads the counter of a public encoding. Its rank data is read on first use (about 100 ms), once per process. Lone surrogates
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
  const count = counts.get(encoding) ?? createTextCount(splitters[encoding], openVocabulary(vocabulary));
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

/** One per encoding, because each keeps a buffer and its newest pieces. */
const counts = new Map<Encoding, TextCount>();

const loaded = new Map<Encoding, Promise<PackedVocabulary>>();

/**
 * Loads the vocabulary of an encoding, once. It is looked up with `provideVocabularies`, else packed from its rank data. A load that
 * failed is tried again.
 */
export function loadVocabulary(encoding: Encoding): Promise<PackedVocabulary> {
  const known = loaded.get(encoding);
  if (known !== undefined) return known;
  const loading = provided(encoding)
    .catch(() => undefined)
    .then((found) => (found && partsOf(found) ? found : packed(encoding)));
  loaded.set(encoding, loading);
  loading.catch(() => loaded.delete(encoding));
  return loading;
}

async function packed(encoding: Encoding): Promise<PackedVocabulary> {
  const [{ packVocabulary }, tokens] = await Promise.all([
    import('./pack-vocabulary.ts'),
    rankData[encoding](),
  ]);
  return packVocabulary(tokens);
}

/** Returns the packed vocabulary of an encoding from a file or another thread; undefined where there is none. */
export type VocabularySource = (encoding: Encoding) => Promise<PackedVocabulary | undefined>;

let provided: VocabularySource = () => Promise.resolve(undefined);

/** Sets the place where this thread looks for packed vocabularies, before it loads the first one. */
export function provideVocabularies(source: VocabularySource): void {
  provided = source;
}

// Pieces of text, within which BPE merges. They are those of the official patterns of o200k_base and cl100k_base, but cut by hand: the
// patterns backtrack quadratically on long runs, while these scans look at each byte at most a few times. Character classes
// come from the JavaScript engine's Unicode tables, a page of 256 code points at a time, on first use. Pure. Bytes are valid
// UTF-8 with `END` after the last one. Comments quote the part of the pattern that they implement.

/** Classes are bits, so that a set of classes is one test. */
const UPPER = 1; // \p{Lu} \p{Lt}
const LOWER = 2; // \p{Ll}
const CASELESS = 4; // \p{Lm} \p{Lo}
const MARK = 8; // \p{M}
const NUMBER = 16; // \p{N}
const NEWLINE = 32; // \r \n
const BLANK = 64; // any other white space
const OTHER = 128;

const LETTER = UPPER | LOWER | CASELESS;
const UPPERISH = UPPER | CASELESS | MARK;
const LOWERISH = LOWER | CASELESS | MARK;
const SPACE = NEWLINE | BLANK;
const PUNCTUATION = MARK | OTHER;
const SPACE_BYTE = 0x20;
const SLASH = 0x2f;
const APOSTROPHE = 0x27;

/**
 * Returns the end of the piece that begins at `at`, as this pattern finds it:
 * `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
 * |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
 * |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
 */
export function splitO200k(bytes: Uint8Array, at: number): number {
  const end = asciiPiece(bytes, at);
  return end > at ? end : anyPiece(bytes, at);
}

/** Returns what `anyPiece` does, faster; or `at` for a piece that has other characters than ASCII, or may have. */
function asciiPiece(bytes: Uint8Array, at: number): number {
  const first = asciiClasses[bytes[at]!]!;
  let end = at;
  let kind = first;
  if (first & (BLANK | OTHER)) {
    kind = asciiClasses[bytes[++end]!]!;
    if (kind & NOT_ASCII) return at;
    if (!(kind & LETTER)) {
      if (first & BLANK && !(bytes[at] === SPACE_BYTE && kind & OTHER)) return spaces(bytes, at);
      while (kind & OTHER) kind = asciiClasses[bytes[++end]!]!;
      return kind & NOT_ASCII ? at : lineEnds(bytes, end, SLASH);
    }
  }
  if (kind & LETTER) {
    while (kind & UPPER) kind = asciiClasses[bytes[++end]!]!;
    while (kind & LOWER) kind = asciiClasses[bytes[++end]!]!;
    if (kind & NOT_ASCII) return at;
    return bytes[end] === APOSTROPHE ? contraction(bytes, end) : end;
  }
  if (kind & NEWLINE) return spaces(bytes, at);
  if (!(kind & NUMBER)) return at;
  for (let taken = 0; taken < 3 && kind & NUMBER; taken++) kind = asciiClasses[bytes[++end]!]!;
  return kind & NOT_ASCII ? at : end;
}

function anyPiece(bytes: Uint8Array, at: number): number {
  const kind = classAt(bytes, at);
  if (kind & LETTER) return contraction(bytes, casedWord(bytes, at, true));
  if (kind & NUMBER) return digits(bytes, at);
  if (kind & NEWLINE) return spaces(bytes, at);
  const after = at + widthOf(bytes[at]!);
  // A mark is a word by itself, and that alternative comes before a mark ahead of capitals.
  const word = casedWord(bytes, after, !(kind & MARK));
  if (word > after || kind & MARK) return contraction(bytes, word);
  const end = punctuation(bytes, at);
  return end > at ? lineEnds(bytes, end, SLASH) : spaces(bytes, at);
}

/**
 * Does the same with this pattern:
 * `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
 */
export function splitCl100k(bytes: Uint8Array, at: number): number {
  const shortened = contraction(bytes, at);
  if (shortened > at) return shortened;
  const kind = classAt(bytes, at);
  if (kind & LETTER) return run(bytes, at, LETTER);
  if (kind & NUMBER) return digits(bytes, at);
  if (kind & NEWLINE) return spaces(bytes, at);
  const after = at + widthOf(bytes[at]!);
  const word = run(bytes, after, LETTER);
  if (word > after) return word;
  const end = punctuation(bytes, at);
  return end > at ? lineEnds(bytes, end, undefined) : spaces(bytes, at);
}

/** Returns the first place from `at` on whose class is not in the set. */
function run(bytes: Uint8Array, at: number, set: number): number {
  let end = at;
  while (classAt(bytes, end) & set) end += widthOf(bytes[end]!);
  return end;
}

/**
 * `[upperish]*[lowerish]+`, else (where `capitals`) `[upperish]+`; `at` where neither matches. When no lower-case letter
 * follows, the pattern gives characters back until the last one that counts as lower case too.
 */
function casedWord(bytes: Uint8Array, at: number, capitals: boolean): number {
  let head = at;
  let lastBoth = at;
  for (let kind = classAt(bytes, head); kind & UPPERISH; kind = classAt(bytes, head)) {
    head += widthOf(bytes[head]!);
    if (kind & LOWERISH) lastBoth = head;
  }
  const tail = run(bytes, head, LOWERISH);
  if (tail > head) return tail;
  return lastBoth > at || !capitals ? lastBoth : head;
}

/** `\p{N}{1,3}` */
function digits(bytes: Uint8Array, at: number): number {
  let end = at;
  for (let taken = 0; taken < 3 && classAt(bytes, end) & NUMBER; taken++) end += widthOf(bytes[end]!);
  return end;
}

/** ` ?[^\s\p{L}\p{N}]+`; `at` where it does not match. */
function punctuation(bytes: Uint8Array, at: number): number {
  const start = bytes[at] === SPACE_BYTE ? at + 1 : at;
  const end = run(bytes, start, PUNCTUATION);
  return end > start ? end : at;
}

/** `[\r\n]*`, with one more byte allowed between. */
function lineEnds(bytes: Uint8Array, at: number, also: number | undefined): number {
  let end = at;
  while (bytes[end] === 0x0a || bytes[end] === 0x0d || bytes[end] === also) end++;
  return end;
}

/** `\s*[\r\n]+|\s+(?!\S)|\s+` at a white space: up to the last line end, else all but the blank before a word. */
function spaces(bytes: Uint8Array, at: number): number {
  let end = at;
  let last = at;
  let lineEnd = at;
  for (let kind = classAt(bytes, end); kind & SPACE; kind = classAt(bytes, end)) {
    last = end;
    end += widthOf(bytes[end]!);
    if (kind & NEWLINE) lineEnd = end;
  }
  if (lineEnd > at) return lineEnd;
  const atTextEnd = classAt(bytes, end) === 0;
  return atTextEnd || last === at ? end : last;
}

/** `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`: where it ends, or `at`. U+017F is an s to a pattern that ignores case. */
function contraction(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== APOSTROPHE) return at;
  const first = lowerCase(bytes[at + 1]!);
  if (first === 's' || first === 't' || first === 'm' || first === 'd') return at + 2;
  if (bytes[at + 1] === 0xc5 && bytes[at + 2] === 0xbf) return at + 3;
  if (first !== 'l' && first !== 'r' && first !== 'v') return at;
  return lowerCase(bytes[at + 2]!) === (first === 'l' ? 'l' : 'e') ? at + 3 : at;
}

function lowerCase(byte: number): string {
  return String.fromCharCode(byte | 0x20);
}

/** Returns the class of the character whose first byte is at `at`; 0 at the end of the text. */
function classAt(bytes: Uint8Array, at: number): number {
  const byte = bytes[at]!;
  if (byte < 0x80) return ascii[byte]!;
  return byte === END ? 0 : wideClassAt(bytes, at);
}

/** Returns the number of bytes of the character with this first byte. */
function widthOf(byte: number): number {
  if (byte < 0x80) return 1;
  if (byte < 0xe0) return 2;
  return byte < 0xf0 ? 3 : 4;
}

function wideClassAt(bytes: Uint8Array, at: number): number {
  const code = codePointAt(bytes, at);
  const page = pages[code >> 8] ?? readPage(code >> 8);
  return page[code & 0xff]!;
}

function codePointAt(bytes: Uint8Array, at: number): number {
  const lead = bytes[at]!;
  const second = bytes[at + 1]! & 0x3f;
  if (lead < 0xe0) return ((lead & 0x1f) << 6) | second;
  const third = bytes[at + 2]! & 0x3f;
  if (lead < 0xf0) return ((lead & 0x0f) << 12) | (second << 6) | third;
  return ((lead & 0x07) << 18) | (second << 12) | (third << 6) | (bytes[at + 3]! & 0x3f);
}

// White_Space and not \s: the tokenizers' own engine counts U+0085 as space and U+FEFF not; \s does the opposite.
const tests: readonly (readonly [RegExp, number])[] = [
  [/[\p{Lu}\p{Lt}]/u, UPPER],
  [/\p{Ll}/u, LOWER],
  [/[\p{Lm}\p{Lo}]/u, CASELESS],
  [/\p{M}/u, MARK],
  [/\p{N}/u, NUMBER],
  [/[\r\n]/u, NEWLINE],
  [/\p{White_Space}/u, BLANK],
];

function classOf(code: number): number {
  const character = String.fromCodePoint(code);
  return tests.find(([test]) => test.test(character))?.[1] ?? OTHER;
}

const pages: (Uint8Array | undefined)[] = [];

function readPage(index: number): Uint8Array {
  const page = Uint8Array.from({ length: 256 }, (_, offset) => classOf(index * 256 + offset));
  pages[index] = page;
  return page;
}

const ascii = readPage(0).subarray(0, 128);

/** No ASCII character is a mark, so in `asciiClasses` this bit is for the bytes of all other characters. */
const NOT_ASCII = MARK;
const asciiClasses = new Uint8Array(256).fill(NOT_ASCII);
asciiClasses.set(ascii);
asciiClasses[END] = 0;
