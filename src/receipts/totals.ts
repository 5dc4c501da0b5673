/**
 * Keeps totals over receipts, by tenant, by model, and by session of a tenant. Bounded: of too many rows, those without receipts for the longest
 * time are dropped; a tenant's own row still includes its dropped models and sessions. Pure.
 */
import { openFixed, type Cache } from '../caches.ts';
import {
  addedBill,
  type Bill,
  extraRequestsPer1000Tokens,
  noBill,
  usd,
  addedUsage,
  noUsage,
} from './cost.ts';
import type { Compression, SummaryBy, Receipt, ShadowReceipt, SummaryReceipt } from './receipt.ts';
import type { Usage } from '../conversation/conversation.ts';

/** Totals over receipts. */
export type Totals = {
  /** Number of model calls, whatever their outcome. */
  readonly requests: number;
  /** Number of folds made; replayed folds do not count. */
  readonly folds: number;
  readonly recalls: number;
  /** Summaries and shortened lists that these folds inserted. */
  readonly compressions: CompressionTotals;
  /** Number of summaries that a model was asked for ahead of folds, used or not. */
  readonly summaries: number;
  /** Tokens of answered requests as received, and as sent in the first round. Undefined if no request was counted. */
  readonly tokensBefore: number | undefined;
  readonly tokensAfter: number | undefined;
  /** Number of requests with a reported usage. */
  readonly answered: number;
  /** Usage of these requests and of summaries. */
  readonly usage: Usage | undefined;
  /** Number of requests with a usage and a known price. */
  readonly priced: number;
  readonly money: SummedMoney | undefined;
  /** USD of requests that were sent again to measure. They are in no other sum. */
  readonly measuring?: number | undefined;
};

/** Totals in USD; each field as in the money of a receipt. */
export type SummedMoney = {
  /** Cost of requests and of summaries. */
  readonly paid: Bill;
  readonly recalls: number;
  readonly folds: number;
  /** The part of `paid` for summaries by a model. */
  readonly summaries: number;
  readonly untouched: Bill;
  readonly untouchedUsage: Usage;
  readonly net: number;
  /** Tokens that the folds of these requests took out, each once. */
  readonly tokensFolded: number;
};

/** The totals of one tenant, model or session. */
export type NamedTotals = { readonly tenant: string; readonly name: string; readonly totals: Totals };

/** Sums up receipts. With `tenant` undefined (the administrator) methods cover all tenants. Lists are sorted by last receipt, newest first. */
export interface ReceiptTotals {
  add(tenant: string, receipt: Receipt): void;
  addSummary(tenant: string, receipt: SummaryReceipt): void;
  addShadow(tenant: string, receipt: ShadowReceipt): void;
  total(tenant: string | undefined): Totals;
  tenants(tenant: string | undefined): readonly NamedTotals[];
  models(tenant: string | undefined): readonly NamedTotals[];
  /** Receipts without a session are in no row. */
  sessions(tenant: string | undefined): readonly NamedTotals[];
}

/** Totals over compressions, as plain data. */
export type CompressionTotals = {
  readonly count: number;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly under: number;
  readonly over: number;
  readonly problems: number;
  readonly by: Readonly<Record<SummaryBy, number>>;
};

export const noCompressions: CompressionTotals = {
  count: 0,
  tokensBefore: 0,
  tokensAfter: 0,
  under: 0,
  over: 0,
  problems: 0,
  by: { summarizer: 0, extractive: 0, both: 0, merge: 0 },
};

export const noTotals: Totals = {
  requests: 0,
  folds: 0,
  recalls: 0,
  compressions: noCompressions,
  summaries: 0,
  tokensBefore: undefined,
  tokensAfter: undefined,
  answered: 0,
  usage: undefined,
  priced: 0,
  money: undefined,
};

type Rows = Cache<string, NamedTotals>;

/** Creates empty totals. `rows`: the maximum number of tenants, of models and of sessions. */
export function createReceiptTotals({ rows: max }: { readonly rows?: number } = {}): ReceiptTotals {
  const tenants: Rows = openFixed('totals', { max });
  const models: Rows = openFixed('totals', { max });
  const sessions: Rows = openFixed('totals', { max });
  function addAll(
    tenant: string,
    { model = 'unknown', session }: Pick<Receipt, 'model' | 'session'>,
    totals: Totals,
  ): void {
    addTo(tenants, { tenant, name: tenant, totals });
    addTo(models, { tenant, name: model, totals });
    if (session !== undefined) addTo(sessions, { tenant, name: session, totals });
  }

  return {
    add: (tenant, receipt) => addAll(tenant, receipt, totalsOf(receipt)),
    addSummary: (tenant, receipt) => addAll(tenant, receipt, totalsOfSummary(receipt)),
    addShadow: (tenant, receipt) => addAll(tenant, receipt, { ...noTotals, measuring: receipt.usd }),
    total: (tenant) => rowsOf(tenants, tenant).reduce((sum, row) => addedTotals(sum, row.totals), noTotals),
    tenants: (tenant) => rowsOf(tenants, tenant),
    models: (tenant) => rowsOf(models, tenant),
    sessions: (tenant) => rowsOf(sessions, tenant),
  };
}

function addTo(rows: Rows, { tenant, name, totals }: NamedTotals): void {
  const key = `${tenant} ${name}`;
  const before = rows.peek(key)?.totals ?? noTotals;
  // The row becomes the newest one.
  rows.delete(key);
  rows.set(key, { tenant, name, totals: addedTotals(before, totals) });
}

function rowsOf(rows: Rows, tenant: string | undefined): readonly NamedTotals[] {
  const all = Array.from(rows.entries(), ([, row]) => row).toReversed();
  return all.filter((row) => tenant === undefined || row.tenant === tenant);
}

function totalsOf(receipt: Receipt): Totals {
  const { outcome, steps, recalls, compressions, tokensBefore, tokensAfter, usage, money } = receipt;
  const isFolded = outcome.status === 'compacted';
  const folds = isFolded && steps.some(({ edits }) => edits > 0) ? 1 : 0;
  const counted = usage ? { tokensBefore, tokensAfter } : {};
  return {
    ...noTotals,
    requests: 1,
    folds,
    recalls: recalls.length,
    compressions: (isFolded ? compressions : []).reduce(addCompression, noCompressions),
    ...counted,
    answered: usage ? 1 : 0,
    usage,
    priced: money ? 1 : 0,
    money: money && {
      paid: money.paid,
      recalls: money.recalls,
      folds: money.fold,
      summaries: 0,
      untouched: money.untouched,
      untouchedUsage: money.untouchedUsage,
      net: money.net,
      tokensFolded: isFolded ? tokensFoldedBy(receipt) : 0,
    },
  };
}

/** Returns the tokens that the fold of a request took out. */
export function tokensFoldedBy({ steps }: Pick<Receipt, 'steps'>): number {
  return steps.reduce((sum, { tokensSaved }) => sum + Math.max(0, tokensSaved), 0);
}

/** Returns the break-even point of these totals, with the mean request as the cost of an extra one. Undefined if nothing was folded or priced. */
export function breakEvenOf({ money, priced }: Totals): number | undefined {
  if (!money || priced === 0) return undefined;
  const { net: saved, tokensFolded, paid } = money;
  const extra = extraRequestsPer1000Tokens({ saved, tokensFolded, perRequest: paid.total / priced });
  return extra === undefined ? undefined : Math.round(extra * 100) / 100;
}

/** Without Leporello there would be no summaries, so their baseline is zero. */
function totalsOfSummary({ usage, paid }: SummaryReceipt): Totals {
  return {
    ...noTotals,
    summaries: 1,
    usage,
    money: paid && {
      paid,
      recalls: 0,
      folds: 0,
      summaries: paid.total,
      untouched: noBill,
      untouchedUsage: noUsage,
      net: usd(-paid.total),
      tokensFolded: 0,
    },
  };
}

function addedTotals(one: Totals, other: Totals): Totals {
  return {
    requests: one.requests + other.requests,
    folds: one.folds + other.folds,
    recalls: one.recalls + other.recalls,
    compressions: addedCompressions(one.compressions, other.compressions),
    summaries: one.summaries + other.summaries,
    tokensBefore: knownOf(one.tokensBefore, other.tokensBefore, (a, b) => a + b),
    tokensAfter: knownOf(one.tokensAfter, other.tokensAfter, (a, b) => a + b),
    answered: one.answered + other.answered,
    usage: knownOf(one.usage, other.usage, addedUsage),
    priced: one.priced + other.priced,
    money: knownOf(one.money, other.money, addedMoney),
    measuring: knownOf(one.measuring, other.measuring, (a, b) => usd(a + b)),
  };
}

function addedMoney(one: SummedMoney, other: SummedMoney): SummedMoney {
  return {
    paid: addedBill(one.paid, other.paid),
    recalls: usd(one.recalls + other.recalls),
    folds: usd(one.folds + other.folds),
    summaries: usd(one.summaries + other.summaries),
    untouched: addedBill(one.untouched, other.untouched),
    untouchedUsage: addedUsage(one.untouchedUsage, other.untouchedUsage),
    net: usd(one.net + other.net),
    tokensFolded: one.tokensFolded + other.tokensFolded,
  };
}

/** Adds two values. Unknown is not zero: adding it leaves the known value unchanged. */
function knownOf<T>(one: T | undefined, other: T | undefined, add: (one: T, other: T) => T): T | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return add(one, other);
}

// Totals of compressions

function addedCompressions(one: CompressionTotals, other: CompressionTotals): CompressionTotals {
  return {
    count: one.count + other.count,
    tokensBefore: one.tokensBefore + other.tokensBefore,
    tokensAfter: one.tokensAfter + other.tokensAfter,
    under: one.under + other.under,
    over: one.over + other.over,
    problems: one.problems + other.problems,
    by: {
      summarizer: one.by.summarizer + other.by.summarizer,
      extractive: one.by.extractive + other.by.extractive,
      both: one.by.both + other.by.both,
      merge: one.by.merge + other.by.merge,
    },
  };
}

export function addCompression(totals: CompressionTotals, made: Compression): CompressionTotals {
  return {
    count: totals.count + 1,
    tokensBefore: totals.tokensBefore + made.tokensBefore,
    tokensAfter: totals.tokensAfter + made.tokensAfter,
    under: totals.under + Number(made.warning === 'under'),
    over: totals.over + Number(made.warning === 'over'),
    problems: totals.problems + Number(made.problem !== undefined),
    by: { ...totals.by, [made.by]: totals.by[made.by] + 1 },
  };
}

/** Returns the totals with their ratio and the tokens saved. The ratio is that of the sums, so large compressions weigh more. */
export function summaryOf(
  totals: CompressionTotals,
): CompressionTotals & { readonly ratio: number; readonly tokensSaved: number } {
  const { tokensBefore, tokensAfter } = totals;
  return {
    ...totals,
    ratio: tokensBefore / Math.max(tokensAfter, 1),
    tokensSaved: tokensBefore - tokensAfter,
  };
}
