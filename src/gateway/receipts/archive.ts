/**
 * Keeps receipts beyond the process, with details that a person can read later. A receipt is only queued when its response ends; its
 * detail is computed and written afterwards, in groups, and nothing waits for that. Without a store the receipts of the process are
 * lost with it, and requests are served all the same.
 */
import { openWaitingNotes } from '../../experiment/waiting-notes.ts';
import { nextTurn } from '../../conversation/steps.ts';
import { reasonOf } from '../../errors.ts';
import { groupBy } from '../../es2024.ts';
import type { ReceiptStore } from '../../store/receipt-store.ts';
import { createReceiptStore } from '../../store/receipt-store.ts';
import type { AskedRecall, KeptReceipt, RequestDetail } from '../../receipts/detail.ts';
import type { EncryptedStore } from '../../store/encrypted-store.ts';
import type { GatewayLog, GatewayMetrics } from './metrics.ts';
import { type AnyReceipt, type ReceiptSource, maxNameLength, releaseEnded } from './receipts.ts';

/** Receipts that outlive the process, for `archive` of `assembleGateway`. */
export interface ReceiptArchive {
  /** Connects the archive to the store of a gateway. Only the gateway that uses it calls this, once. */
  open(parts: ArchiveParts): void;
  /** Queues a receipt. Returns at once, never throws. */
  add(tenant: string, receipt: AnyReceipt, source?: ReceiptSource): void;
  /** Returns a receipt of any process on this store, with its detail. Rejects with `store-failed`. */
  get(tenant: string, id: string): Promise<KeptReceipt | undefined>;
  /** Returns receipts, newest first. Rejects with `store-failed`. */
  list(tenant: string, limit: number): Promise<readonly KeptReceipt[]>;
  /** Calls the listener with each new receipt, until the returned function is called. */
  watch(listener: ArchiveListener): () => void;
  /** When the gateway started, in milliseconds since the epoch. */
  startedAt(): number;
  /** True after `close`: streams to pages end. */
  isClosed(): boolean;
  /** Writes what is queued, and ends all streams to pages. */
  close(): Promise<void>;
}

export type ArchiveParts = {
  readonly encryptedStore: Pick<EncryptedStore, 'keep' | 'getSealedMany' | 'forget'>;
  readonly log: GatewayLog;
  readonly metrics?: Pick<GatewayMetrics, 'notesLost'> | undefined;
};

/** A listener is called with each new receipt, and with undefined when the archive is closed. */
export type ArchiveListener = (tenant: string | undefined, receipt: AnyReceipt | undefined) => void;

export type ArchiveOptions = {
  /** Milliseconds that a receipt waits for others, to be written with them. Default 250. */
  readonly groupMs?: number;
  /** Receipts of a tenant that are kept. Default 2,000. */
  readonly maxReceipts?: number;
};

type QueuedReceipt = {
  readonly tenant: string;
  readonly receipt: AnyReceipt;
  readonly source: ReceiptSource | undefined;
  readonly leave: () => void;
};

/** Characters of a recall's arguments that are kept. */
const maxAsked = 500;

/** Creates the archive of one gateway. */
export function receiptArchive({ groupMs = 250, maxReceipts }: ArchiveOptions = {}): ReceiptArchive {
  const listeners = new Set<ArchiveListener>();
  let store: ReceiptStore<KeptReceipt> | undefined;
  let log: GatewayLog | undefined;
  let metrics: ArchiveParts['metrics'];
  const waiting = openWaitingNotes('receipt');
  let queue: QueuedReceipt[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let writing = Promise.resolve();
  let hasFailed = false;
  let isClosed = false;
  let startedAt = Date.now();

  function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    writing = writing.then(write);
    return writing;
  }

  async function write(): Promise<void> {
    const group = queue;
    queue = [];
    try {
      for (const [tenant, own] of groupBy(group, (one) => one.tenant)) {
        const receipts: KeptReceipt[] = [];
        for (const one of own) {
          receipts.push(await keptOf(one));
          if (one.source) releaseEnded(one.source);
          // Requests are served between the details of a large group.
          await nextTurn();
        }
        await store?.add(tenant, receipts);
      }
      hasFailed = false;
    } catch (error) {
      if (!hasFailed)
        log?.warn(
          { receipts: group.length, reason: reasonOf(error) },
          'receipts could not be stored: they are lost when this process ends',
        );
      hasFailed = true;
      metrics?.notesLost('receipt', group.length);
    } finally {
      for (const { leave } of group) leave();
    }
  }

  return {
    open(parts) {
      const { encryptedStore } = parts;
      log = parts.log;
      metrics = parts.metrics;
      startedAt = Date.now();
      store = createReceiptStore({ encryptedStore, ...(maxReceipts === undefined ? {} : { maxReceipts }) });
    },
    add(tenant, receipt, source) {
      const leave = waiting.enter(receipt.kind === 'request' ? receipt.bytesBefore + receipt.bytesAfter : 0);
      if (leave) queue.push({ tenant, receipt, source, leave });
      else metrics?.notesLost('receipt', 1);
      timer ??= setTimeout(() => void flush(), groupMs).unref();
      for (const listener of listeners) listener(tenant, receipt);
    },
    async get(tenant, id) {
      await flush();
      return store?.get(tenant, id);
    },
    async list(tenant, limit) {
      await flush();
      return (await store?.list(tenant, limit)) ?? [];
    },
    watch(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    startedAt: () => startedAt,
    isClosed: () => isClosed,
    async close() {
      isClosed = true;
      for (const listener of listeners) listener(undefined, undefined);
      await flush();
    },
  };
}

async function keptOf({ receipt, source }: QueuedReceipt): Promise<KeptReceipt> {
  const { id } = receipt;
  if (!source || receipt.kind !== 'request') return { id, receipt };
  const { prepared, asked } = source;
  const recalls = receipt.recalls.map(
    (report, at): AskedRecall => ({ ...report, asked: (asked[at] ?? '').slice(0, maxAsked) }),
  );
  return {
    id,
    receipt,
    detail: await detailIn(prepared),
    ...(recalls.length > 0 && { asked: recalls }),
    conversation: prepared.identity.beginning?.slice(0, maxNameLength),
  };
}

async function detailIn({ detail }: ReceiptSource['prepared']): Promise<RequestDetail | undefined> {
  try {
    return await detail?.();
  } catch {
    // The receipt is worth keeping without its detail.
    return undefined;
  }
}
