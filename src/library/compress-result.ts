/**
 * Compresses a tool result before it enters a conversation: a list is shortened item by item, the least relevant first. It is for agent loops
 * that know how many more results they expect. The items keep their own words, or get a summarizer's if these are ready in time. The original
 * is stored.
 */
import { itemsOf, rankItems } from '../arrival/items/items.ts';
import { type ListItem, type TextShortener, shortenerFor } from '../arrival/items/shorten.ts';
import { maxTimerMs } from '../checks.ts';
import { withResolvers } from '../es2024.ts';
import { type Summarizer, itemRequest, usableText } from '../outline/summarizer.ts';
import { type Compression, compressionOf } from '../receipts/receipt.ts';
import { type EncryptedStore, sha256 } from '../store/encrypted-store.ts';
import { decodeRecord, encodeRecord } from '../store/records.ts';
import { isSearch } from '../outline/files-shown.ts';
import { itemsNote } from '../strategies/compress-items.ts';

export type ResultRequest = {
  readonly text: string;
  /** The user's question. Items that answer it are shortened last. */
  readonly question?: string;
  /** The name of the tool. The results of a search are taken to be sorted, best first. */
  readonly tool?: string;
  /** The tokens left for all expected results, and their number, including this one. Each gets an equal part. */
  readonly budget: { readonly tokens: number; readonly results: number };
  /** Rewrites items in fewer words. Default: some of their sentences are left out. */
  readonly summarizer?: Summarizer;
  /** Milliseconds to wait for the summarizer. Later answers are stored for the next time. Default 10,000; 0 does not wait. */
  readonly waitMs?: number;
  /** Default `local`. */
  readonly tenant?: string;
};

export type CompressedResult = {
  /** The text for the model. */
  readonly text: string;
  /** The id of the original; undefined when the text is unchanged. */
  readonly memory: string | undefined;
  readonly compression: Compression | undefined;
};

type CompressionDeps = {
  readonly encryptedStore: Pick<
    EncryptedStore,
    'keep' | 'idOf' | 'putSealed' | 'getSealedMany' | 'renewSealed'
  >;
  readonly count: (text: string) => number;
  readonly recallTool: string;
  readonly pendingWords: PendingWords;
  /** Milliseconds after which the summarizer is given up for a text. Default 120,000. */
  readonly maxWritingMs?: number;
};

/** The share of an item that is left: first as in requests, then less if the result is still too large. */
const itemShares = [0.3, 0.15, 0.08] as const;

/** Compresses a result that takes more than its part of the budget. Rejects with `store-failed` when the original cannot be stored. */
export async function compressResult(
  request: ResultRequest,
  deps: CompressionDeps,
): Promise<CompressedResult> {
  const { text, budget, tenant = 'local' } = request;
  const { encryptedStore, count, recallTool, pendingWords, maxWritingMs = 120_000 } = deps;
  const room = Math.max(0, budget.tokens) / Math.max(1, budget.results);
  const before = count(text);
  const list = before > room ? itemsOf(text) : undefined;
  const unchanged = { text, memory: undefined, compression: undefined };
  if (!list) return unchanged;

  const { question = '', tool = '' } = request;
  const { leastFirst, terms } = rankItems(list.items, question, isSearch(tool));
  const original = new TextEncoder().encode(JSON.stringify(text));
  const memory = encryptedStore.idOf(tenant, original);
  const own = shortenerFor(terms);
  const fitted = (shortenText: TextShortener, isReworded: boolean) =>
    fitItems(list.items, { leastFirst, shares: itemShares, shortenText }, (smaller) => {
      const note = itemsNote({ items: smaller.size, of: list.items.length, memory, recallTool, isReworded });
      const shown = list.write(smaller, note);
      const after = count(shown);
      return { smaller, shown, after, fits: after <= room };
    });

  let fit = fitted(own, false);
  let by: Compression['by'] = 'extractive';
  let problem: string | undefined;
  const { summarizer, waitMs = 10_000 } = request;
  if (summarizer && fit.smaller.size > 0) {
    const texts = [...fit.smaller.keys()].flatMap((item) => list.items[item]!.texts);
    const options = {
      encryptedStore,
      tenant,
      summarizer,
      question,
      share: itemShares[0],
      count,
      pendingWords,
      maxWritingMs,
    };
    const words = await itemWords(texts, options, waitMs);
    const answered = texts.filter((one) => words.has(one)).length;
    const shortenText: TextShortener = (one, maxLength) => {
      const said = words.get(one) ?? one;
      // Summarizers are asked by tokens, so slightly longer words are accepted rather than cut.
      return said !== one && said.length <= maxLength * 1.5 ? said : own(said, maxLength);
    };
    if (answered < texts.length) problem = 'the summarizer did not answer every item in time';
    const reworded = answered > 0 ? fitted(shortenText, true) : undefined;
    if (reworded && (reworded.fits || !fit.fits)) {
      fit = reworded;
      by = answered === texts.length ? 'summarizer' : 'both';
    } else if (reworded) problem = 'the words of the summarizer would not fit';
  }
  const { smaller, shown, after } = fit;
  if (smaller.size === 0 || after >= before) return unchanged;
  await encryptedStore.keep(tenant, [{ id: memory, original }]);
  const compression = compressionOf({
    id: memory,
    level: 'items',
    tokensBefore: before,
    tokensAfter: after,
    target: before / Math.max(1, room),
    by,
    problem,
  });
  return { text: shown, memory, compression };
}

// Items in a summarizer's words. Each is requested once, a few at a time, and stored by text and question, so that none is written twice. Words that
// are not ready in time are used the next time.

type ItemWordsOptions = {
  readonly encryptedStore: Pick<EncryptedStore, 'putSealed' | 'getSealedMany' | 'renewSealed'>;
  readonly tenant: string;
  readonly summarizer: Summarizer;
  /** The question that the texts answer; empty when it is unknown. */
  readonly question: string;
  /** The share of a text's tokens to aim at. */
  readonly share: number;
  readonly count: (text: string) => number;
  /** Words that are being written, so that none are requested twice. */
  readonly pendingWords: PendingWords;
  readonly maxWritingMs: number;
};

/** Words that are being written, by their key. */
export type PendingWords = Map<string, Promise<string | undefined>>;

/** The largest number of texts that are requested at the same time. */
const maxConcurrent = 8;
const ttlMs = 30 * 24 * 60 * 60 * 1_000;

/** Returns the words that are ready after `waitMs`, by text. Never rejects: texts that were not answered in time, or badly, are missing. */
async function itemWords(
  texts: readonly string[],
  options: ItemWordsOptions,
  waitMs: number,
): Promise<ReadonlyMap<string, string>> {
  const words = new Map<string, string>();
  const wanted = [...new Set(texts)];
  const records = await options.encryptedStore
    .getSealedMany(
      options.tenant,
      wanted.map((text) => keyOf(text, options)),
    )
    .catch(() => []);
  for (const [at, text] of wanted.entries()) {
    const record = records[at];
    const stored = record && (decodeRecord(record, 'An item') as { readonly words: string } | undefined);
    if (stored) words.set(text, stored.words);
  }
  for (const text of words.keys())
    options.encryptedStore.renewSealed(options.tenant, keyOf(text, options), ttlMs);
  const missing = wanted.filter((text) => !words.has(text));
  const writing = writeAll(missing, options, (text, said) => words.set(text, said));
  const late = withResolvers<void>();
  const timer = setTimeout(() => late.resolve(), Math.min(waitMs, maxTimerMs));
  await Promise.race([writing, late.promise]);
  clearTimeout(timer);
  // Words that are ready later are stored, but are not part of this answer.
  return new Map(words);
}

async function writeAll(
  texts: readonly string[],
  options: ItemWordsOptions,
  done: (text: string, words: string) => void,
): Promise<void> {
  const left = [...texts];
  const write = async (): Promise<void> => {
    for (let text = left.shift(); text !== undefined; text = left.shift()) {
      const key = `${options.tenant}/${keyOf(text, options)}`;
      const flight = options.pendingWords.get(key) ?? writeOne(text, options);
      options.pendingWords.set(key, flight);
      const words = await flight;
      options.pendingWords.delete(key);
      if (words !== undefined) done(text, words);
    }
  };
  await Promise.all(Array.from({ length: Math.min(maxConcurrent, left.length) }, write));
}

/** Writes the words for one text and stores them. Never rejects. */
async function writeOne(text: string, options: ItemWordsOptions): Promise<string | undefined> {
  const words = await wordsOf(text, options);
  if (words === undefined) return undefined;
  const content = encodeRecord({ words });
  const { encryptedStore, tenant } = options;
  await encryptedStore.putSealed(tenant, [keyOf(text, options)], content, ttlMs).catch(() => undefined);
  return words;
}

/** Asks the summarizer for one text. Undefined when the answer cannot replace the text. */
async function wordsOf(text: string, options: ItemWordsOptions): Promise<string | undefined> {
  const { summarizer, question, share, count, maxWritingMs } = options;
  const before = count(text);
  const aim = Math.max(30, Math.floor(before * share));
  const request = {
    ...itemRequest(text, question),
    earlier: [],
    known: [],
    budget: { aim, max: aim * 2 },
    count,
  };
  const signal = AbortSignal.timeout(maxWritingMs);
  // A summarizer may ignore the signal.
  const late = withResolvers<undefined>();
  signal.addEventListener('abort', () => late.resolve(undefined));
  try {
    const said: unknown = await Promise.race([summarizer.summarize(request, signal), late.promise]);
    return usableText(said, before, count);
  } catch {
    return undefined;
  }
}

function keyOf(text: string, { summarizer, question, share }: ItemWordsOptions): string {
  return `item/${sha256(new TextEncoder().encode(JSON.stringify([summarizer.name, question, share, text])))}`;
}

// Shortens items until the whole list fits.

type ShorteningOrder = {
  /** The indexes of the items, in the order in which they are shortened. */
  readonly leastFirst: readonly number[];
  /** The share of an item that may be left. All items are shortened to one share before any is shortened to the next. */
  readonly shares: readonly number[];
  readonly shortenText: TextShortener;
};

/** Shortens as few items as possible until the result of `make` fits; or all, as far as possible. `make` gets the shorter items by their index. */
function fitItems<Made extends { readonly fits: boolean }>(
  items: readonly ListItem[],
  { leastFirst, shares, shortenText }: ShorteningOrder,
  make: (smaller: ReadonlyMap<number, string>) => Made,
): Made {
  let smaller: ReadonlyMap<number, string> = new Map();
  for (const share of shares) {
    const shorter = leastFirst.flatMap((item): readonly (readonly [number, string])[] => {
      const short = items[item]!.shorter(share, shortenText);
      return short === undefined ? [] : [[item, short]];
    });
    const before = smaller;
    const first = (count: number) => new Map([...before, ...shorter.slice(0, count)]);
    smaller = first(shorter.length);
    if (make(smaller).fits) return smallestFitting(shorter.length, (count) => make(first(count)));
  }
  return make(smaller);
}

/** Finds, by binary search, the smallest number of items (at least one) with which the result fits. The result of all of them does. */
function smallestFitting<Made extends { readonly fits: boolean }>(
  all: number,
  make: (count: number) => Made,
): Made {
  let min = Math.min(1, all);
  let max = all;
  while (min < max) {
    const middle = Math.floor((min + max) / 2);
    if (make(middle).fits) max = middle;
    else min = middle + 1;
  }
  return make(max);
}
