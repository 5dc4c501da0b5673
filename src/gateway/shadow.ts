/**
 * Sends a share of folded requests again, to measure whether folds change what the model does next: the folded request once more, and the
 * client's own request twice. It begins after the served reply has ended, never changes or delays it, and stores verdicts and counts
 * only. Money is reserved before anything is sent.
 */
import { openFixed, openWaitingNotes } from '../caches.ts';
import type { ModelReply } from '../codecs/codec.ts';
import { nextTurn } from '../conversation/steps.ts';
import type { EngineRequest, PreparedRequest } from '../engine/types.ts';
import { reasonOf } from '../errors.ts';
import { type MeasuringBudget, type Reservation, settleAll } from '../experiment/budget.ts';
import { agreementsOf, decisionOf } from '../experiment/decision.ts';
import { createTurns } from '../experiment/journal.ts';
import {
  type Hold,
  type PlaceClaim,
  type ShadowFindings,
  type ShadowNotes,
  stateFor,
} from '../experiment/shadow.ts';
import { isNewFold } from '../receipts/detail.ts';
import type { Receipt, ShadowReceipt } from '../receipts/receipt.ts';
import type { PriceList } from '../tokens/model-facts.ts';
import type { ModelInfo } from '../tokens/models.ts';
import type { RecallLimits } from './recall-loop.ts';
import type { GatewayLog } from './receipts/metrics.ts';
import type { Prices, Resender } from './receipts/receipts.ts';
import { costOfSent, hasLogin, resend, type ResentReply, type ResentCalls, wholeRequest } from './resend.ts';

/** A request that was served. */
export type ServedRequest = {
  readonly tenant: string;
  readonly receipt: Receipt;
  readonly request: EngineRequest;
  readonly prepared: PreparedRequest;
  /** The model's last reply, after its recalls; undefined when it was not read to its end. */
  readonly reply: ModelReply | undefined;
  readonly resender: Resender;
};

export interface Shadow {
  /** Takes a request that was served. Returns at once; a failure is logged. */
  served(request: ServedRequest): void;
  /** Returns the holds of a tenant as far as they are known. Returns at once. */
  holds(tenant: string): readonly Hold[];
  /** Returns what was found out for a tenant. Rejects with `store-failed`. */
  findings(tenant: string): Promise<ShadowFindings>;
}

/** The settings of a shadow. */
export type ShadowSettings = {
  /** The share of requests with a new fold that are sent again; of later ones, a tenth of it. Default 0.1. */
  readonly share?: number;
  /** USD that a tenant's repeated requests may cost in a day, over all gateways on the store. Default 1. */
  readonly usdPerDay?: number;
  /** The most that they may cost, as a part of the cost of this gateway's requests of the tenant since it started. Default 0.01. */
  readonly billShare?: number;
  /** Whether strategies whose folds are shown to do harm make no new fold for a week, unless a request would not fit. Default true. */
  readonly hold?: boolean;
  /** Whether requests with a login, such as that of a subscription, are sent again, too. Default false. */
  readonly logins?: boolean;
};

export type ShadowOptions = Required<ShadowSettings> & {
  readonly notes: ShadowNotes;
  readonly budget: MeasuringBudget;
  /** Draws a number from 0 to 1 for a key. */
  readonly draw: (tenant: string, key: string) => number;
  /** A digest of all settings of folding. */
  readonly settings: string;
  readonly recall: RecallLimits;
  readonly prices: Prices;
  readonly infoOf: (model: string | undefined) => Promise<Pick<ModelInfo, 'maxOutput'>>;
  readonly ended: (tenant: string, receipt: ShadowReceipt) => void;
  /** Called when so many notes were lost. */
  readonly lost: (notes: number) => void;
  readonly log: GatewayLog;
  readonly clock: () => number;
  readonly newId: () => string;
};

/** Requests that are repeated at the same time, over all tenants. A tenant has one. */
const maxAtOnce = 4;
/** Milliseconds that a comparison may take. */
const maxMs = 10 * 60_000;
/** Milliseconds after which other gateways take a comparison for ended although its gateway has not said so: it has crashed. */
const leaseMs = maxMs + 60_000;
/** Milliseconds without a repeated request after a tenant's provider was close to a limit. */
const restMs = 60_000;
/** Requests after the first one with a fold are drawn so much more seldom: there are many of them, and they depend on each other. */
const laterShare = 0.1;
/** Tokens of the longest reply of a model that the catalog does not know. */
const fallbackMaxOutput = 64_000;
/** Our counts may be too small, so the prompt of the client's request is reserved with a part more, and with some tokens more. */
const countMargin = { factor: 1.25, tokens: 1_000 };
/** Milliseconds after which the holds of a tenant are read again. */
const refreshMs = 60_000;
/** Digits of a digest that are enough to distinguish requests and conversations. */
const digestLength = 16;

/** A request that was drawn. */
type DrawnRequest = ServedRequest & {
  readonly reply: ModelReply;
  readonly unit: string;
  readonly model: string;
  readonly strategies: string;
  readonly probability: number;
};

/** The highest cost of one request with the folded prompt, and with the whole one. `mostFor`: for a prompt of so many tokens. */
type CostBounds = {
  readonly prices: PriceList;
  readonly foldedTokens: number;
  readonly wholeTokens: number;
  readonly mostFor: (promptTokens: number) => number;
};

/** A comparison in progress. */
type RunningComparison = {
  readonly started: number;
  readonly sent: ResentCalls;
  readonly reservations: Reservation[];
  problem?: string;
  place?: PlaceClaim;
};

export function openShadow(options: ShadowOptions): Shadow {
  const { notes, clock, log } = options;
  const running = new Set<string>();
  const restsUntil = openFixed<string, number>('rests of shadows');
  /** USD since this process began, by tenant: what its requests cost, and what was reserved or spent to repeat some. */
  const bills = openFixed<string, { paid: number; measured: number }>('bills of shadows');
  const known = openFixed<string, { readonly holds: readonly Hold[]; readonly readAt: number }>(
    'holds of shadows',
  );
  /** Sets of strategies for which no verdict was possible: they are drawn twice as often. */
  const undecided = new Set<string>();
  /** Runs work with the notes of a tenant. */
  const inTurn = createTurns();
  /** Notes about requests that were drawn and not compared. */
  const waiting = openWaitingNotes('shadow');

  function billOf(tenant: string): { paid: number; measured: number } {
    const bill = bills.get(tenant) ?? { paid: 0, measured: 0 };
    bills.set(tenant, bill);
    return bill;
  }

  /** Returns a request that is drawn; undefined for one that is not, or that is not part of the experiment. */
  function drawn(served: ServedRequest): DrawnRequest | undefined {
    const { tenant, receipt, prepared, reply } = served;
    const { strategies = '', model = 'unknown' } = receipt;
    const link = prepared.identity.links.at(-1);
    const isFolded = receipt.upstreamStatus === 200 && receipt.outcome.status === 'compacted';
    if (!isFolded || !reply || strategies === '' || link === undefined) return undefined;
    if (receipt.experiment === 'control') return undefined;
    const boost = undecided.has(`${tenant} ${model} ${strategies}`) ? 2 : 1;
    const share = options.share * (isNewFold(receipt) ? 1 : laterShare);
    const probability = Math.min(1, share * boost);
    if (options.draw(tenant, `shadow ${link}`) >= probability) return undefined;
    return { ...served, reply, model, strategies, probability, unit: link.slice(0, digestLength) };
  }

  /** Returns why a request is not sent again. */
  function obstacleTo({ tenant, receipt, prepared, resender, request }: DrawnRequest): string | undefined {
    const { tokensBefore = 0, window = Number.POSITIVE_INFINITY } = receipt;
    if (running.has(tenant) || running.size >= maxAtOnce) return inProgress;
    if ((restsUntil.get(tenant) ?? 0) > clock()) return nearLimit;
    if (!prepared.maySendClientBody) return 'the client sent only the end of the conversation';
    if (tokensBefore > window) return 'the whole conversation exceeds the window';
    if (!options.logins && hasLogin(resender.headers)) return 'it was sent with a login';
    if (request.codec.resending(request.body).effect !== undefined) return 'it has an effect at the provider';
    return undefined;
  }

  async function compare(drawnRequest: DrawnRequest): Promise<void> {
    const { tenant, model, unit } = drawnRequest;
    const now: RunningComparison = { started: clock(), sent: [], reservations: [] };
    if (await inTurn(tenant, () => notes.isCompared(tenant, unit))) return;
    const bounds = await boundsOf(options, drawnRequest);
    if (typeof bounds === 'string') return dropped(drawnRequest, bounds);
    try {
      const replies = await repliesTo(drawnRequest, now, bounds);
      if (replies) await noteReplies(drawnRequest, replies);
    } finally {
      const cost = costOfSent(now.sent, bounds.prices, model);
      const asReserved = now.reservations.reduce((sum, { usd }) => sum + usd, 0);
      billOf(tenant).measured += cost - asReserved;
      await settleAll(now.reservations, cost);
      if (now.place === 'mine') await inTurn(tenant, () => notes.release(tenant)).catch(() => undefined);
      await ended(drawnRequest, now, cost);
    }
  }

  /** Sends the three requests, one after the other. Returns undefined when there is nothing to compare; `now.problem` says why. */
  async function repliesTo(
    { tenant, unit, request, prepared, resender }: DrawnRequest,
    now: RunningComparison,
    { foldedTokens, wholeTokens, mostFor }: CostBounds,
  ): Promise<Replies | undefined> {
    const reserve = (usd: number) => reserved(tenant, usd, now);
    const first = mostFor(foldedTokens) + 2 * mostFor(wholeTokens);
    if (!(await reserve(first))) return undefined;
    now.place = await inTurn(tenant, () => notes.claim(tenant, unit, leaseMs));
    if (now.place === 'busy') now.problem = inProgress;
    if (now.place !== 'mine') return undefined;
    const signal = AbortSignal.timeout(maxMs);
    const send = (body: Uint8Array) => resender.send(body, signal);
    const shared = { codec: request.codec, recall: options.recall, send, signal, reserve, sent: now.sent };
    const replyTo = async (again: PreparedRequest, tokens: number): Promise<Replied | undefined> => {
      // A byte that a continuation adds is at most one token.
      const most = (moreBytes: number) => mostFor(tokens + moreBytes);
      const answer = await resend({ ...shared, prepared: again, mostFor: most });
      if (answer.isLimited) restsUntil.set(tenant, clock() + restMs);
      if (answer.status === 'replied') return answer;
      now.problem ??= answer.reason;
      return undefined;
    };
    const folded = await replyTo(prepared, foldedTokens);
    if (!folded || rests(folded, now)) return undefined;
    const wholePrepared = await wholeRequest(request, prepared);
    const whole = await replyTo(wholePrepared, wholeTokens);
    if (!whole || rests(whole, now)) return undefined;
    const wholeAgain = await replyTo(wholePrepared, wholeTokens);
    return wholeAgain && { folded, whole: [whole, wholeAgain] };
  }

  async function reserved(tenant: string, usd: number, now: RunningComparison): Promise<boolean> {
    const bill = billOf(tenant);
    if (bill.measured + usd > options.billShare * bill.paid) {
      now.problem ??= "the comparisons' share of the tenant's bill might have been exceeded";
      return false;
    }
    const reservation = await options.budget.reserve(tenant, usd);
    if (!reservation) {
      now.problem ??= 'the cap of the day might have been exceeded';
      return false;
    }
    bill.measured += usd;
    now.reservations.push(reservation);
    return true;
  }

  async function noteReplies(
    { tenant, receipt, prepared, reply, unit, model, strategies, probability }: DrawnRequest,
    { folded, whole }: Replies,
  ): Promise<void> {
    const agreements = agreementsOf(
      [decisionOf(reply), decisionOf(folded.reply)],
      [decisionOf(whole[0].reply), decisionOf(whole[1].reply)],
    );
    const key = { model, strategies, settings: options.settings };
    const findings = await inTurn(tenant, async () => {
      await notes.compared(tenant, {
        ...key,
        unit,
        lastAt: clock(),
        conversation: prepared.identity.beginning?.slice(0, digestLength) ?? '',
        isFirst: isNewFold(receipt),
        probability,
        agreements,
        recalls: receipt.recalls.length + folded.recalls,
      });
      return notes.read(tenant);
    });
    const state = stateFor(findings, key);
    const name = `${tenant} ${model} ${strategies}`;
    if (state === 'not shown') undecided.add(name);
    else undecided.delete(name);
    if (state !== 'harm shown' || !options.hold) return;
    await inTurn(tenant, () => notes.hold(tenant, model, strategies, clock()));
    known.delete(tenant);
    log.warn(
      { model, strategies },
      'folds changed what the model did next; these strategies make no new fold for a week',
    );
  }

  /** Adds up what a comparison cost, whether it succeeded or not. */
  async function ended(drawnRequest: DrawnRequest, now: RunningComparison, usd: number): Promise<void> {
    const { tenant, model, receipt } = drawnRequest;
    const { sent, problem, started } = now;
    // The receipt comes first: it must show the money also if the store fails.
    if (sent.length > 0)
      options.ended(tenant, {
        kind: 'shadow',
        id: options.newId(),
        at: started,
        path: receipt.path,
        outcome: problem === undefined ? { status: 'compared' } : { status: 'failed', reason: problem },
        session: receipt.session,
        behind: receipt.id,
        model,
        calls: sent.length,
        usd,
        ms: clock() - started,
      });
    const reasons = problem === undefined ? {} : { [problem]: 1 };
    await addSums(tenant, model, { calls: sent.length, usd, dropped: reasons });
  }

  async function dropped({ tenant, model }: DrawnRequest, reason: string): Promise<void> {
    const leave = waiting.enter(0);
    if (!leave) return options.lost(1);
    await addSums(tenant, model, { dropped: { [reason]: 1 } }).finally(leave);
  }

  async function addSums(tenant: string, model: string, sums: Parameters<ShadowNotes['add']>[3]) {
    await inTurn(tenant, () => notes.add(tenant, model, clock(), sums)).catch((error: unknown) => {
      options.lost(1);
      throw error;
    });
  }

  function begin(one: DrawnRequest): void {
    const { tenant } = one;
    const obstacle = obstacleTo(one);
    if (obstacle !== undefined) {
      dropped(one, obstacle).catch(failed);
      return;
    }
    running.add(tenant);
    void compare(one)
      .catch(failed)
      .finally(() => running.delete(tenant));
  }

  function failed(error: unknown): void {
    log.warn({ reason: reasonOf(error) }, 'a request could not be compared with its unfolded form');
  }

  async function readHolds(tenant: string): Promise<void> {
    const now = clock();
    const holds = await inTurn(tenant, () => notes.holds(tenant, now));
    known.set(tenant, { holds, readAt: now });
  }

  return {
    served(request) {
      const { tenant, receipt } = request;
      billOf(tenant).paid += receipt.money?.paid.total ?? 0;
      if (receipt.upstreamStatus === 429) restsUntil.set(tenant, clock() + restMs);
      const one = drawn(request);
      // The served reply goes on first: to read the request takes time.
      if (one)
        nextTurn()
          .then(() => begin(one))
          .catch(failed);
    },
    holds(tenant) {
      const here = known.get(tenant);
      const now = clock();
      if (!here || now - here.readAt > refreshMs) {
        known.set(tenant, { holds: here?.holds ?? [], readAt: now });
        readHolds(tenant).catch(() => undefined);
      }
      return here?.holds.filter(({ until }) => until > now) ?? [];
    },
    findings: (tenant) => inTurn(tenant, () => notes.read(tenant)),
  };
}

/** True if no more requests should follow this reply. */
function rests({ isLimited }: ResentReply, now: RunningComparison): boolean {
  if (isLimited) now.problem ??= nearLimit;
  return isLimited;
}

const inProgress = 'another one was in progress';
const nearLimit = 'the provider was close to a rate limit';

type Replied = ResentReply & { readonly status: 'replied' };
type Replies = { readonly folded: Replied; readonly whole: readonly [Replied, Replied] };

/** Returns the highest costs of the requests, or why they are unknown. */
async function boundsOf(
  { prices: load, infoOf }: Pick<ShadowOptions, 'prices' | 'infoOf'>,
  { receipt, request }: DrawnRequest,
): Promise<CostBounds | string> {
  const { model, rounds, tokensBefore = 0, tokensAfter = 0, bytesBefore, bytesAfter } = receipt;
  const foldedTokens = rounds[0]?.input;
  if (foldedTokens === undefined) return 'the provider reported no usage';
  const [prices, { maxOutput = fallbackMaxOutput }] = await Promise.all([load(), infoOf(model)]);
  const { maxOutputTokens = maxOutput, replies = 1 } = request.codec.resending(request.body);
  const growth = tokensAfter > 0 ? tokensBefore / tokensAfter : bytesBefore / bytesAfter;
  const { factor, tokens } = countMargin;
  const wholeTokens = Math.ceil(foldedTokens * Math.max(1, growth) * factor) + tokens;
  if (!prices.priceOf(model, wholeTokens)) return 'the price of the model is unknown';
  const mostFor = (promptTokens: number): number => {
    const { input, cacheRead, cacheWrite, cacheWriteLong = 0, output } = prices.priceOf(model, promptTokens)!;
    const dearest = Math.max(input, cacheRead, cacheWrite, cacheWriteLong);
    return (promptTokens * dearest + maxOutputTokens * replies * output) / 1e6;
  };
  return { prices, foldedTokens, wholeTokens, mostFor };
}
