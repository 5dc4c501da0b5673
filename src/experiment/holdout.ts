/**
 * Runs the holdout: notes each request of a conversation whose arms have parted, and reports what folding costs or saves. Notes are made
 * about a second after the reply has ended, for all requests since then at once; no request waits for them. A note that is lost, because the
 * store failed or too many were waiting, leaves the cost of its conversation unknown.
 */
import { openWaitingNotes, waitingSpecs } from './waiting-notes.ts';
import { readInSlices, unremembered } from '../codecs/read-body.ts';
import { openSlices, runInSlices, type Steps } from '../conversation/steps.ts';
import { createTurns } from '../store/store.ts';
import { startSlicedTimer } from '../store/wrapped-store.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import type { Trial } from '../store/folds.ts';
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
import {
  createJournal,
  type RecordChange,
  trialJournal,
  type TrialEra,
  type TrialRecord,
} from './journal.ts';
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
  /** Sums over the requests that are not noted yet, by conversation. */
  let pending = new Map<string, NewRequests>();
  const waiting = openWaitingNotes('holdout');
  /** Notes that were lost and that the record of their unit does not count yet. */
  const lostOf = new Map<string, LostNotes>();
  const inTurn = createTurns();

  /** Notes the requests of several conversations: the newest of each is read, and records that stand together are written once. */
  async function write(tenant: string, conversations: readonly NewRequests[]): Promise<void> {
    const changes: RecordChange<TrialRecord>[] = [];
    for (const added of conversations) {
      const { unit, beginning, trial, newest, sums } = added;
      const known = await journal.find(tenant, unit);
      if (!known && !trial) continue;
      if (known && sums.firstAt - known.lastAt > silentMs) continue;
      const { codec, body } = newest;
      const conversation =
        newest.conversation ?? (await readInSlices(codec, body, unremembered, openSlices()));
      const counts = outcomesOf(conversation, known?.counted[beginning] ?? trial?.at ?? 0);
      const era = { rate, capUsd, settings, model: sums.model };
      const lostNotes = () => takeLost(tenant, unit);
      const seen = { era, counts, messages: conversation.messages.length, lostNotes };
      changes.push({ unit, change: withRequests(added, seen) });
    }
    await journal.change(tenant, changes);
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
      if (!(await journal.find(tenant, unit))) continue;
      const notes = takeLost(tenant, unit);
      const change = addedTo(({ unpriced }) => ({ unpriced: unpriced + notes }));
      await journal.change(tenant, [{ unit, change }]);
    }
  }

  /** Writes notes of a tenant, after what waits already. */
  async function later(tenant: string, notes: readonly WaitingNote[], task: () => Promise<void>) {
    try {
      await inTurn(tenant, task);
    } catch {
      for (const { unit, sums } of notes) lose(tenant, unit, sums?.requests ?? 1);
    } finally {
      for (const { leave } of notes) leave();
    }
    // A store that fails again leaves them for the next time.
    if (lostOf.size > 0) await inTurn(tenant, () => writeLost(tenant)).catch(() => undefined);
  }

  function writePending(): void {
    const conversations = [...pending.values()];
    pending = new Map();
    for (const [tenant, own] of groupBy(conversations, ({ newest }) => newest.tenant))
      void later(tenant, own, () => write(tenant, own));
  }

  return {
    note({ receipt, request, prepared }) {
      const { tenant, session } = request;
      const { trial, identity } = prepared;
      const sessionKey = session && `${tenant} ${session}`;
      const unit = trial?.unit ?? (sessionKey && unitOfSession.get(sessionKey));
      if (unit === undefined) return;
      if (trial && sessionKey) remember(unitOfSession, sessionKey, unit);
      remember(unitOfReceipt, receipt.id, unit);
      const beginning = identity.beginning?.slice(0, beginningLength) ?? '';
      const key = `${tenant} ${unit} ${beginning}`;
      if (pending.size === 0) startSlicedTimer(collectMs, writePending).unref();
      // The bodies of earlier requests are no longer needed.
      const before = pending.get(key);
      before?.leave();
      const sums = sumsWith(before?.sums, receipt);
      const leave = waiting.enter(receipt.bytesBefore + receipt.bytesAfter);
      if (!leave) {
        pending.delete(key);
        return lose(tenant, unit, sums.requests);
      }
      const { codec, body } = request;
      const newest = { tenant, codec, body, conversation: prepared.conversation };
      pending.set(key, { unit, beginning, trial: before?.trial ?? trial, newest, sums, leave });
      if (pending.size >= maxCollected) writePending();
    },
    noteSummary(tenant, { behind, paid }) {
      const unit = unitOfReceipt.get(behind);
      if (unit === undefined || !paid) return;
      writePending();
      const leave = waiting.enter(0);
      if (!leave) return lose(tenant, unit, 1);
      const change = addedTo(({ usd }) => ({ usd: usd + paid.total }));
      void later(tenant, [{ unit, leave }], () => journal.change(tenant, [{ unit, change }]));
    },
    async report(tenant) {
      writePending();
      const records = await inTurn(tenant, () => journal.list(tenant));
      return runInSlices(reportsOf(records, clock()), openSlices());
    },
  };
}

/** One note that waits to be written. */
type WaitingNote = {
  readonly unit: string;
  /** To call when it is written or lost. */
  readonly leave: () => void;
  readonly sums?: RequestSums;
};

/** The requests of one conversation that are noted together. */
type NewRequests = WaitingNote & {
  readonly beginning: string;
  readonly trial: Trial | undefined;
  readonly newest: Pick<EngineRequest, 'tenant' | 'codec' | 'body'> & Pick<PreparedRequest, 'conversation'>;
  readonly sums: RequestSums;
};

type LostNotes = { readonly tenant: string; readonly unit: string; readonly notes: number };

/** Sums over requests of one conversation. */
type RequestSums = Pick<
  TrialRecord,
  'firstAt' | 'lastAt' | 'usd' | 'unpriced' | 'requests' | 'recalls' | 'foldedTokens'
> & {
  readonly isFolded: boolean;
  /** The model and the tokens of the first of them. */
  readonly model: string;
  readonly tokens: number;
};

function sumsWith(sums: RequestSums | undefined, receipt: Receipt): RequestSums {
  const { at, money, recalls, replayed, steps, tokensBefore = 0, tokensAfter = tokensBefore } = receipt;
  return {
    firstAt: sums?.firstAt ?? at,
    lastAt: Math.max(sums?.lastAt ?? 0, at),
    usd: (sums?.usd ?? 0) + (money?.paid.total ?? 0),
    unpriced: (sums?.unpriced ?? 0) + (money ? 0 : 1),
    requests: (sums?.requests ?? 0) + 1,
    recalls: (sums?.recalls ?? 0) + recalls.length,
    foldedTokens: Math.max(sums?.foldedTokens ?? 0, tokensBefore - tokensAfter),
    isFolded: sums?.isFolded === true || replayed > 0 || steps.some(({ edits }) => edits > 0),
    model: sums?.model ?? receipt.model ?? 'unknown',
    tokens: sums?.tokens ?? tokensBefore,
  };
}

/** Facts of a conversation besides the sums of its new requests. */
type SeenConversation = {
  /** The experiment, for a unit of which there is no record yet. */
  readonly era: TrialEra;
  /** The outcomes in the messages that were not counted before. */
  readonly counts: ReturnType<typeof outcomesOf>;
  readonly messages: number;
  /** Takes the number of notes of the unit that were lost. */
  readonly lostNotes: () => number;
};

/** Adds new requests of one conversation to this gateway's record of its unit. */
function withRequests(
  { unit, beginning, trial, sums }: NewRequests,
  { era, counts, messages, lostNotes }: SeenConversation,
): RecordChange<TrialRecord>['change'] {
  return (own, everybodys) => ({
    unit,
    isControl: everybodys?.isControl ?? trial!.isControl,
    era: everybodys?.era ?? era,
    firstAt: own?.firstAt ?? sums.firstAt,
    lastAt: Math.max(own?.lastAt ?? 0, sums.lastAt),
    usd: (own?.usd ?? 0) + sums.usd,
    unpriced: (own?.unpriced ?? 0) + sums.unpriced + lostNotes(),
    requests: (own?.requests ?? 0) + sums.requests,
    recalls: (own?.recalls ?? 0) + sums.recalls,
    foldedTokens: Math.max(own?.foldedTokens ?? 0, sums.foldedTokens),
    isRescued: own?.isRescued === true || (trial?.isControl === true && sums.isFolded),
    newConversations:
      (own?.newConversations ?? 0) + (everybodys && everybodys.counted[beginning] === undefined ? 1 : 0),
    covariates: everybodys?.covariates ?? [
      Math.log(Math.max(sums.tokens, 1) / 50_000),
      Math.log(Math.max(messages, 1) / 50),
    ],
    counts: addedCounts(own?.counts ?? noCounts, counts),
    counted: { ...own?.counted, [beginning]: messages },
  });
}

/** Changes some sums of this gateway's record of a unit that any gateway knows. */
function addedTo(sumsOf: (own: TrialRecord) => Partial<TrialRecord>): RecordChange<TrialRecord>['change'] {
  return (own, known) => {
    if (!known) return undefined;
    const before = own ?? nothingOf(known);
    return { ...before, ...sumsOf(before) };
  };
}

/** Returns the record of a gateway that has noted nothing about a unit yet. */
function nothingOf(known: TrialRecord): TrialRecord {
  const sums = { usd: 0, unpriced: 0, requests: 0, recalls: 0, foldedTokens: 0, newConversations: 0 };
  return { ...known, ...sums, isRescued: false, counts: noCounts, counted: {} };
}

/** Milliseconds for which requests are collected, so that noting them does not delay the next ones. */
const collectMs = 1_000;

/** Conversations that are collected at most: half of those that may wait. */
const maxCollected = waitingSpecs.holdout.max / 2;

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
  "requests per user's message": ({ requests, counts }) => requests / Math.max(1, counts.userTurns),
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
