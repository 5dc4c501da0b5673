/**
 * Reads everything that the pages show: receipts with their details, originals, and decisions. A reader sees one tenant; the
 * administrator sees those that have sent requests since the start.
 */
import { memoryIdPattern } from '../../checks.ts';
import type { KeptReceipt } from '../../receipts/detail.ts';
import type { ReceiptTotals } from '../../receipts/totals.ts';
import { readOriginal } from '../../recall/read-original.ts';
import type { Controls, TenantControls } from '../../store/controls.ts';
import type { EncryptedStore } from '../../store/encrypted-store.ts';
import { nextTurn } from '../../conversation/steps.ts';
import type { OriginalEntry, RecallEntry } from '../../page/memory.ts';
import type { OriginalText } from '../../page/request.ts';
import type { ReceiptArchive } from '../receipts/archive.ts';

export type PageData = {
  readonly archive: ReceiptArchive;
  readonly controls: Controls;
  readonly totals: ReceiptTotals;
  readonly encryptedStore: Pick<EncryptedStore, 'recall' | 'recallAny' | 'forget' | 'forgetAny'>;
};

/** The reader of a page: one tenant, or the administrator. */
export type Viewer = { readonly tenant: string | undefined };

/** A receipt and its tenant. */
export type OwnedReceipt = { readonly tenant: string; readonly kept: KeptReceipt };

/** The most tenants that the administrator sees. */
const maxTenants = 50;

/** The receipts among which folds, recalls and originals are looked up. */
export const maxSearched = 500;

/** The most originals that one search reads, and their bytes together. */
const maxOriginals = 400;
const maxSearchedBytes = 32 * 1024 * 1024;

function tenantsOf({ totals }: PageData, { tenant }: Viewer): readonly string[] {
  if (tenant !== undefined) return [tenant];
  return totals
    .tenants(undefined)
    .slice(0, maxTenants)
    .map((row) => row.tenant);
}

/** Returns the newest receipts, newest first. */
export async function newestReceipts(
  sources: PageData,
  viewer: Viewer,
  limit: number,
): Promise<readonly OwnedReceipt[]> {
  const all: OwnedReceipt[] = [];
  for (const tenant of tenantsOf(sources, viewer))
    for (const kept of await sources.archive.list(tenant, limit)) all.push({ tenant, kept });
  return all.toSorted((a, b) => b.kept.receipt.at - a.kept.receipt.at).slice(0, limit);
}

/** Finds a receipt that the reader may see. */
export async function findReceipt(
  sources: PageData,
  viewer: Viewer,
  id: string,
): Promise<OwnedReceipt | undefined> {
  for (const tenant of tenantsOf(sources, viewer)) {
    const kept = await sources.archive.get(tenant, id);
    if (kept) return { tenant, kept };
  }
  return undefined;
}

/** Returns the decisions of the reader's tenants, by tenant. */
export async function decisionsOf(
  sources: PageData,
  viewer: Viewer,
): Promise<readonly (TenantControls & { readonly tenant: string })[]> {
  const tenants = tenantsOf(sources, viewer);
  return Promise.all(tenants.map(async (tenant) => ({ tenant, ...(await sources.controls.find(tenant)) })));
}

/** Returns the recalls of the model, the newest first. */
export function recallsIn(receipts: readonly OwnedReceipt[]): readonly RecallEntry[] {
  return receipts.flatMap(({ kept: { id, receipt, asked = [] } }) =>
    asked.map(({ found, tokens, asked: text }) => ({
      at: receipt.at,
      receipt: id,
      session: receipt.session,
      asked: text,
      found,
      tokens,
    })),
  );
}

/** Counts how often each original was recalled by its id. */
export function recallCounts(recalls: readonly RecallEntry[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { asked } of recalls)
    for (const id of new Set(asked.match(new RegExp(memoryIdPattern, 'g'))))
      counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

/** Lists the originals that these receipts folded, the newest first. */
export function originalsIn(
  receipts: readonly OwnedReceipt[],
): readonly (OriginalEntry & { readonly tenant: string })[] {
  const counts = recallCounts(recallsIn(receipts));
  const entries = new Map<string, OriginalEntry & { readonly tenant: string }>();
  for (const { tenant, kept } of receipts) {
    for (const { memory: id, title, before: tokens } of kept.detail?.edits ?? []) {
      if (id === undefined || entries.has(id)) continue;
      const { at } = kept.receipt;
      entries.set(id, { tenant, id, title, tokens, at, receipt: kept.id, recalls: counts.get(id) ?? 0 });
    }
  }
  return [...entries.values()];
}

/** Returns the originals that contain the query, with the passage. Reads at most the newest ones. */
export async function searchOriginals(
  { encryptedStore }: PageData,
  entries: readonly (OriginalEntry & { readonly tenant: string })[],
  query: string,
): Promise<readonly OriginalEntry[]> {
  const words = query.toLowerCase();
  const found: OriginalEntry[] = [];
  let bytes = 0;
  for (const entry of entries.slice(0, maxOriginals)) {
    const recalled = await encryptedStore.recall(entry.tenant, entry.id);
    if (recalled.status === 'missing') continue;
    bytes += recalled.original.length;
    const { text } = readOriginal(new TextDecoder().decode(recalled.original));
    const at = text.toLowerCase().indexOf(words);
    if (at >= 0) found.push({ ...entry, passage: passageAt(text, at, words.length) });
    else if (entry.title.toLowerCase().includes(words)) found.push(entry);
    if (bytes > maxSearchedBytes) break;
    await nextTurn();
  }
  return found;
}

/** Characters of a passage on each side of what was searched. */
const context = 60;

function passageAt(text: string, at: number, length: number): string {
  const from = Math.max(0, at - context);
  const passage = text.slice(from, at + length + context).replaceAll(/\s+/g, ' ');
  return `${from > 0 ? '…' : ''}${passage}${at + length + context < text.length ? '…' : ''}`;
}

/** Returns the bytes of an original, if the reader may see it. */
export async function originalBytes(
  { encryptedStore }: PageData,
  { tenant }: Viewer,
  id: string,
): Promise<Uint8Array | undefined> {
  const found =
    tenant === undefined ? await encryptedStore.recallAny(id) : await encryptedStore.recall(tenant, id);
  return found.status === 'found' ? found.original : undefined;
}

/** Returns the beginning of an original as text. */
export async function originalText(
  sources: PageData,
  viewer: Viewer,
  id: string | undefined,
  maxLength: number,
): Promise<OriginalText> {
  const bytes = id === undefined ? undefined : await originalBytes(sources, viewer, id);
  if (bytes === undefined) return { text: undefined, total: 0 };
  const { text } = readOriginal(new TextDecoder().decode(bytes));
  return { text: text.slice(0, maxLength), total: text.length };
}
