/**
 * Texts in a summarizer's words: each asked for once, a few at a time, and kept by text and question, so that the same one is never written
 * twice, in this process or another. What is not there in time is there the next time.
 */
import { sha256 } from '../store/digest.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import { decodeRecord, encodeRecord } from '../store/versioned-record.ts';
import { looksFailed, type Summarizer, type SummaryStep } from '../outline/summarizer.ts';

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
