/**
 * Runs the holdout: notes each request of a conversation whose arms have parted, and reports what folding costs or saves. Notes are made
 * about a second after the reply has ended, for all requests since then at once; no request waits for them. A note that is lost, because the
 * store failed or too many were waiting, leaves the cost of its conversation unknown.
 */
import { openWaitingNotes, waitingSpecs } from '../caches.ts';
import { readInSlices, unremembered } from '../codecs/read-body.ts';
import { openSlices, runInSlices, type Steps } from '../conversation/steps.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import type { EngineRequest, PreparedRequest } from '../engine/types.ts';
import { groupBy } from '../es2024.ts';
import type { Receipt, SummaryReceipt } from '../receipts/receipt.ts';
import {
  type Caps,
  type Estimated,
  estimateHoldout,
  type HoldoutEstimate,
  outcomeDifference,
} from './estimate.ts';
import { createJournal, createTurns, trialJournal, type TrialEra, type TrialRecord } from './journal.ts';
import { noCounts, addedCounts, outcomesOf } from './outcomes.ts';

/** A request that has ended: its receipt, the client's own request, and how it was prepared. */
export type EndedExchange = {
  readonly receipt: Receipt;
  readonly request: EngineRequest;
  readonly prepared: PreparedRequest;
};

/** The results of one experiment: one set of settings and one model. */
export type ExperimentReport = Omit<TrialEra, 'settings'> & {
  readonly since: number;
  /** Conversations that have not ended: they are left out of both arms. */
  readonly open: number;
  readonly rescued: number;
  /** Ended conversations with a request whose cost is unknown: they are left out of the costs. */
  readonly unpriced: number;
  readonly estimate: HoldoutEstimate;
  /** Mean difference of each outcome per conversation: with folding minus without. */
  readonly outcomes: Readonly<Record<string, Estimated>>;
};

export interface HoldoutRunner {
  /** Notes a request. Returns at once. */
  note(exchange: EndedExchange): void;
  /** Notes what a summary cost that was written in the background. Returns at once. */
  noteSummary(tenant: string, receipt: SummaryReceipt): void;
  /** Returns the results of a tenant, the newest experiment first. Rejects with `store-failed`. */
  report(tenant: string): Promise<readonly ExperimentReport[]>;
}

export type HoldoutOptions = {
  readonly encryptedStore: Pick<EncryptedStore, 'keep' | 'getSealedMany'>;
  readonly rate: number;
  readonly capUsd: number;
  /** A digest of all settings of folding. */
  readonly settings: string;
  readonly clock: () => number;
  /** Called when so many notes were lost. */
  readonly lost: (notes: number) => void;
};

/** A conversation has ended when it was silent for so long, in milliseconds. Later requests no longer count. */
const silentMs = 6 * 60 * 60 * 1_000;

export function openHoldout({
  encryptedStore,
  rate,
  capUsd,
  settings,
  clock,
  lost,
}: HoldoutOptions): HoldoutRunner {
  const journal = createJournal(encryptedStore, trialJournal);
  /** The unit of each session that this process knows. */
  const unitOfSession = new Map<string, string>();
  const unitOfReceipt = new Map<string, string>();
  /** Requests that are not noted yet, by conversation. */
  let pending = new Map<string, NewExchanges>();
  let collected = 0;
  const waiting = openWaitingNotes('holdout');
  /** Notes that were lost and that the record of their unit does not count yet. */
  const lostOf = new Map<string, LostNotes>();
  const inTurn = createTurns();

  /** Notes the requests of one conversation together: only the newest is read, and their record is written once. */
  async function write({ unit, beginning, exchanges }: NewExchanges): Promise<void> {
    const { tenant } = exchanges[0]!.request;
    const trial = exchanges.find(({ prepared }) => prepared.trial)?.prepared.trial;
    const known = await journal.find(tenant, unit);
    if (!known && !trial) return;
    const noted = exchanges.filter(({ receipt }) => !known || receipt.at - known.lastAt <= silentMs);
    if (noted.length === 0) return;
    const { request } = noted.at(-1)!;
    const from = known?.counted[beginning] ?? trial?.at ?? 0;
    const conversation = await readInSlices(request.codec, request.body, unremembered, openSlices());
    const counts = outcomesOf(conversation, from);
    const isNew = known !== undefined && known.counted[beginning] === undefined;
    const receipts = noted.map(({ receipt }) => receipt);
    const tokens = receipts[0]!.tokensBefore ?? 0;
    const sum = (figureOf: (receipt: Receipt) => number) =>
      receipts.reduce((total, receipt) => total + figureOf(receipt), 0);
    const isFolded = receipts.some(
      ({ replayed, steps }) => replayed > 0 || steps.some(({ edits }) => edits > 0),
    );
    await journal.change(tenant, unit, (own) => ({
      unit,
      isControl: known?.isControl ?? trial!.isControl,
      era: known?.era ?? { rate, capUsd, settings, model: receipts[0]!.model ?? 'unknown' },
      firstAt: own?.firstAt ?? receipts[0]!.at,
      lastAt: Math.max(own?.lastAt ?? 0, ...receipts.map(({ at }) => at)),
      usd: (own?.usd ?? 0) + sum(({ money }) => money?.paid.total ?? 0),
      unpriced: (own?.unpriced ?? 0) + sum(({ money }) => (money ? 0 : 1)) + takeLost(tenant, unit),
      requests: (own?.requests ?? 0) + receipts.length,
      recalls: (own?.recalls ?? 0) + sum(({ recalls }) => recalls.length),
      foldedTokens: Math.max(
        own?.foldedTokens ?? 0,
        ...receipts.map(({ tokensBefore = 0, tokensAfter = tokensBefore }) => tokensBefore - tokensAfter),
      ),
      isRescued: own?.isRescued === true || (trial?.isControl === true && isFolded),
      newConversations: (own?.newConversations ?? 0) + (isNew ? 1 : 0),
      covariates: known?.covariates ?? [
        Math.log(Math.max(tokens, 1) / 50_000),
        Math.log(Math.max(conversation.messages.length, 1) / 50),
      ],
      counts: addedCounts(own?.counts ?? noCounts, counts),
      counted: { ...own?.counted, [beginning]: conversation.messages.length },
    }));
  }

  function lose(tenant: string, unit: string, notes: number): void {
    const key = `${tenant} ${unit}`;
    remember(lostOf, key, { tenant, unit, notes: notes + (lostOf.get(key)?.notes ?? 0) });
    lost(notes);
  }

  function takeLost(tenant: string, unit: string): number {
    const key = `${tenant} ${unit}`;
    const { notes = 0 } = lostOf.get(key) ?? {};
    lostOf.delete(key);
    return notes;
  }

  /** Adds to the records of this gateway how many of their notes were lost. */
  async function writeLost(tenant: string): Promise<void> {
    for (const { unit } of [...lostOf.values()].filter((one) => one.tenant === tenant)) {
      const known = await journal.find(tenant, unit);
      if (!known) continue;
      const notes = takeLost(tenant, unit);
      await journal.change(tenant, unit, (own = nothingOf(known)) => ({
        ...own,
        unpriced: own.unpriced + notes,
      }));
    }
  }

  /** Writes notes about a unit, after what waits already. */
  async function later(tenant: string, unit: string, leaves: readonly Leave[], task: () => Promise<void>) {
    try {
      await inTurn(tenant, task);
    } catch {
      lose(tenant, unit, leaves.length);
    } finally {
      for (const leave of leaves) leave();
    }
    // A store that fails again leaves them for the next time.
    if (lostOf.size > 0) await inTurn(tenant, () => writeLost(tenant)).catch(() => undefined);
  }

  function writePending(): void {
    const conversations = [...pending.values()];
    pending = new Map();
    collected = 0;
    for (const one of conversations)
      void later(one.exchanges[0]!.request.tenant, one.unit, one.leaves, () => write(one));
  }

  return {
    note(exchange) {
      const { receipt, request, prepared } = exchange;
      const { tenant, session } = request;
      const { trial, identity } = prepared;
      const sessionKey = session && `${tenant} ${session}`;
      const unit = trial?.unit ?? (sessionKey && unitOfSession.get(sessionKey));
      if (unit === undefined) return;
      if (trial && sessionKey) remember(unitOfSession, sessionKey, unit);
      remember(unitOfReceipt, receipt.id, unit);
      const leave = waiting.enter(receipt.bytesBefore + receipt.bytesAfter);
      if (!leave) return lose(tenant, unit, 1);
      const beginning = identity.beginning?.slice(0, beginningLength) ?? '';
      const key = `${tenant} ${unit} ${beginning}`;
      if (pending.size === 0) setTimeout(writePending, collectMs).unref();
      const exchanges = [...(pending.get(key)?.exchanges ?? []), exchange];
      const leaves = [...(pending.get(key)?.leaves ?? []), leave];
      pending.set(key, { unit, beginning, exchanges, leaves });
      collected += 1;
      if (exchanges.length >= maxCollected || collected >= maxCollectedOfAll) writePending();
    },
    noteSummary(tenant, { behind, paid }) {
      const unit = unitOfReceipt.get(behind);
      if (unit === undefined || !paid) return;
      writePending();
      const leave = waiting.enter(0);
      if (!leave) return lose(tenant, unit, 1);
      void later(tenant, unit, [leave], async () => {
        const known = await journal.find(tenant, unit);
        if (!known) return;
        await journal.change(tenant, unit, (own = nothingOf(known)) => ({
          ...own,
          usd: own.usd + paid.total,
        }));
      });
    },
    async report(tenant) {
      writePending();
      const records = await inTurn(tenant, () => journal.list(tenant));
      return runInSlices(reportsOf(records, clock()), openSlices());
    },
  };
}

/** Requests of one conversation that are noted together. */
type NewExchanges = {
  readonly unit: string;
  readonly beginning: string;
  readonly exchanges: readonly EndedExchange[];
  /** To call when they are written: one of each. */
  readonly leaves: readonly Leave[];
};

type Leave = () => void;

type LostNotes = { readonly tenant: string; readonly unit: string; readonly notes: number };

/** Returns the record of a gateway that has noted nothing about a unit yet. */
function nothingOf(known: TrialRecord): TrialRecord {
  const sums = { usd: 0, unpriced: 0, requests: 0, recalls: 0, foldedTokens: 0, newConversations: 0 };
  return { ...known, ...sums, isRescued: false, counts: noCounts, counted: {} };
}

/** Milliseconds for which requests are collected, so that noting them does not delay the next ones. */
const collectMs = 1_000;

/** Requests of one conversation that are collected at most: their bodies stay in memory. */
const maxCollected = 20;
/** Requests of all conversations that are collected at most: half of those that may wait. */
const maxCollectedOfAll = waitingSpecs.holdout.max / 2;

/** The number of sessions, and of receipts, that are remembered. */
const maxRemembered = 2_000;
const beginningLength = 16;

function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > maxRemembered) map.delete(map.keys().next().value!);
}

/** Reports each experiment of these records, the newest first, in steps: there may be very many conversations. */
export function* reportsOf(records: readonly TrialRecord[], now: number): Steps<readonly ExperimentReport[]> {
  const reports: ExperimentReport[] = [];
  for (const units of groupBy(records, ({ era }) => JSON.stringify(era)).values())
    reports.push(yield* reportOf(units, now));
  return reports.toSorted((one, other) => other.since - one.since);
}

/** Requests, folded tokens and counts of one conversation at most. They are fixed, so that intervals hold at every look. */
const fixedCaps: Omit<Caps, 'usd'> = { requests: 200, foldedTokens: 200_000 };
const maxCount = 100;

/** The outcomes that are reported, by name. */
const outcomeFigures: Readonly<Record<string, (unit: TrialRecord) => number>> = {
  requests: ({ requests }) => requests,
  recalls: ({ recalls }) => recalls,
  'calls that fetch the same again': ({ counts }) => counts.refetches,
  'failed edits': ({ counts }) => counts.failedEdits,
  'failed calls': ({ counts }) => counts.toolErrors,
  "user's messages": ({ counts }) => counts.userTurns,
  'conversations begun later in the session': ({ newConversations }) => newConversations,
};

function* reportOf(units: readonly TrialRecord[], now: number): Steps<ExperimentReport> {
  const { rate, capUsd, model } = units[0]!.era;
  const ended = units.filter(({ lastAt }) => now - lastAt > silentMs);
  const priced = ended.filter(({ unpriced }) => unpriced === 0);
  const trials = priced.map((unit) => ({ ...unit, foldedTokens: unit.isControl ? 0 : unit.foldedTokens }));
  const outcomes: Record<string, Estimated> = {};
  for (const [name, figureOf] of Object.entries(outcomeFigures)) {
    yield;
    const counts = ended.map((unit) => ({
      isControl: unit.isControl,
      count: Math.min(figureOf(unit), maxCount),
    }));
    outcomes[name] = outcomeDifference(counts, rate, maxCount);
  }
  return {
    rate,
    capUsd,
    model,
    since: units.reduce((first, { firstAt }) => Math.min(first, firstAt), Number.POSITIVE_INFINITY),
    open: units.length - ended.length,
    unpriced: ended.length - priced.length,
    rescued: ended.filter(({ isRescued }) => isRescued).length,
    estimate: yield* estimateHoldout(trials, rate, { ...fixedCaps, usd: capUsd }),
    outcomes,
  };
}
