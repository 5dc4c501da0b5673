/**
 * Keeps what experiments have counted: sums, counts and verdicts, no content and no names. Each gateway writes records of its own, in blocks, so that
 * gateways on one store never overwrite each other; a reader adds them up. In memory are the blocks in use, and the place of each record.
 */
import { openFixed } from '../caches.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import { decodeRecord, encodeRecord } from '../store/records.ts';
import { type OutcomeCounts, addedCounts } from './outcomes.ts';

/** Holds the sums of a conversation, or of all conversations of a session, since its arms parted. */
export type TrialRecord = {
  readonly unit: string;
  readonly isControl: boolean;
  /** The experiment that it belongs to: a change of the settings or of the model begins another. */
  readonly era: TrialEra;
  /** Milliseconds since the epoch. */
  readonly firstAt: number;
  readonly lastAt: number;
  readonly usd: number;
  /** Requests whose cost is unknown. */
  readonly unpriced: number;
  readonly requests: number;
  readonly recalls: number;
  readonly foldedTokens: number;
  /** True when a conversation of the control group was folded because it would not have fit. */
  readonly isRescued: boolean;
  /** Conversations that began later in the same session: those of sub-agents, and the client's own compactions. */
  readonly newConversations: number;
  readonly covariates: readonly number[];
  readonly counts: OutcomeCounts;
  /** The messages of each conversation that were counted, by a digest of its beginning. */
  readonly counted: Readonly<Record<string, number>>;
};

export type TrialEra = {
  readonly rate: number;
  readonly capUsd: number;
  readonly settings: string;
  readonly model: string;
};

/** The records of a tenant, one for each unit. Every method rejects with `store-failed` when the store does. */
export interface Journal<T extends JournalRecord> {
  /** Returns what all gateways know of a unit; undefined for a new one. */
  find(tenant: string, unit: string): Promise<T | undefined>;
  /** Changes this gateway's own records, one after the other, and writes each block that they are in once. Calls must not overlap. */
  change(tenant: string, changes: readonly RecordChange<T>[]): Promise<void>;
  /** Returns the records of all gateways, added up by unit, in the order of their last change. */
  list(tenant: string): Promise<readonly T[]>;
}

/** A change of this gateway's own record of a unit. `change` gets what all gateways know of it, too; without a result nothing is written. */
export type RecordChange<T> = {
  readonly unit: string;
  readonly change: (own: T | undefined, known: T | undefined) => T | undefined;
};

type JournalRecord = { readonly unit: string; readonly lastAt: number };

export type JournalOptions<T> = {
  /** Name the records, and the gateways that write them, in the keys of the store. */
  readonly name: string;
  readonly slots: string;
  /** Adds up the records of two gateways for one unit. */
  readonly merge: (one: T, other: T) => T;
};

/** The journal of a holdout. */
export const trialJournal: JournalOptions<TrialRecord> = { name: 'units', slots: 'slot', merge: merged };

const ttlMs = 400 * 24 * 60 * 60 * 1_000;
const unitsPerBlock = 32;
const slotsAtOnce = 32;
/** The blocks of one gateway that a round asks for: few at first, because most gateways have few records. Later rounds ask for the last number. */
const blocksInRound = [4, 16, 64];
const keysAtOnce = 1_024;

/** A block of a gateway's records. The gateway that began first has slot 1. */
type BlockPlace = { readonly slot: number; readonly block: number };

/** The records of a tenant that this gateway writes, and the places of those that other gateways had written when it began. */
type OwnRecords = {
  readonly slot: number;
  readonly blockOf: Map<string, number>;
  readonly others: ReadonlyMap<string, readonly BlockPlace[]>;
};

type JournalStore = Pick<EncryptedStore, 'keep' | 'getSealedMany'>;

export function createJournal<T extends JournalRecord>(
  encryptedStore: JournalStore,
  options: JournalOptions<T>,
): Journal<T> {
  const { merge } = options;
  const blocks = openBlocks<T>(encryptedStore, options);
  // A tenant that was dropped takes another slot when it comes back.
  const opened = openFixed<string, Promise<OwnRecords>>('journals of experiments');
  const held = openFixed<string, readonly T[]>('blocks of experiments');
  const heldKey = (tenant: string, { slot, block }: BlockPlace) =>
    `${tenant} ${options.name} ${slot} ${block}`;

  async function open(tenant: string): Promise<OwnRecords> {
    const others = new Map<string, BlockPlace[]>();
    await blocks.readAll(tenant, ({ unit }, place) => others.set(unit, [...(others.get(unit) ?? []), place]));
    return { slot: await blocks.takeSlot(tenant), blockOf: new Map(), others };
  }

  function ownOf(tenant: string): Promise<OwnRecords> {
    const known = opened.get(tenant) ?? open(tenant);
    opened.set(tenant, known);
    known.catch(() => opened.delete(tenant));
    return known;
  }

  async function blockAt(tenant: string, place: BlockPlace): Promise<readonly T[]> {
    const key = heldKey(tenant, place);
    const units = held.get(key) ?? (await blocks.read(tenant, place));
    held.set(key, units);
    return units;
  }

  async function find(tenant: string, unit: string): Promise<T | undefined> {
    const { slot, blockOf, others } = await ownOf(tenant);
    const block = blockOf.get(unit);
    const places = [...(others.get(unit) ?? []), ...(block === undefined ? [] : [{ slot, block }])];
    const found: T[] = [];
    for (const place of places)
      found.push(...(await blockAt(tenant, place)).filter((record) => record.unit === unit));
    return found.length === 0 ? undefined : found.reduce(merge);
  }

  return {
    find,
    async change(tenant, changes) {
      const { slot, blockOf } = await ownOf(tenant);
      const changed = new Map<number, readonly T[]>();
      for (const { unit, change } of changes) {
        const known = await find(tenant, unit);
        const block = blockOf.get(unit) ?? Math.floor(blockOf.size / unitsPerBlock);
        const before = await blockAt(tenant, { slot, block });
        const at = before.findIndex((record) => record.unit === unit);
        const record = change(before[at], known);
        if (!record) continue;
        blockOf.set(unit, block);
        const units = at < 0 ? [...before, record] : before.with(at, record);
        held.set(heldKey(tenant, { slot, block }), units);
        changed.set(block, units);
      }
      for (const [block, units] of changed) await blocks.write(tenant, { slot, block }, units);
    },
    async list(tenant) {
      const all = new Map<string, T>();
      await blocks.readAll(tenant, (record) => {
        const known = all.get(record.unit);
        all.set(record.unit, known ? merge(known, record) : record);
      });
      return [...all.values()].toSorted(
        (one, other) => one.lastAt - other.lastAt || (one.unit < other.unit ? -1 : 1),
      );
    },
  };
}

/** The blocks of all gateways in the store. Nothing is remembered. */
interface JournalBlocks<T> {
  /** Takes a slot that no gateway has. */
  takeSlot(tenant: string): Promise<number>;
  read(tenant: string, place: BlockPlace): Promise<readonly T[]>;
  /** Calls `take` with each record of all gateways. */
  readAll(tenant: string, take: (record: T, place: BlockPlace) => void): Promise<void>;
  write(tenant: string, place: BlockPlace, units: readonly T[]): Promise<void>;
}

function openBlocks<T>(
  encryptedStore: JournalStore,
  { name, slots }: Pick<JournalOptions<T>, 'name' | 'slots'>,
): JournalBlocks<T> {
  const slotKey = (slot: number) => `experiment/${slots}/${slot}`;
  const blockKey = ({ slot, block }: BlockPlace) => `experiment/${name}/${slot}/${block}`;

  async function readKeys(
    tenant: string,
    keys: readonly string[],
  ): Promise<readonly (JournalBlock<T> | undefined)[]> {
    const records = await encryptedStore.getSealedMany(tenant, keys);
    return records.map(
      (record) =>
        record && (decodeRecord(record, 'A record of an experiment') as JournalBlock<T> | undefined),
    );
  }

  /** Lists the slots that gateways have taken. */
  async function slotsOf(tenant: string): Promise<readonly number[]> {
    const found: number[] = [];
    for (let from = 1; ; from += slotsAtOnce) {
      const numbers = Array.from({ length: slotsAtOnce }, (_, at) => from + at);
      const records = await readKeys(tenant, numbers.map(slotKey));
      const taken = numbers.filter((_, at) => records[at] !== undefined);
      found.push(...taken);
      if (taken.length === 0) return found;
    }
  }

  return {
    async takeSlot(tenant) {
      for (let slot = 1; ; slot++) {
        const key = slotKey(slot);
        const content = encodeRecord({});
        const taken = await encryptedStore.keep(tenant, [], { keys: [key], content, ttlMs, unless: [key] });
        if (!taken) return slot;
      }
    },
    async read(tenant, place) {
      return (await readKeys(tenant, [blockKey(place)]))[0]?.units ?? [];
    },
    async readAll(tenant, take) {
      let slotsLeft = await slotsOf(tenant);
      for (let round = 0, from = 0; slotsLeft.length > 0; round++) {
        const count = blocksInRound[round] ?? blocksInRound.at(-1)!;
        const atOnce = Math.floor(keysAtOnce / count);
        const unfinished: number[] = [];
        for (let at = 0; at < slotsLeft.length; at += atOnce) {
          const asked = slotsLeft.slice(at, at + atOnce);
          const places = asked.flatMap((slot) =>
            Array.from({ length: count }, (_, block) => ({ slot, block: from + block })),
          );
          const blocks = await readKeys(tenant, places.map(blockKey));
          for (const [order, block] of blocks.entries())
            for (const record of block?.units ?? []) take(record, places[order]!);
          unfinished.push(...asked.filter((_, order) => blocks[(order + 1) * count - 1] !== undefined));
        }
        slotsLeft = unfinished;
        from += count;
      }
    },
    write: async (tenant, place, units) => {
      const record = { keys: [blockKey(place)], content: encodeRecord({ units }), ttlMs };
      await encryptedStore.keep(tenant, [], record);
    },
  };
}

type JournalBlock<T> = { readonly units: readonly T[] };

/** Adds up the records of two gateways for a conversation. The earlier one says what was known at its beginning. */
function merged(one: TrialRecord, other: TrialRecord): TrialRecord {
  const first = one.firstAt <= other.firstAt ? one : other;
  const counted = { ...one.counted };
  for (const [beginning, messages] of Object.entries(other.counted))
    counted[beginning] = Math.max(messages, counted[beginning] ?? 0);
  return {
    ...first,
    lastAt: Math.max(one.lastAt, other.lastAt),
    usd: one.usd + other.usd,
    unpriced: one.unpriced + other.unpriced,
    requests: one.requests + other.requests,
    recalls: one.recalls + other.recalls,
    foldedTokens: Math.max(one.foldedTokens, other.foldedTokens),
    isRescued: one.isRescued || other.isRescued,
    newConversations: one.newConversations + other.newConversations,
    counts: addedCounts(one.counts, other.counts),
    counted,
  };
}
