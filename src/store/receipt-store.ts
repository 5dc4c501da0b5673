/**
 * The receipt store keeps the newest receipts of each tenant with their details, encrypted, across restarts and instances. It is bounded
 * in number and in age. Receipts are written in groups: a group is a numbered record with the ids of its receipts, and each receipt is a
 * record of its own. All of a group is written in one step, under a number that no other instance has taken.
 */
import { nextTurn } from '../conversation/steps.ts';
import type { EncryptedStore } from './encrypted-store.ts';
import type { Sealed } from './store.ts';
import { decodeRecord, encodeRecord } from './records.ts';

/** A receipt with its detail, as plain data. The store reads nothing of it but its id. */
export type ReceiptRecord = { readonly id: string };

/** The receipts of a tenant. Every method rejects with `store-failed` when the store does. */
export interface ReceiptStore<Kept extends ReceiptRecord> {
  /** Adds receipts, the oldest first. The oldest ones beyond the bound are deleted. */
  add(tenant: string, receipts: readonly Kept[]): Promise<void>;
  get(tenant: string, id: string): Promise<Kept | undefined>;
  /** Returns receipts, the newest first. */
  list(tenant: string, limit: number): Promise<readonly Kept[]>;
}

type ReceiptStoreOptions = {
  readonly encryptedStore: Pick<EncryptedStore, 'keep' | 'getSealedMany' | 'forget'>;
  /** Receipts of a tenant that are kept. Default 2,000. */
  readonly maxReceipts?: number;
  /** How long a receipt is kept, in milliseconds. Default 30 days. */
  readonly ttlMs?: number | undefined;
};

/** The numbers of the newest group and of the oldest one that is left. */
type GroupRange = { readonly newest: number; readonly oldest: number };

/** `first`: the number of receipts that were written before this group. */
type ReceiptGroup = { readonly first: number; readonly ids: readonly string[] };

/** The number of groups that one call of the store reads. */
const groupsAtOnce = 64;

/** The number of receipts that one call of the store reads. */
const receiptsAtOnce = 100;

/** How often a group gets another number because another instance has taken its own. */
const maxTries = 50;

const rangeKey = 'receipts/range';
const groupKey = (group: number) => `receipts/group/${group}`;
const receiptKey = (id: string) => `receipts/one/${id}`;

export function createReceiptStore<Kept extends ReceiptRecord>({
  encryptedStore,
  maxReceipts = 2_000,
  ttlMs = 30 * 24 * 60 * 60 * 1_000,
}: ReceiptStoreOptions): ReceiptStore<Kept> {
  async function readOne(tenant: string, key: string): Promise<unknown> {
    const [record] = await encryptedStore.getSealedMany(tenant, [key]);
    return record && decodeRecord(record, 'A list of receipts');
  }

  async function rangeOf(tenant: string): Promise<GroupRange> {
    return ((await readOne(tenant, rangeKey)) as GroupRange | undefined) ?? { newest: 0, oldest: 1 };
  }

  /** Reads groups; undefined for one that has expired or was deleted. */
  async function groupsOf(
    tenant: string,
    numbers: readonly number[],
  ): Promise<readonly (ReceiptGroup | undefined)[]> {
    const records = await encryptedStore.getSealedMany(tenant, numbers.map(groupKey));
    return records.map(
      (record) => record && (decodeRecord(record, 'A list of receipts') as ReceiptGroup | undefined),
    );
  }

  /** Writes a group under the next free number, and returns it with the number of receipts before it. */
  async function write(
    tenant: string,
    receipts: readonly Kept[],
    { newest, oldest }: GroupRange,
  ): Promise<GroupRange & { readonly end: number }> {
    const [last] = newest > 0 ? await groupsOf(tenant, [newest]) : [];
    let first = last ? last.first + last.ids.length : 0;
    const ids = receipts.map(({ id }) => id);
    for (let number = newest + 1; number <= newest + maxTries; number++) {
      const key = groupKey(number);
      const records: readonly Sealed[] = [
        { keys: [key], content: encodeRecord({ first, ids }), ttlMs, unless: [key] },
        { keys: [rangeKey], content: encodeRecord({ newest: number, oldest }), ttlMs },
        ...receipts.map((receipt) => ({
          keys: [receiptKey(receipt.id)],
          content: encodeRecord(receipt),
          ttlMs,
        })),
      ];
      const inTheWay = await encryptedStore.keep(tenant, [], ...records);
      if (inTheWay === undefined) return { newest: number, oldest, end: first + ids.length };
      const [other] = await groupsOf(tenant, [number]);
      if (other) first = other.first + other.ids.length;
    }
    return { newest, oldest, end: first };
  }

  /** Deletes the oldest groups whose receipts are all beyond the bound. */
  async function prune(
    tenant: string,
    { newest, oldest, end }: GroupRange & { readonly end: number },
  ): Promise<void> {
    if (end <= maxReceipts) return;
    const numbers = rangeFrom(oldest, Math.min(newest, oldest + groupsAtOnce - 1));
    const groups = await groupsOf(tenant, numbers);
    const gone: string[] = [];
    let left = oldest;
    for (const [at, group] of groups.entries()) {
      if (group && group.first + group.ids.length > end - maxReceipts) break;
      left = numbers[at]! + 1;
      gone.push(groupKey(numbers[at]!), ...(group?.ids ?? []).map(receiptKey));
    }
    if (gone.length === 0) return;
    await encryptedStore.forget(tenant, { sealed: gone });
    const range = { newest: Math.max(newest, (await rangeOf(tenant)).newest), oldest: left };
    await encryptedStore.keep(tenant, [], { keys: [rangeKey], content: encodeRecord(range), ttlMs });
  }

  return {
    async add(tenant, receipts) {
      if (receipts.length === 0) return;
      await prune(tenant, await write(tenant, receipts, await rangeOf(tenant)));
    },
    async get(tenant, id) {
      return (await readOne(tenant, receiptKey(id))) as Kept | undefined;
    },
    async list(tenant, limit) {
      const { newest, oldest } = await rangeOf(tenant);
      const ids: string[] = [];
      for (let from = newest; from >= oldest && ids.length < limit; from -= groupsAtOnce) {
        const numbers = rangeFrom(Math.max(oldest, from - groupsAtOnce + 1), from).toReversed();
        for (const group of await groupsOf(tenant, numbers)) ids.push(...(group?.ids ?? []).toReversed());
      }
      const found: Kept[] = [];
      const wanted = ids.slice(0, limit).map(receiptKey);
      for (let from = 0; from < wanted.length; from += receiptsAtOnce) {
        const keys = wanted.slice(from, from + receiptsAtOnce);
        if (from > 0) await nextTurn();
        const records = await encryptedStore.getSealedMany(tenant, keys);
        for (const record of records) if (record) found.push(decodeRecord(record, 'A receipt') as Kept);
      }
      return found;
    },
  };
}

function rangeFrom(from: number, to: number): readonly number[] {
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => from + at);
}
