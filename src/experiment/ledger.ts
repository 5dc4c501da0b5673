/**
 * Keeps what became of the conversations of a holdout: sums and counts, no content and no names. Each gateway writes records of its own, in
 * blocks, so that gateways on one store never overwrite each other; whoever reads adds them up.
 */
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

/** The records of a tenant. Every method rejects with `store-failed` when the store does. */
export interface TrialLedger {
  /** Returns what all gateways know of a unit; undefined for a new one. */
  find(tenant: string, unit: string): Promise<TrialRecord | undefined>;
  /** Changes this gateway's own record of a unit, and writes it. */
  change(tenant: string, unit: string, change: (own: TrialRecord | undefined) => TrialRecord): Promise<void>;
  /** Returns the records of all gateways, added up by unit, in the order of their last request. */
  list(tenant: string): Promise<readonly TrialRecord[]>;
}

const ttlMs = 400 * 24 * 60 * 60 * 1_000;
const unitsPerBlock = 32;
const slotsAtOnce = 32;
const blocksAtOnce = 64;
const slotKey = (slot: number) => `experiment/slot/${slot}`;
const blockKey = (slot: number, block: number) => `experiment/units/${slot}/${block}`;

/** The records of a tenant that this gateway writes, and those that other gateways had written when it began. */
type OwnRecords = {
  readonly slot: number;
  readonly own: Map<string, TrialRecord>;
  readonly others: ReadonlyMap<string, TrialRecord>;
};

export function createTrialLedger(
  encryptedStore: Pick<EncryptedStore, 'keep' | 'getSealedMany'>,
): TrialLedger {
  const opened = new Map<string, Promise<OwnRecords>>();

  async function read<T>(tenant: string, keys: readonly string[]): Promise<readonly (T | undefined)[]> {
    const records = await encryptedStore.getSealedMany(tenant, keys);
    return records.map(
      (record) => record && (decodeRecord(record, 'A record of an experiment') as T | undefined),
    );
  }

  /** Lists the slots that gateways have taken. */
  async function slotsOf(tenant: string): Promise<readonly number[]> {
    const slots: number[] = [];
    for (let from = 1; ; from += slotsAtOnce) {
      const numbers = Array.from({ length: slotsAtOnce }, (_, at) => from + at);
      const found = await read(tenant, numbers.map(slotKey));
      const taken = numbers.filter((_, at) => found[at] !== undefined);
      slots.push(...taken);
      if (taken.length === 0) return slots;
    }
  }

  async function recordsIn(tenant: string, slot: number): Promise<readonly TrialRecord[]> {
    const records: TrialRecord[] = [];
    for (let from = 0; ; from += blocksAtOnce) {
      const keys = Array.from({ length: blocksAtOnce }, (_, at) => blockKey(slot, from + at));
      const blocks = await read<{ readonly units: readonly TrialRecord[] }>(tenant, keys);
      for (const block of blocks) records.push(...(block?.units ?? []));
      if (blocks.at(-1) === undefined) return records;
    }
  }

  async function readAll(tenant: string, without?: number): Promise<Map<string, TrialRecord>> {
    const all = new Map<string, TrialRecord>();
    for (const slot of await slotsOf(tenant)) {
      if (slot === without) continue;
      for (const record of await recordsIn(tenant, slot))
        all.set(record.unit, merged(all.get(record.unit), record));
    }
    return all;
  }

  async function open(tenant: string): Promise<OwnRecords> {
    const others = await readAll(tenant);
    for (let slot = 1; ; slot++) {
      const key = slotKey(slot);
      const taken = await encryptedStore.keep(tenant, [], {
        keys: [key],
        content: encodeRecord({}),
        ttlMs,
        unless: [key],
      });
      if (!taken) return { slot, own: new Map(), others };
    }
  }

  function ownOf(tenant: string): Promise<OwnRecords> {
    const known = opened.get(tenant) ?? open(tenant);
    opened.set(tenant, known);
    known.catch(() => opened.delete(tenant));
    return known;
  }

  return {
    async find(tenant, unit) {
      const { own, others } = await ownOf(tenant);
      const [one, other] = [own.get(unit), others.get(unit)];
      return one ? merged(other, one) : other;
    },
    async change(tenant, unit, change) {
      const { slot, own } = await ownOf(tenant);
      own.set(unit, change(own.get(unit)));
      const units = [...own.values()];
      const block = Math.floor(units.findIndex((one) => one.unit === unit) / unitsPerBlock);
      const content = encodeRecord({
        units: units.slice(block * unitsPerBlock, (block + 1) * unitsPerBlock),
      });
      await encryptedStore.keep(tenant, [], { keys: [blockKey(slot, block)], content, ttlMs });
    },
    async list(tenant) {
      const here = await opened.get(tenant);
      const all = await readAll(tenant, here?.slot);
      for (const [unit, record] of here?.own ?? []) all.set(unit, merged(all.get(unit), record));
      return [...all.values()].toSorted(
        (one, other) => one.lastAt - other.lastAt || (one.unit < other.unit ? -1 : 1),
      );
    },
  };
}

/** Adds up the records of two gateways for a unit. The earlier one says what was known at its beginning. */
function merged(one: TrialRecord | undefined, other: TrialRecord): TrialRecord {
  if (!one) return other;
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
