/**
 * Keeps what requests that are sent again may cost in a day. Money is reserved before anything is sent, and settled when the provider has
 * reported its usage. Reservations form one list in the store, to which a gateway can only append what follows the entry that it has read:
 * so gateways that share a store never exceed the cap together, and what a crash leaves unsettled stays spent.
 */
import { openFixed } from '../caches.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import type { Clock } from '../store/store.ts';
import { LeporelloError } from '../errors.ts';
import { decodeRecord, encodeRecord } from '../store/records.ts';

/** Money that was reserved for one purpose. */
export type Reservation = {
  readonly usd: number;
  /** Replaces the reserved amount by the cost. Money that is never settled counts as spent. Never rejects. */
  settle(cost: number): Promise<void>;
};

export interface MeasuringBudget {
  /** Reserves an amount; undefined when the day's cap would be exceeded. Rejects with `store-failed`; then nothing may be sent. */
  reserve(tenant: string, usd: number): Promise<Reservation | undefined>;
  /** Returns the USD of today that are spent or reserved, over all gateways. Rejects with `store-failed`. */
  today(tenant: string): Promise<number>;
}

type BudgetOptions = {
  readonly encryptedStore: Pick<EncryptedStore, 'keep' | 'getSealedMany'>;
  readonly usdPerDay: number;
  /** Milliseconds since the epoch. */
  readonly clock: Clock;
};

/** An entry of a day's list. `taken`: billionths of a USD that are spent or reserved after this entry. */
type BudgetEntry = { readonly number: number; readonly taken: number };

const dayMs = 24 * 60 * 60 * 1_000;
const ttlMs = 3 * dayMs;
const beforeAll: BudgetEntry = { number: 0, taken: 0 };

/** Creates the budget of one gateway. */
export function createBudget({ encryptedStore, usdPerDay, clock }: BudgetOptions): MeasuringBudget {
  const cap = Math.floor(usdPerDay * 1e9);
  /** The newest entry of each list that this gateway knows, by tenant and day. */
  const known = new Map<string, BudgetEntry>();

  function today(tenant: string): DayList {
    const day = Math.floor(clock() / dayMs);
    for (const [name] of known) if (Number(name.split(' ')[1]) < day - 1) known.delete(name);
    return { tenant, name: `${tenant} ${day}`, keyOf: (number) => `experiment/budget/${day}/${number}` };
  }

  /** Returns the newest entry in the store. */
  async function newest({ tenant, name, keyOf }: DayList): Promise<BudgetEntry> {
    for (let entry = known.get(name) ?? beforeAll; ; ) {
      const numbers = distances.map((distance) => entry.number + distance);
      const found = await encryptedStore.getSealedMany(tenant, numbers.map(keyOf));
      const last = found.findLastIndex((content) => content !== undefined);
      if (last < 0) return entry;
      entry = entryOf(numbers[last]!, found[last]);
      known.set(name, entry);
    }
  }

  /** Appends an entry after the newest one. Returns false when `change` refuses to go on from there. */
  async function append(list: DayList, change: (taken: number) => number | undefined): Promise<boolean> {
    let entry = known.get(list.name) ?? (await newest(list));
    for (let isCurrent = false; ; ) {
      const taken = change(entry.taken);
      if (taken === undefined) {
        // Another gateway may have settled what it had reserved.
        if (isCurrent) return false;
        entry = await newest(list);
        isCurrent = true;
        continue;
      }
      const number = entry.number + 1;
      const key = list.keyOf(number);
      const content = encodeRecord({ taken });
      const record = { keys: [key], content, ttlMs, unless: [key] };
      const inTheWay = await encryptedStore.keep(list.tenant, [], record);
      entry = inTheWay ? entryOf(number, inTheWay.content) : { number, taken };
      known.set(list.name, entry);
      if (!inTheWay) return true;
    }
  }

  return {
    async reserve(tenant, usd) {
      const list = today(tenant);
      const amount = billionths(usd);
      if (!(amount >= 0)) throw new RangeError(`The amount ${usd} cannot be reserved.`);
      const isReserved = await append(list, (taken) => (taken + amount > cap ? undefined : taken + amount));
      if (!isReserved) return undefined;
      let isSettled = false;
      return {
        usd,
        async settle(cost) {
          if (isSettled) return;
          isSettled = true;
          const spent = billionths(cost);
          // An append that fails is not tried again: it may have been made, and the money would be given back twice.
          await append(list, (taken) => taken - amount + spent).catch(() => undefined);
        },
      };
    },
    async today(tenant) {
      return (await newest(today(tenant))).taken / 1e9;
    },
  };
}

/** Rounds up, but for the noise of a sum. */
function billionths(usd: number): number {
  return Math.ceil(usd * 1e9 - 1e-3);
}

/** The money of the comparisons of all tenants. */
export interface Bills {
  /** Adds the cost of a request that was served. */
  paid(tenant: string, usd: number): void;
  /** Opens the account of one comparison. */
  open(tenant: string): Account;
}

/** The money of one comparison. */
export type Account = {
  /** Reserves an amount. Returns the reason why it may not be spent; undefined if it may. Rejects with `store-failed`. */
  reserve(usd: number): Promise<string | undefined>;
  /** Replaces everything that was reserved by the cost. Never rejects. */
  settle(cost: number): Promise<void>;
};

/** Opens the bills of one gateway. Comparisons may cost at most `billShare` of the requests that it served, and the day's cap. */
export function openBills(budget: MeasuringBudget, billShare: number): Bills {
  /** USD since this process began, by tenant: the cost of its requests, and the amounts that were reserved or spent to repeat some. */
  const bills = openFixed<string, { paid: number; measured: number }>('bills of shadows');
  const billOf = (tenant: string) => {
    const bill = bills.get(tenant) ?? { paid: 0, measured: 0 };
    bills.set(tenant, bill);
    return bill;
  };
  return {
    paid(tenant, usd) {
      billOf(tenant).paid += usd;
    },
    open(tenant) {
      const reservations: Reservation[] = [];
      return {
        async reserve(usd) {
          const bill = billOf(tenant);
          if (bill.measured + usd > billShare * bill.paid)
            return "the comparisons' share of the tenant's bill might have been exceeded";
          const reservation = await budget.reserve(tenant, usd);
          if (!reservation) return 'the cap of the day might have been exceeded';
          bill.measured += usd;
          reservations.push(reservation);
          return undefined;
        },
        async settle(cost) {
          const reserved = reservations.reduce((sum, { usd }) => sum + usd, 0);
          billOf(tenant).measured += cost - reserved;
          await settleAll(reservations, cost);
        },
      };
    },
  };
}

/** Settles reservations that were made for one purpose: as many as the cost needs count as spent, and never less than it in between. */
async function settleAll(reservations: readonly Reservation[], cost: number): Promise<void> {
  let left = cost;
  for (const [at, reservation] of reservations.entries()) {
    const share = at === reservations.length - 1 ? left : Math.min(left, reservation.usd);
    left -= share;
    await reservation.settle(share);
  }
}

/** One tenant's list of one day. */
type DayList = { readonly tenant: string; readonly name: string; readonly keyOf: (number: number) => string };

/** The distances at which later entries are looked for: all next ones, and then farther and farther, for a gateway that has just started. */
const distances = [
  ...Array.from({ length: 32 }, (_, at) => at + 1),
  ...Array.from({ length: 15 }, (_, at) => 64 * 2 ** at),
];

function entryOf(number: number, content: Uint8Array | undefined): BudgetEntry {
  const record = content && (decodeRecord(content, 'A budget') as { taken?: unknown } | undefined);
  if (typeof record?.taken === 'number') return { number, taken: record.taken };
  throw new LeporelloError('store-failed', `Entry ${number} of the day's budget cannot be read.`);
}
