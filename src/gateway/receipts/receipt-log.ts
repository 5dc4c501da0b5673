/** The newest receipts, in memory, by tenant. Bounded; a restart begins a new list. */
import { LRUCache } from 'lru-cache';
import type { Receipt, SummaryReceipt } from '../../receipts/receipt.ts';

/** Of a request, or of a summary that was written ahead. */
export type AnyReceipt = Receipt | SummaryReceipt;

/** A tenant of undefined is the administrator, who sees all. */
export interface ReceiptLog {
  add(tenant: string, receipt: AnyReceipt): void;
  get(tenant: string | undefined, id: string): AnyReceipt | undefined;
  /** Newest first. */
  list(tenant: string | undefined, limit: number): readonly AnyReceipt[];
}

export function createReceiptLog(most = 2_000): ReceiptLog {
  const receipts = new LRUCache<string, { readonly tenant: string; readonly receipt: AnyReceipt }>({
    max: most,
  });
  return {
    add(tenant, receipt) {
      receipts.set(receipt.id, { tenant, receipt });
    },
    get(tenant, id) {
      const found = receipts.peek(id);
      return found && isOf(tenant, found.tenant) ? found.receipt : undefined;
    },
    list(tenant, limit) {
      const listed: AnyReceipt[] = [];
      for (const found of receipts.values()) {
        if (listed.length >= limit) break;
        if (isOf(tenant, found.tenant)) listed.push(found.receipt);
      }
      return listed;
    },
  };
}

function isOf(tenant: string | undefined, owner: string): boolean {
  return tenant === undefined || tenant === owner;
}
