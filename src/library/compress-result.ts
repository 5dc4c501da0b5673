/**
 * A tool result made small enough before it goes into a conversation, item by item, least relevant first: for an agent loop that knows how
 * many more results it expects. The words are the result's own, or a summarizer's where those are there in time. The original is kept.
 */
import { itemsOf, rankItems } from '../arrival/items/items.ts';
import { type ListItem, type TextShortener, shortenerFor } from '../arrival/items/shorten.ts';
import { type Summarizer, type SummaryStep, looksFailed } from '../outline/summarizer.ts';
import { type Compression, compressionOf } from '../receipts/compression.ts';
import { sha256 } from '../store/ids.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import { decodeRecord, encodeRecord } from '../store/versioned-record.ts';
import { itemsNote } from '../strategies/lib/stub.ts';
import { isSearch } from '../strategies/lib/tool-calls.ts';

export type ResultRequest = {
  readonly text: string;
  /** What the user asked: what answers it goes last. */
  readonly question?: string;
  /** The tool that gave it: what a search found comes best first. */
  readonly tool?: string;
  /** Tokens that are left for all results to come, and how many of them are expected, this one among them: it gets its part. */
  readonly budget: { readonly tokens: number; readonly results: number };
  /** Writes the items shorter in words of its own. Default: sentences of theirs are left out. */
  readonly summarizer?: Summarizer;
  /** Milliseconds to wait for the summarizer; what comes later is kept for the next time. Default 10,000; 0 waits for nothing. */
  readonly waitMs?: number;
  /** Default `local`. */
  readonly tenant?: string;
};

export type CompressedResult = {
  /** To be shown to the model. */
  readonly text: string;
  /** Brings the original back; undefined where it stands as it was. */
  readonly memory: string | undefined;
  readonly compression: Compression | undefined;
};

type Parts = {
  readonly encryptedStore: Pick<
    EncryptedStore,
    'keep' | 'idOf' | 'putSealed' | 'getSealedMany' | 'renewSealed'
  >;
  readonly count: (text: string) => number;
  readonly recallTool: string;
  readonly flights: Flights;
};

/** What is left of an item: as in requests, and harder where that is not enough for the results to come. */
const shares = [0.3, 0.15, 0.08] as const;

/** Rejects with `store-failed` where the original cannot be kept. */
export async function compressResult(request: ResultRequest, parts: Parts): Promise<CompressedResult> {
  const { text, budget, tenant = 'local' } = request;
  const { encryptedStore, count, recallTool, flights } = parts;
  const room = Math.max(0, budget.tokens) / Math.max(1, budget.results);
  const before = count(text);
  const list = before > room ? itemsOf(text) : undefined;
  const as = { text, memory: undefined, compression: undefined };
  if (!list) return as;

  const { question = '', tool = '' } = request;
  const { leastFirst, terms } = rankItems(list.items, question, isSearch(tool));
  const original = new TextEncoder().encode(JSON.stringify(text));
  const memory = encryptedStore.idOf(tenant, original);
  const own = shortenerFor(terms);
  const fitted = (shortenText: TextShortener, isReworded: boolean) =>
    fitItems(list.items, { leastFirst, shares, shortenText }, (smaller) => {
      const note = itemsNote({ items: smaller.size, of: list.items.length, memory, recallTool, isReworded });
      const shown = `${list.write(smaller).trimEnd()}\n${note}`;
      const after = count(shown);
      return { smaller, shown, after, fits: after <= room };
    });

  let fit = fitted(own, false);
  let by: Compression['by'] = 'extractive';
  let problem: string | undefined;
  const { summarizer, waitMs = 10_000 } = request;
  if (summarizer && fit.smaller.size > 0) {
    const texts = [...fit.smaller.keys()].flatMap((item) => list.items[item]!.texts);
    const options = { encryptedStore, tenant, summarizer, question, share: shares[0], count, flights };
    const words = await itemWords(texts, options, waitMs);
    const answered = texts.filter((one) => words.has(one)).length;
    const shortenText: TextShortener = (one, most) => {
      const said = words.get(one) ?? one;
      // Words are asked for by tokens: a little more than was wanted is better than a cut.
      return said !== one && said.length <= most * 1.5 ? said : own(said, most);
    };
    if (answered < texts.length) problem = 'not all words were there in time';
    const reworded = answered > 0 ? fitted(shortenText, true) : undefined;
    if (reworded && (reworded.fits || !fit.fits)) {
      fit = reworded;
      by = answered === texts.length ? 'summarizer' : 'both';
    } else if (reworded) problem = 'in other words it would not fit';
  }
  const { smaller, shown, after } = fit;
  if (smaller.size === 0 || after >= before) return as;
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

// Items in a summarizer's words. Each is asked for once, a few at a time, and stored by text and question, so that none is written twice. Words that are
// not ready in time are used the next time.

export type ItemWordsOptions = {
  readonly encryptedStore: Pick<EncryptedStore, 'putSealed' | 'getSealedMany' | 'renewSealed'>;
  readonly tenant: string;
  readonly summarizer: Summarizer;
  /** What the texts were asked for; empty where nobody knows. */
  readonly question: string;
  /** Of a text's tokens. */
  readonly share: number;
  readonly count: (text: string) => number;
  /** Those that are being written, by their key: nobody asks for one a second time. */
  readonly flights: Flights;
};

export type Flights = Map<string, Promise<string | undefined>>;

/** Texts asked for at once. */
const mostAtOnce = 8;
const ttlMs = 30 * 24 * 60 * 60 * 1_000;
/** Milliseconds after which one that nobody waits for any more is given up. */
const longestMs = 120_000;
/** A step of a transcript is cut from some length on: longer texts are several. */
const stepLength = 7_500;

/** The words there are after `waitMs`, by text. Never rejects: a text without words was not answered in time, or badly. */
export async function itemWords(
  texts: readonly string[],
  options: ItemWordsOptions,
  waitMs: number,
): Promise<ReadonlyMap<string, string>> {
  const words = new Map<string, string>();
  const wanted = [...new Set(texts)];
  const kept = await options.encryptedStore
    .getSealedMany(
      options.tenant,
      wanted.map((text) => keyOf(text, options)),
    )
    .catch(() => []);
  for (const [at, text] of wanted.entries()) {
    const record = kept[at];
    const known = record && (decodeRecord(record, 'An item') as { readonly words: string } | undefined);
    if (known) words.set(text, known.words);
  }
  for (const text of words.keys())
    options.encryptedStore.renewSealed(options.tenant, keyOf(text, options), ttlMs);
  const missing = wanted.filter((text) => !words.has(text));
  const writing = writeAll(missing, options, (text, said) => words.set(text, said));
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(() => late.resolve(), waitMs);
  await Promise.race([writing, late.promise]);
  clearTimeout(timer);
  // Those that come later are kept, and are no part of this answer.
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
      const flight = options.flights.get(key) ?? writeOne(text, options);
      options.flights.set(key, flight);
      const words = await flight;
      options.flights.delete(key);
      if (words !== undefined) done(text, words);
    }
  };
  await Promise.all(Array.from({ length: Math.min(mostAtOnce, left.length) }, write));
}

/** Kept before it is given. Never rejects. */
async function writeOne(text: string, options: ItemWordsOptions): Promise<string | undefined> {
  const words = await wordsOf(text, options);
  if (words === undefined) return undefined;
  const content = encodeRecord({ words });
  const { encryptedStore, tenant } = options;
  await encryptedStore.putSealed(tenant, [keyOf(text, options)], content, ttlMs).catch(() => undefined);
  return words;
}

/** Undefined for what cannot stand for the text. */
async function wordsOf(text: string, options: ItemWordsOptions): Promise<string | undefined> {
  const { summarizer, question, share, count } = options;
  const before = count(text);
  const aim = Math.max(30, Math.floor(before * share));
  try {
    const said: unknown = await summarizer.summarize(
      {
        steps: stepsOf(text),
        earlier: [],
        known: [],
        budget: { aim, max: aim * 2 },
        count,
        guidance: guidanceFor(question),
      },
      AbortSignal.timeout(longestMs),
    );
    if (typeof said !== 'string') return undefined;
    const words = said.trim();
    return words === '' || looksFailed(words) || count(words) >= before ? undefined : words;
  } catch {
    return undefined;
  }
}

function stepsOf(text: string): readonly SummaryStep[] {
  const pieces: SummaryStep[] = [];
  for (let at = 0; at < text.length; at += stepLength)
    pieces.push({ type: 'said', by: 'assistant', text: text.slice(at, at + stepLength).toWellFormed() });
  return pieces;
}

function guidanceFor(question: string): string {
  const asked = question.trim() === '' ? '' : ` It was looked up for this: ${JSON.stringify(question)}.`;
  return (
    `The transcript is one item of a tool's result, not a conversation.${asked} Keep what answers that; names, numbers, dates and quotations word for ` +
    'word. Plain sentences, no list, no introduction.'
  );
}

function keyOf(text: string, { summarizer, question, share }: ItemWordsOptions): string {
  return `item/${sha256(new TextEncoder().encode(JSON.stringify([summarizer.name, question, share, text])))}`;
}

// Shortening of items, until the whole list fits.

type Shortening = {
  /** Indexes of items, in the order in which they are made shorter. */
  readonly leastFirst: readonly number[];
  /** What may be left of an item; all are made shorter by one before any is by the next. */
  readonly shares: readonly number[];
  readonly shortenText: TextShortener;
};

/** What `make` makes of the shorter items by their indexes: of the fewest with which it fits, or of all, as short as they get. */
export function fitItems<Made extends { readonly fits: boolean }>(
  items: readonly ListItem[],
  { leastFirst, shares, shortenText }: Shortening,
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
    if (make(smaller).fits) return fewest(shorter.length, (count) => make(first(count)));
  }
  return make(smaller);
}

/** By halves, and one at least; what is made of all fits. */
function fewest<Made extends { readonly fits: boolean }>(all: number, make: (count: number) => Made): Made {
  let least = Math.min(1, all);
  let most = all;
  while (least < most) {
    const middle = Math.floor((least + most) / 2);
    if (make(middle).fits) most = middle;
    else least = middle + 1;
  }
  return make(most);
}
