/**
 * Sends a share of folded requests again, to measure whether folds change what the model does next: the folded request once more, and the
 * client's own request twice. It begins after the served reply has ended, never changes or delays it, and stores verdicts and counts
 * only. Money is reserved before anything is sent.
 */
import { openFixed } from '../caches.ts';
import { openWaitingNotes } from '../experiment/waiting-notes.ts';
import type { ModelReply } from '../codecs/codec.ts';
import { nextTurn } from '../conversation/steps.ts';
import { createTurns } from '../store/store.ts';
import type { EngineRequest, HeldFolds, PreparedRequest } from '../engine/types.ts';
import { reasonOf } from '../errors.ts';
import { type MeasuringBudget, type Reservation, settleAll } from '../experiment/budget.ts';
import { agreementsOf, callsOf, type Decision, decisionOf, sumsOf } from '../experiment/decision.ts';
import {
  type Hold,
  type PlaceClaim,
  type ShadowFindings,
  type ShadowNotes,
  type ShadowVerdicts,
} from '../experiment/shadow.ts';
import { isNewFold } from '../receipts/detail.ts';
import type { Receipt, ShadowReceipt } from '../receipts/receipt.ts';
import type { ModelInfo } from '../tokens/models.ts';
import type { RecallLimits } from '../recall/tool.ts';
import type { GatewayLog } from './receipts/metrics.ts';
import type { Prices } from '../tokens/model-facts.ts';
import type { Resender } from './receipts/receipts.ts';
import {
  areEqual,
  boundsOf,
  conversationOf,
  type CostBounds,
  costOfSent,
  hasLogin,
  resend,
  type ResentCalls,
  type ResentReply,
  wholeRequest,
} from './resend.ts';

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
  /** Returns the folds of a tenant that are held, as far as that is known. Returns at once. */
  held(tenant: string): HeldFolds;
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
  /**
   * When strategies make no new fold, unless a request would not fit. `if-harmful` (the default): for a week after their folds were shown to do harm.
   * `unless-safe`: until their folds are shown to be harmless; the whole request is served, and the fold is only compared. `never`: a shadow only measures.
   */
  readonly hold?: 'if-harmful' | 'unless-safe' | 'never';
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
  readonly whenIdle: () => Promise<boolean>;
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
  /** True if it made a new fold, or would have. */
  readonly isFirst: boolean;
  readonly probability: number;
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
  const known = openFixed<string, ShadowVerdicts & { readonly readAt: number }>('holds of shadows');
  /** Sets of strategies for which no verdict was possible: they are drawn twice as often. */
  const undecided = openFixed<string, string>('open verdicts of shadows');
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
    const { model = 'unknown' } = receipt;
    const { heldBack } = prepared;
    const isFolded = heldBack !== undefined || receipt.outcome.status === 'compacted';
    const strategies = heldBack?.strategies ?? receipt.strategies ?? '';
    const link = prepared.identity.links.at(-1);
    if (receipt.upstreamStatus !== 200 || !isFolded || !reply) return undefined;
    if (strategies === '' || link === undefined || receipt.experiment === 'control') return undefined;
    // Harm was shown already: comparisons count again after the hold.
    const isHarmful = (hold: Hold) => hold.model === model && hold.strategies === strategies;
    if (heldBack && known.get(tenant)?.holds.some(isHarmful)) return undefined;
    const isFirst = heldBack !== undefined || isNewFold(receipt);
    const boost = undecided.has(`${tenant} ${model} ${strategies}`) ? 2 : 1;
    const share = options.share * (isFirst ? 1 : laterShare);
    const probability = Math.min(1, share * boost);
    if (options.draw(tenant, `shadow ${link}`) >= probability) return undefined;
    return { ...served, reply, model, strategies, isFirst, probability, unit: link.slice(0, digestLength) };
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
    const bounds = await boundsOf(options.prices, options.infoOf, drawnRequest);
    if (typeof bounds === 'string') return dropped(drawnRequest, bounds);
    try {
      const replies = await repliesTo(drawnRequest, now, bounds);
      if (replies) await noteReplies(drawnRequest, replies);
    } catch (error) {
      now.problem ??= reasonOf(error);
      throw error;
    } finally {
      const cost = costOfSent(now.sent, bounds.prices, model);
      const asReserved = now.reservations.reduce((sum, { usd }) => sum + usd, 0);
      billOf(tenant).measured += cost - asReserved;
      await settleAll(now.reservations, cost);
      if (now.place === 'mine') await inTurn(tenant, () => notes.release(tenant)).catch(() => undefined);
      await ended(drawnRequest, now, cost);
    }
  }

  /** Sends the requests, one after the other. Returns undefined when there is nothing to compare; `now.problem` says why. */
  async function repliesTo(
    { tenant, unit, request, prepared, reply, receipt, resender }: DrawnRequest,
    now: RunningComparison,
    { foldedTokens, wholeTokens, mostFor }: CostBounds,
  ): Promise<Replies | undefined> {
    const reserve = (usd: number) => reserved(tenant, usd, now);
    const { heldBack } = prepared;
    // A fold that was held back was not served, so it is sent twice.
    const first = (heldBack ? 2 : 1) * mostFor(foldedTokens) + 2 * mostFor(wholeTokens);
    if (!(await reserve(first))) return undefined;
    now.place = await inTurn(tenant, () => notes.claim(tenant, unit, leaseMs));
    if (now.place === 'busy') now.problem = inProgress;
    if (now.place !== 'mine') return undefined;
    const signal = AbortSignal.timeout(maxMs);
    const send = (body: Uint8Array) => resender.send(body, signal);
    const shared = { codec: request.codec, recall: options.recall, send, signal, reserve, sent: now.sent };
    const replyTo = async (again: PreparedRequest, tokens: number): Promise<Replied | undefined> => {
      if (!(await options.whenIdle())) now.problem = 'the gateway was busy';
      if (now.problem !== undefined) return undefined;
      // A byte that a continuation adds is at most one token.
      const most = (moreBytes: number) => mostFor(tokens + moreBytes);
      const answer = await resend({ ...shared, prepared: again, mostFor: most });
      if (answer.isLimited) restsUntil.set(tenant, clock() + restMs);
      if (answer.status === 'replied') return answer;
      now.problem ??= answer.reason;
      return undefined;
    };
    const tokensOut = receipt.usage?.output ?? 0;
    const recalls = receipt.recalls.length;
    const served: Replied = { status: 'replied', reply, recalls, tokensOut, isLimited: false };
    const fold = heldBack ? await heldBack.prepared() : prepared;
    if (!fold) now.problem = 'its fold was no longer in memory';
    if (!fold) return undefined;
    const wholePrepared = await wholeRequest(request, fold);
    const isServedWhole = heldBack !== undefined && areEqual(prepared.body, wholePrepared.body);
    const folded = heldBack ? [] : [served];
    const whole = isServedWhole ? [served] : [];
    while (folded.length + whole.length < 4) {
      const isFolded = folded.length < 2;
      const answer = isFolded ? await replyTo(fold, foldedTokens) : await replyTo(wholePrepared, wholeTokens);
      if (!answer) return undefined;
      (isFolded ? folded : whole).push(answer);
      if (answer.isLimited && folded.length + whole.length < 4) now.problem = nearLimit;
    }
    return { folded, whole };
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
    { tenant, request, prepared, unit, model, strategies, isFirst, probability }: DrawnRequest,
    { folded, whole }: Replies,
  ): Promise<void> {
    const agreements = agreementsOf(bothOf(folded), bothOf(whole));
    const earlier = callsOf(await conversationOf(request, prepared));
    const key = { model, strategies, settings: options.settings };
    const state = await inTurn(tenant, () =>
      notes.compared(tenant, {
        ...key,
        unit,
        lastAt: clock(),
        conversation: prepared.identity.beginning?.slice(0, digestLength) ?? '',
        isFirst,
        probability,
        agreements,
        recalls: folded.reduce((sum, { recalls }) => sum + recalls, 0),
        replies: { folded: sumsOf(folded, earlier), whole: sumsOf(whole, earlier) },
      }),
    );
    if (state === undefined) return;
    const name = `${tenant} ${model} ${strategies}`;
    if (state === 'not shown') undecided.set(name, state);
    else undecided.delete(name);
    const isHarmful = state === 'harm shown' && options.hold !== 'never';
    await inTurn(tenant, () => notes.judge(tenant, key, state, clock(), isHarmful));
    if (state !== 'too few') known.delete(tenant);
    if (!isHarmful) return;
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

  async function readVerdicts(tenant: string): Promise<void> {
    const now = clock();
    const verdicts = await inTurn(tenant, () => notes.verdicts(tenant, options.settings, now));
    known.set(tenant, { ...verdicts, readAt: now });
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
    held(tenant) {
      const { holds, safe, readAt } = known.get(tenant) ?? { holds: [], safe: [], readAt: 0 };
      const now = clock();
      if (now - readAt > refreshMs) {
        known.set(tenant, { holds, safe, readAt: now });
        readVerdicts(tenant).catch(() => undefined);
      }
      if (options.hold === 'unless-safe') return { sets: safe, allBut: true };
      return { sets: holds.filter(({ until }) => until > now) };
    },
    findings: (tenant) => inTurn(tenant, () => notes.read(tenant)),
  };
}

const inProgress = 'another one was in progress';
const nearLimit = 'the provider was close to a rate limit';

type Replied = ResentReply & { readonly status: 'replied' };
/** Two replies to the folded request, and two to the whole one. */
type Replies = { readonly folded: readonly Replied[]; readonly whole: readonly Replied[] };

function bothOf([one, other]: readonly Replied[]): readonly [Decision, Decision] {
  return [decisionOf(one!.reply), decisionOf(other!.reply)];
}
