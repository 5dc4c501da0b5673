/**
 * Describes models by name: tokenizer, image rule, wrapping, window, cache lifetime, and shortest cached prompt. Data, and the
 * one lookup over it; windows come from a maintained package (`catalog.ts`) and are listed here only if that has none. Keys are
 * name patterns as `namesOf` lists them.
 */
import { bestMatch, loadCatalog } from './catalog.ts';
import { type Costs, type ImageRule, USUAL_COSTS, type Estimate } from './token-counter.ts';
import type { Encoding, OwnCounter } from './own-counter.ts';
import type { Token } from './pack-vocabulary.ts';

/** The tokens of each encoding in the order of their ranks. */
export const rankData: Readonly<Record<Encoding, () => Promise<readonly Token[]>>> = {
  o200k_base: async () => (await import('gpt-tokenizer/bpeRanks/o200k_base')).default,
  cl100k_base: async () => (await import('gpt-tokenizer/bpeRanks/cl100k_base')).default,
};

/** How to count for a model: a public encoding, or an estimate from one. */
export type Tokenizer = { readonly encoding: Encoding; readonly estimate?: Estimate };

export type ModelInfo = {
  /** Tokens of prompt and reply together; undefined when unknown: then use `FALLBACK_WINDOW`. */
  readonly window: number | undefined;
  /** The longest prompt in tokens, if the provider limits it separately from the window. */
  readonly maxInput: number | undefined;
  /** The longest reply in tokens. */
  readonly maxOutput: number | undefined;
  readonly tokenizer: Tokenizer | OwnCounter;
  readonly costs: Costs;
  /** Milliseconds after which an unused prompt is certainly no longer cached, unless the client says otherwise. */
  readonly cacheKeptMs: number;
  /** Tokens of the shortest prompt that the provider caches; undefined when unknown. */
  readonly minCachedTokens: number | undefined;
};

/** A user's settings of a model. `tokenizer` may be a counter of their own: a function, or an object with one. */
export type ModelOverride = {
  /** Tokens of prompt and reply together. */
  readonly windowTokens?: number;
  /** Tokens of the longest prompt. */
  readonly maxInputTokens?: number;
  /** Tokens of the longest reply. */
  readonly maxOutputTokens?: number;
  readonly tokenizer?: Tokenizer | OwnCounter;
  readonly cacheKeptMs?: number;
};

/** By exact model name or `*` glob; an exact name wins, then the longest glob. */
export type ModelOverrides = Readonly<Record<string, ModelOverride>>;

/**
 * Assumed tokens of the window of an unknown model. Nearly every model served for agents since 2024 has at least this window. A
 * smaller value would fold conversations that fit; if it is too large, the provider's overflow error says so at once.
 */
export const FALLBACK_WINDOW = 128_000;

/** Returns what is known about a model. Imports the catalog on first use (about 30 ms); later calls are fast. */
export async function loadModelInfo(
  model: string | undefined,
  overrides: ModelOverrides = {},
): Promise<ModelInfo> {
  const catalog = await loadCatalog();
  const name = model ?? '';
  const said = bestMatch(name, overrides) ?? {};
  const known = bestMatch(name, limits) ?? {};
  const window = said.windowTokens ?? catalog.windowOf(name) ?? known.window;
  const reply = known.replyOnly;
  // A window set by the user is not divided by us.
  const split =
    said.windowTokens === undefined && window !== undefined && reply !== undefined && reply < window;
  return {
    window,
    maxInput: said.maxInputTokens ?? (split ? window - reply : undefined),
    maxOutput: said.maxOutputTokens ?? reply,
    tokenizer: said.tokenizer ?? tokenizerOf(model),
    costs: costsOf(model),
    cacheKeptMs: said.cacheKeptMs ?? bestMatch(name, cacheKeptMs) ?? unknownKeptMs,
    minCachedTokens: bestMatch(name, minCachedTokens),
  };
}

/** Returns how the model's tokens are counted, as far as the name says. */
export function tokenizerOf(model: string | undefined): Tokenizer {
  return bestMatch(model ?? '', tokenizers) ?? unknownTokenizer;
}

/** Returns what the model takes for images and wrapping, as far as the name says. */
export function costsOf(model: string | undefined): Costs {
  const name = model ?? '';
  return {
    image: bestMatch(name, images) ?? USUAL_COSTS.image,
    overhead: bestMatch(name, overheads) ?? USUAL_COSTS.overhead,
    toolsAs: bestMatch(name, toolsAs),
  };
}

/**
 * A margin, not a measurement: vocabularies of 128,000 entries and more are within some 10 % of o200k_base on text and code, but
 * those that split digits need more for tables.
 */
const unknownTokenizer: Tokenizer = { encoding: 'o200k_base', estimate: { factor: 1.2 } };

const o200k: Tokenizer = { encoding: 'o200k_base' };
const cl100k: Tokenizer = { encoding: 'cl100k_base' };

/**
 * Factor 1.18: 8,700 recorded prompt growths of generations 4.5 and 4.6 fit it with a median error of 8 % (bench/tokens.ts);
 * published measurements agree. 1.53 is the published factor from 4.7 on, which has a new vocabulary; unlisted generations are
 * assumed to be newer.
 */
const earlierClaude: Tokenizer = { encoding: 'o200k_base', estimate: { factor: 1.18 } };
const laterClaude: Tokenizer = { encoding: 'o200k_base', estimate: { factor: 1.53 } };
/** Measured against the open vocabulary of the same maker: with digits split, 1.04 leaves an error of at most 11 % either way. */
const gemini: Tokenizer = { encoding: 'o200k_base', estimate: { factor: 1.04, splitDigits: true } };

/** Names with `4-5` are also written `4.5`. */
const earlierClaudes = withDots([
  'claude-2*',
  'claude-3*',
  'claude-instant*',
  'claude-v*',
  'claude-*-4',
  'claude-*-4-0*',
  'claude-*-4-1',
  'claude-*-4-1-*',
  'claude-*-4-20*',
  'claude-*-4-5*',
  'claude-*-4-6*',
  'claude-4-opus*',
  'claude-4-sonnet*',
  'claude-4-1-*',
  'claude-4-5-*',
  'claude-4-6-*',
]);

const tokenizers: Readonly<Record<string, Tokenizer>> = {
  'gpt-*': o200k,
  'chatgpt-*': o200k,
  'codex-*': o200k,
  'computer-use*': o200k,
  'o1*': o200k,
  'o3*': o200k,
  'o4*': o200k,
  'gpt-3.5*': cl100k,
  'gpt-35*': cl100k,
  'gpt-4': cl100k,
  'gpt-4-*': cl100k,
  'text-embedding-*': cl100k,
  'claude-*': laterClaude,
  ...forAll(earlierClaudes, earlierClaude),
  'gemini-*': gemini,
  'gemma-*': gemini,
};

/** These models read their tools as a TypeScript namespace. Models of others that are served under the same API read JSON. */
const readersOfNamespaces = ['gpt-*', 'chatgpt-*', 'codex-*', 'computer-use*', 'o1*', 'o3*', 'o4*'];

/** The provider's vision guide, high detail: images of the size that agents send (screenshots) are seldom requested in low detail. */
const tiles = { rule: 'tiles', box: 2048, shortSide: 768, tile: 512 } as const;
const patches = { rule: 'patches', patch: 32 } as const;
const earlierArea: ImageRule = { rule: 'area', pixels: 750, longSide: 1568, max: 1600 };

const images: Readonly<Record<string, ImageRule>> = {
  'gpt-4o-mini*': { ...tiles, base: 2833, perTile: 5667 },
  'gpt-4.1-mini*': { ...patches, max: 1536, factor: 1.62 },
  'gpt-4.1-nano*': { ...patches, max: 1536, factor: 2.46 },
  'o1*': { ...tiles, base: 75, perTile: 150 },
  'o3*': { ...tiles, base: 75, perTile: 150 },
  'o4-mini*': { ...patches, max: 1536, factor: 1.72 },
  'gpt-5*': { ...patches, max: 2500, factor: 1.2 },
  'gpt-5': { ...tiles, base: 70, perTile: 140 },
  'gpt-5-*': { ...tiles, base: 70, perTile: 140 },
  'gpt-5.1*': { ...tiles, base: 70, perTile: 140 },
  'gpt-5-mini*': { ...patches, max: 1536, factor: 1.62 },
  'gpt-5-nano*': { ...patches, max: 1536, factor: 2.46 },
  'gpt-5.*-mini*': { ...patches, max: 1536, factor: 1.62 },
  'gpt-5.*-nano*': { ...patches, max: 1536, factor: 2.46 },
  'gpt-6*': { ...patches, max: 2500, factor: 1.2 },
  'claude-*': { rule: 'area', pixels: 750, longSide: 2576, max: 4784 },
  'gemini-*': { rule: 'flat', tokens: 1120 },
  'gemini-1*': { rule: 'crops', tile: 768, small: 384, perTile: 258 },
  'gemini-2*': { rule: 'crops', tile: 768, small: 384, perTile: 258 },
  ...forAll(earlierClaudes, earlierArea),
};

/**
 * `message` is charged for each message, each call and each result in it: see `count-conversation.ts`.
 *
 * - `tool` 8 of other models: `{"type":"function","function":…}` around a definition. Most open chat templates print it.
 * - `gpt-*` and the like, `tools` 12: the namespace around the functions (7) and what comes with it, from the prompts that
 *   "How to count tokens with tiktoken" (openai-cookbook) compares with the API: 101 tokens for one function with gpt-4o, 105 with gpt-4.
 * - `claude-*`, `message` 22: the best single figure for the recorded prompt growths, most of which are one call and its result (88 tokens).
 *   `tools` 346: the system prompt for tools, as documented (tool use, pricing). The documented count of 403 for one tool and one question
 *   comes out as 444.
 * - `gemini-*`, `tool` 3: documented counts (token counting, tools) are 22 for a question and 206 for it with four functions.
 */
const overheads: Readonly<Record<string, Costs['overhead']>> = {
  ...forAll(readersOfNamespaces, { ...USUAL_COSTS.overhead, tool: 0, tools: 12 }),
  'claude-*': { message: 22, tool: 0, tools: 346, request: 3 },
  'gemini-*': { ...USUAL_COSTS.overhead, tool: 3 },
};

const toolsAs: Readonly<Record<string, Costs['toolsAs']>> = forAll(readersOfNamespaces, 'namespace');

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** Used when the lifetime is unknown: too long only delays a fold, too short rewrites what is still cached. */
const unknownKeptMs = 24 * hourMs;

/** As documented; `gpt-*`: "always removed within one hour", later ones up to a day; `gemini-*`: "a few minutes", without a promise. */
const cacheKeptMs: Readonly<Record<string, number>> = {
  'claude-*': 5 * minuteMs,
  'gpt-*': hourMs,
  'o1*': hourMs,
  'o3*': hourMs,
  'o4*': hourMs,
  'gpt-5.5*': unknownKeptMs,
  'gpt-5.6*': unknownKeptMs,
  'gpt-6*': unknownKeptMs,
  'gemini-*': hourMs,
};

/**
 * The shortest prompts that providers cache, in tokens. If documentation and measurement differ (Sonnet 4.6: 1,024 and 2,048), or
 * documents differ for the models of a name, this is the larger value. Claude:
 * https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching#cache-limitations, names with `4-5` also as `4.5`. GPT:
 * https://developers.openai.com/api/docs/guides/prompt-caching, 1,024 for all models that cache. Gemini:
 * https://ai.google.dev/gemini-api/docs/caching, 2,048 for 2.5 and 4,096 from 3 on.
 */
const minCachedTokens: Readonly<Record<string, number>> = {
  ...forAll(withDots(['claude-opus-4-5*', 'claude-opus-4-6*', 'claude-haiku-4*']), 4_096),
  ...forAll(withDots(['claude-opus-4-7*', 'claude-sonnet-4-6*']), 2_048),
  'claude-haiku-5*': 1_024,
  'claude-*haiku*': 2_048,
  'claude-*': 1_024,
  'gpt-*': 1_024,
  'o1*': 1_024,
  'o3*': 1_024,
  'o4*': 1_024,
  'codex-*': 1_024,
  'gemini-*': 4_096,
  'gemini-2*': 2_048,
};

type Limits = {
  readonly window?: number;
  /** Tokens of the window that only a reply may use: the prompt must fit into the rest, however short the reply. */
  readonly replyOnly?: number;
};

const limits: Readonly<Record<string, Limits>> = {
  'gpt-5*': { window: 400_000, replyOnly: 128_000 },
  'gpt-6*': { window: 1_050_000, replyOnly: 128_000 },
  'gpt-4.5*': { window: 128_000 },
  'claude-*': { window: 200_000 },
  'gemini-*': { window: 1_000_000 },
};

function withDots(names: readonly string[]): readonly string[] {
  return names.flatMap((name) => [name, name.replace(/(\d)-(\d)/, '$1.$2')]);
}

function forAll<T>(keys: readonly string[], value: T): Readonly<Record<string, T>> {
  return Object.fromEntries(keys.map((key) => [key, value]));
}
