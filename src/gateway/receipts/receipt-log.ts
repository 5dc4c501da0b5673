/** Keeps the newest receipts in memory, by tenant. The number is bounded, and a restart begins with none. */
import { LRUCache } from 'lru-cache';
import type { Receipt, SummaryReceipt } from '../../receipts/receipt.ts';

/** A receipt of a request, or of a summary that was written in the background. */
export type AnyReceipt = Receipt | SummaryReceipt;

/** Receipts by id. An undefined tenant is the administrator, who sees all receipts. */
export interface ReceiptLog {
  add(tenant: string, receipt: AnyReceipt): void;
  get(tenant: string | undefined, id: string): AnyReceipt | undefined;
  /** Returns receipts, newest first. */
  list(tenant: string | undefined, limit: number): readonly AnyReceipt[];
}

/** Creates a log of at most `maxReceipts` receipts. */
export function createReceiptLog(maxReceipts = 2_000): ReceiptLog {
  const receipts = new LRUCache<string, { readonly tenant: string; readonly receipt: AnyReceipt }>({
    max: maxReceipts,
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
