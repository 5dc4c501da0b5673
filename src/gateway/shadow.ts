/**
 * Sends a share of folded requests again, to measure whether folds change what the model does next: the folded request once more, and the
 * client's own request twice. It begins after the served reply has ended, never changes or delays it, and stores verdicts and counts
 * only. Money is reserved before anything is sent.
 */
import { openFixed } from '../caches.ts';
import { openWaitingNotes } from '../experiment/waiting-notes.ts';
import type { ModelReply } from '../codecs/codec.ts';
import { nextTurn } from '../conversation/steps.ts';
import type { EngineRequest, HeldFolds, PreparedRequest } from '../engine/types.ts';
import { reasonOf } from '../errors.ts';
import { type Account, type Bills, type MeasuringBudget, openBills } from '../experiment/budget.ts';
import { agreementsOf, callsOf, type Decision, decisionOf, sumsOf } from '../experiment/decision.ts';
import type { ShadowFindings, ShadowNotes, ShadowVerdicts } from '../experiment/shadow.ts';
import type { ShadowState } from '../experiment/shadow-estimate.ts';
import { isNewFold } from '../receipts/detail.ts';
import type { Receipt, ShadowReceipt } from '../receipts/receipt.ts';
import type { ModelInfo } from '../tokens/models.ts';
import type { RecallLimits } from '../recall/tool.ts';
import type { GatewayLog } from './receipts/metrics.ts';
import type { Prices } from '../tokens/model-facts.ts';
import type { Resender } from './receipts/receipts.ts';
import {
  boundsOf,
  closeToLimit,
  type ComparedReplies,
  type ComparedReply,
  conversationOf,
  type CostBounds,
  costOfSent,
  hasLogin,
  repliesTo,
  type ResentCalls,
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

export function openShadow(options: ShadowOptions): Shadow {
  const { notes, clock, log } = options;
  const running = new Set<string>();
  const rests = openFixed<string, number>('rests of shadows');
  const rest = (tenant: string) => rests.set(tenant, clock() + restMs);
  const bills = openBills(options.budget, options.billShare);
  const verdicts = openVerdicts(options);
  const comparer = createComparer(options, { bills, verdicts, rest });

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
    const folds = { model, strategies };
    // Harm was shown already: comparisons count again after the hold.
    if (heldBack && verdicts.isHarmful(tenant, folds)) return undefined;
    const isFirst = heldBack !== undefined || isNewFold(receipt);
    const share = options.share * (isFirst ? 1 : laterShare);
    const probability = Math.min(1, share * (verdicts.isUndecided(tenant, folds) ? 2 : 1));
    if (options.draw(tenant, `shadow ${link}`) >= probability) return undefined;
    return { ...served, ...folds, reply, isFirst, probability, unit: link.slice(0, digestLength) };
  }

  /** Returns why a request is not sent again. */
  function obstacleTo({ tenant, receipt, prepared, resender, request }: DrawnRequest): string | undefined {
    const { tokensBefore = 0, window = Number.POSITIVE_INFINITY } = receipt;
    if (running.has(tenant) || running.size >= maxAtOnce) return inProgress;
    if ((rests.get(tenant) ?? 0) > clock()) return closeToLimit;
    if (!prepared.maySendClientBody) return 'the client sent only the end of the conversation';
    if (tokensBefore > window) return 'the whole conversation exceeds the window';
    if (!options.logins && hasLogin(resender.headers)) return 'it was sent with a login';
    if (request.codec.resending(request.body).effect !== undefined) return 'it has an effect at the provider';
    return undefined;
  }

  async function begin(one: DrawnRequest): Promise<void> {
    const obstacle = obstacleTo(one);
    if (obstacle !== undefined) return comparer.drop(one, obstacle);
    running.add(one.tenant);
    return comparer.compare(one).finally(() => running.delete(one.tenant));
  }

  function failed(error: unknown): void {
    log.warn({ reason: reasonOf(error) }, 'a request could not be compared with its unfolded form');
  }

  return {
    served(request) {
      const { tenant, receipt } = request;
      bills.paid(tenant, receipt.money?.paid.total ?? 0);
      if (receipt.upstreamStatus === 429) rest(tenant);
      const one = drawn(request);
      // The served reply goes on first: to read the request takes time.
      if (one)
        nextTurn()
          .then(() => begin(one))
          .catch(failed);
    },
    held: (tenant) => verdicts.held(tenant),
    findings: (tenant) => notes.read(tenant),
  };
}

const inProgress = 'another one was in progress';

/** Folds of some strategies, for a model. */
type Folds = Pick<DrawnRequest, 'model' | 'strategies'>;

/** The verdicts on folds, as far as this gateway knows them. */
interface Verdicts {
  isHarmful(tenant: string, folds: Folds): boolean;
  /** True for folds on which no verdict was possible: they are drawn twice as often. */
  isUndecided(tenant: string, folds: Folds): boolean;
  /** Notes what a comparison says of folds. */
  judged(tenant: string, folds: Folds, state: ShadowState): void;
  /** Returns the folds that are held. Returns at once; old verdicts are read again meanwhile. */
  held(tenant: string): HeldFolds;
}

function openVerdicts({ notes, settings, hold, clock }: ShadowOptions): Verdicts {
  const known = openFixed<string, ShadowVerdicts & { readonly readAt: number }>('holds of shadows');
  const undecided = openFixed<string, string>('open verdicts of shadows');

  async function read(tenant: string): Promise<void> {
    const readAt = clock();
    known.set(tenant, { ...(await notes.verdicts(tenant, settings, readAt)), readAt });
  }

  return {
    isHarmful: (tenant, { model, strategies }) =>
      known.get(tenant)?.holds.some((one) => one.model === model && one.strategies === strategies) ?? false,
    isUndecided: (tenant, folds) => undecided.has(keyOf(tenant, folds)),
    judged(tenant, folds, state) {
      if (state === 'not shown') undecided.set(keyOf(tenant, folds), state);
      else undecided.delete(keyOf(tenant, folds));
      if (state !== 'too few') known.delete(tenant);
    },
    held(tenant) {
      const { holds, safe, readAt } = known.get(tenant) ?? { holds: [], safe: [], readAt: 0 };
      const now = clock();
      if (now - readAt > refreshMs) {
        known.set(tenant, { holds, safe, readAt: now });
        read(tenant).catch(() => undefined);
      }
      if (hold === 'unless-safe') return { sets: safe, allBut: true };
      return { sets: holds.filter(({ until }) => until > now) };
    },
  };
}

function keyOf(tenant: string, { model, strategies }: Folds): string {
  return `${tenant} ${model} ${strategies}`;
}

/** Compares requests that were drawn. Both methods reject when the store fails. */
interface Comparer {
  compare(drawn: DrawnRequest): Promise<void>;
  /** Notes why a request is not compared. */
  drop(drawn: DrawnRequest, reason: string): Promise<void>;
}

/** The parts that the comparisons of one gateway share. `rest`: sends nothing again for a tenant for a while. */
type ComparerParts = {
  readonly bills: Bills;
  readonly verdicts: Verdicts;
  readonly rest: (tenant: string) => void;
};

function createComparer(options: ShadowOptions, { bills, verdicts, rest }: ComparerParts): Comparer {
  const { notes, clock, log, settings } = options;
  /** Notes about requests that were drawn and not compared. */
  const waiting = openWaitingNotes('shadow');

  async function compare(drawn: DrawnRequest): Promise<void> {
    const { tenant, model, unit } = drawn;
    const started = clock();
    if (await notes.isCompared(tenant, unit)) return;
    const bounds = await boundsOf(options.prices, options.infoOf, drawn);
    if (typeof bounds === 'string') return drop(drawn, bounds);
    const sent: ResentCalls = [];
    const account = bills.open(tenant);
    let problem: string | undefined;
    try {
      problem = await problemOf(drawn, bounds, account, sent);
    } catch (error) {
      problem = reasonOf(error);
      throw error;
    } finally {
      const usd = costOfSent(sent, bounds.prices, model);
      await account.settle(usd);
      // The receipt comes first: it must show the money also if the store fails.
      if (sent.length > 0)
        options.ended(tenant, receiptOf(drawn, { started, calls: sent.length, usd, problem }));
      await add(drawn, { calls: sent.length, usd, dropped: problem === undefined ? {} : { [problem]: 1 } });
    }
  }

  /** Sends the requests, and notes the replies. Returns why they could not be compared; undefined if they were, or had been before. */
  async function problemOf(
    drawn: DrawnRequest,
    bounds: CostBounds,
    account: Account,
    sent: ResentCalls,
  ): Promise<string | undefined> {
    const { tenant, unit, prepared, resender } = drawn;
    const { foldedTokens, wholeTokens, mostFor } = bounds;
    // A fold that was held back was not served, so it is sent twice.
    const first = (prepared.heldBack ? 2 : 1) * mostFor(foldedTokens) + 2 * mostFor(wholeTokens);
    const refused = await account.reserve(first);
    if (refused !== undefined) return refused;
    const place = await notes.claim(tenant, unit, leaseMs);
    if (place !== 'mine') return place === 'busy' ? inProgress : undefined;
    try {
      const signal = AbortSignal.timeout(maxMs);
      const replies = await repliesTo(drawn, bounds, {
        recall: options.recall,
        send: (body) => resender.send(body, signal),
        signal,
        reserve: (usd) => account.reserve(usd),
        sent,
        whenIdle: options.whenIdle,
        nearLimit: () => rest(tenant),
      });
      if (typeof replies === 'string') return replies;
      await note(drawn, replies);
      return undefined;
    } finally {
      await notes.release(tenant).catch(() => undefined);
    }
  }

  async function note(drawn: DrawnRequest, { folded, whole }: ComparedReplies): Promise<void> {
    const { tenant, request, prepared, unit, model, strategies, isFirst, probability } = drawn;
    const earlier = callsOf(await conversationOf(request, prepared));
    const folds = { model, strategies, settings };
    const state = await notes.compared(tenant, {
      ...folds,
      unit,
      lastAt: clock(),
      conversation: prepared.identity.beginning?.slice(0, digestLength) ?? '',
      isFirst,
      probability,
      agreements: agreementsOf(bothOf(folded), bothOf(whole)),
      recalls: folded.reduce((sum, { recalls }) => sum + recalls, 0),
      replies: { folded: sumsOf(folded, earlier), whole: sumsOf(whole, earlier) },
    });
    if (state === undefined) return;
    const isHeld = state === 'harm shown' && options.hold !== 'never';
    await notes.judge(tenant, folds, state, clock(), isHeld);
    verdicts.judged(tenant, folds, state);
    if (!isHeld) return;
    log.warn(
      { model, strategies },
      'folds changed what the model did next; these strategies make no new fold for a week',
    );
  }

  async function drop(drawn: DrawnRequest, reason: string): Promise<void> {
    const leave = waiting.enter(0);
    if (!leave) return options.lost(1);
    await add(drawn, { dropped: { [reason]: 1 } }).finally(leave);
  }

  async function add(
    { tenant, model }: DrawnRequest,
    sums: Parameters<ShadowNotes['add']>[3],
  ): Promise<void> {
    await notes.add(tenant, model, clock(), sums).catch((error: unknown) => {
      options.lost(1);
      throw error;
    });
  }

  function receiptOf(
    { model, receipt }: DrawnRequest,
    { started, calls, usd, problem }: ComparisonSums,
  ): ShadowReceipt {
    return {
      kind: 'shadow',
      id: options.newId(),
      at: started,
      path: receipt.path,
      outcome: problem === undefined ? { status: 'compared' } : { status: 'failed', reason: problem },
      session: receipt.session,
      behind: receipt.id,
      model,
      calls,
      usd,
      ms: clock() - started,
    };
  }

  return { compare, drop };
}

/** The calls, the cost and the time of a comparison, whether it succeeded or not. */
type ComparisonSums = {
  readonly started: number;
  readonly calls: number;
  readonly usd: number;
  readonly problem: string | undefined;
};

function bothOf([one, other]: readonly ComparedReply[]): readonly [Decision, Decision] {
  return [decisionOf(one!.reply), decisionOf(other!.reply)];
}
