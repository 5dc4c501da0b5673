/**
 * A tool result made small enough before it goes into a conversation, item by item, least relevant first: for an agent loop that knows how
 * many more results it expects. The words are the result's own, or a summarizer's where those are there in time. The original is kept.
 */
import { type Say, sayBy } from '../arrival/items/shorten.ts';
import { itemsOf, rankItems } from '../arrival/items/items.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import { type Compression, compressionOf } from '../receipts/compression.ts';
import { itemsNote } from '../strategies/lib/stub.ts';
import { isSearch } from '../strategies/lib/tool-calls.ts';
import type { Summarizer } from '../outline/summarizer.ts';
import { fitItems } from './fit-items.ts';
import { type Flights, itemWords } from './item-words.ts';

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
  const own = sayBy(terms);
  const fitted = (say: Say, isReworded: boolean) =>
    fitItems(list.items, { leastFirst, shares, say }, (smaller) => {
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
    const say: Say = (one, most) => {
      const said = words.get(one) ?? one;
      // Words are asked for by tokens: a little more than was wanted is better than a cut.
      return said !== one && said.length <= most * 1.5 ? said : own(said, most);
    };
    if (answered < texts.length) problem = 'not all words were there in time';
    const reworded = answered > 0 ? fitted(say, true) : undefined;
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
