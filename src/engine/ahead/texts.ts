/**
 * Has texts of items and records written ahead of the fold that will need them. The fold is planned without being made: every text that its strategies
 * ask for is one that the fold is likely to use. This runs in the background, after the request was sent. Loaded only where a model writes texts.
 */
import type { OpenedRequest } from '../history.ts';
import { type Draft, runAll } from '../plan.ts';
import type { SummaryJob, TextsAhead } from '../types.ts';
import { LeporelloError, reasonOf } from '../../errors.ts';
import { type Summarizer, type WantedText, usableText } from '../../outline/summarizer.ts';
import { decodeRecord, encodeRecord } from '../../store/records.ts';
import { lastUser, turnStart } from '../../conversation/turns.ts';
import type { Protection, Strategy } from '../../strategies/strategy.ts';
import type { Demand } from '../../triggers/trigger.ts';

/** Texts of one job at most. The next request asks for the rest. */
const maxTexts = 256;
/** Texts that are written at the same time. */
const maxAtOnce = 8;
/** How long a text is kept, in milliseconds: the same results may be looked up again for the same question. */
const ttlMs = 7 * 24 * 60 * 60 * 1_000;

type TextsContext = {
  readonly texts: TextsAhead;
  readonly strategies: readonly Strategy[];
  readonly opened: Pick<OpenedRequest, 'memory' | 'input'>;
};

/** Plans the expected fold, and returns the job of writing the texts that it would use and that nobody has written. */
export async function textsJob(
  { texts, strategies, opened: { memory, input } }: TextsContext,
  start: Draft,
  demand: Demand,
): Promise<Pick<SummaryJob, 'claim' | 'write'>> {
  const { tenant } = memory;
  const { known, encryptedStore } = texts;
  const nameOf = (key: string) => `${tenant}/${key}`;
  const wanted = new Map<string, WantedText>();
  const written = (text: WantedText) => {
    const ready = known.get(nameOf(text.key));
    if (ready === undefined) wanted.set(text.key, text);
    return ready;
  };
  const protects = protectedThen(input);
  const planned = { ...input, written, protects, compressions: new Map(), isTooLate: () => false };
  await runAll(planned, start, demand, strategies);
  let mine: readonly WantedText[] = [];
  const count = (text: string) => input.counter.text(text);

  async function writeOne(wish: WantedText, summarizer: Summarizer, signal?: AbortSignal): Promise<number> {
    const { steps, guidance, form, aim, tokens, key } = wish;
    const budget = { aim, max: aim * 2 };
    const request = { steps, guidance, form, earlier: [], known: [], budget, count };
    const text = usableText(await summarizer.summarize(request, signal), tokens, count);
    if (text === undefined)
      throw new LeporelloError(
        'summary-failed',
        `${summarizer.name} wrote no shorter text; an extract is used instead.`,
      );
    known.set(nameOf(key), text);
    await encryptedStore.putSealed(tenant, [keyOf(wish)], encodeRecord({ text }), ttlMs);
    return count(text);
  }

  return {
    async claim(forMs) {
      const wishes = [...wanted.values()].slice(0, maxTexts);
      if (wishes.length === 0) return false;
      const records = await encryptedStore.getSealedMany(
        tenant,
        wishes.flatMap((wish) => [keyOf(wish), leaseOf(wish)]),
      );
      mine = wishes.filter((wish, at) => {
        const record = records[2 * at];
        const stored = record && (decodeRecord(record, 'A text') as { readonly text: string } | undefined);
        if (stored) known.set(nameOf(wish.key), stored.text);
        return !stored && !records[2 * at + 1];
      });
      if (mine.length === 0) return false;
      const leases = mine.map(leaseOf);
      const content = encodeRecord({});
      const inTheWay = await encryptedStore.keep(tenant, [], {
        keys: leases,
        content,
        ttlMs: forMs,
        unless: leases,
      });
      return inTheWay === undefined;
    },
    async write(summarizer, signal) {
      const left = [...mine];
      let tokens = 0;
      let failure: Error | undefined;
      const writeSome = async (): Promise<void> => {
        for (let wish = left.shift(); wish !== undefined && failure === undefined; wish = left.shift()) {
          try {
            tokens += await writeOne(wish, summarizer, signal);
          } catch (error) {
            failure ??=
              error instanceof Error ? error : new LeporelloError('summary-failed', reasonOf(error));
          }
        }
      };
      await Promise.all(Array.from({ length: maxAtOnce }, writeSome));
      if (failure !== undefined && tokens === 0) throw failure;
      return tokens;
    },
  };
}

/** Returns what is protected when the fold is made: the newest results are old by then, unless the user speaks. */
function protectedThen({ conversation, protects }: OpenedRequest['input']): Protection {
  const stays = new Set([turnStart(conversation), lastUser(conversation)]);
  const isSystem = (index: number) => conversation.messages[index]?.role === 'system';
  return { ...protects, message: (index) => stays.has(index) || isSystem(index) };
}

function keyOf({ key }: WantedText): string {
  return `text/${key}`;
}

function leaseOf({ key }: WantedText): string {
  return `writing/text/${key}`;
}
