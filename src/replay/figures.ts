/** Computes the figures of a replay, by source and policy, for tables and charts. Pure. */
import { groupBy } from '../es2024.ts';
import { extraRequestsPer1000Tokens } from '../receipts/cost.ts';
import { costOf, type CacheRates, sumOf, addTally, type Tally } from './tally.ts';
import type { Play, Played } from './replay.ts';

/** Prices by the name of the price table. */
export type PriceTables = Readonly<Record<string, CacheRates>>;

export type SourceFigures = {
  readonly source: string;
  readonly conversations: number;
  readonly requests: number;
  readonly policies: readonly Figures[];
};

/** The figures of one policy. Shares are between 0 and 1. Costs are relative to the first policy, by price table. */
export type Figures = {
  readonly policy: string;
  readonly cost: ByTable<number>;
  /** Cost if missing values are never recovered; undefined for policies that can recall. */
  readonly careless: ByTable<number> | undefined;
  /** The conversation with the highest relative cost. */
  readonly worst: ByTable<{ readonly id: string; readonly cost: number }>;
  readonly meanTokens: number;
  readonly peakTokens: number;
  /** Number of values in calls that occur in earlier messages; shares of them that were visible or lost follow. */
  readonly needs: number;
  readonly visible: number;
  readonly lost: number;
  readonly recallsPer100: number;
  readonly stable: number;
  readonly folds: number;
  /** Undefined for policies that fold nothing. */
  readonly breakEven: BreakEven | undefined;
  readonly overWindow: number;
  readonly failed: number;
  readonly unfit: number;
};

/**
 * The number of extra requests for each 1,000 folded tokens from which nothing is saved, by the share of tools and system text in the mean request
 * of the full context. An extra request costs as much as the mean one. The replay has one share; for others, the same requests are billed with
 * a longer or shorter prefix.
 */
export type BreakEven = {
  readonly tokensFolded: number;
  readonly recalls: number;
  readonly atStaticShare: Readonly<Record<string, ByTable<number>>>;
};

/** Shares of tools and system text for which the break-even point is computed. */
export const staticShares = [0.25, 0.66] as const;

type ByTable<T> = Readonly<Record<string, T>>;

/** Computes the figures. The other policies are compared with the first policy of each conversation. */
export function figuresOf(played: readonly Played[], prices: PriceTables): readonly SourceFigures[] {
  const bySource = groupBy(played, ({ source }) => source);
  return [...bySource].map(([source, conversations]) => {
    const names = conversations[0]!.plays.map(({ policy }) => policy);
    return {
      source,
      conversations: conversations.length,
      requests: conversations.reduce((sum, { plays }) => sum + plays[0]!.tally.steps, 0),
      policies: names.map((_, at) => policyFigures(conversations, at, prices)),
    };
  });
}

function policyFigures(conversations: readonly Played[], at: number, prices: PriceTables): Figures {
  const playOf = ({ plays }: Played): Play => plays[at]!;
  const sum = conversations.map((one) => playOf(one).tally).reduce(addTally);
  const whole = conversations.map(({ plays }) => plays[0]!.tally).reduce(addTally);
  const careless = conversations.map((one) => playOf(one).careless);
  const known = careless.flatMap((tokens) => tokens ?? []);
  const inEach = <T>(figure: (rates: CacheRates) => T): ByTable<T> =>
    Object.fromEntries(Object.entries(prices).map(([name, rates]) => [name, figure(rates)]));
  return {
    policy: playOf(conversations[0]!).policy,
    cost: inEach((rates) => relative(sum, whole, rates)),
    careless:
      known.length < careless.length
        ? undefined
        : inEach((rates) => relative({ tokens: known.reduce(sumOf) }, whole, rates)),
    worst: inEach((rates) =>
      worstOf(conversations, (one) => relative(playOf(one).tally, one.plays[0]!.tally, rates)),
    ),
    meanTokens: Math.round(sum.contextSum / Math.max(1, sum.steps)),
    peakTokens: sum.contextPeak,
    needs: sum.needs,
    visible: share(sum.needs - sum.missing, sum.needs),
    lost: sum.needs === 0 ? 0 : sum.lost / sum.needs,
    recallsPer100: sum.steps === 0 ? 0 : (100 * sum.recalls) / sum.steps,
    stable: share(sum.stable, sum.steps),
    folds: sum.folds,
    breakEven: breakEvenOf(sum, whole, prices),
    overWindow: sum.overWindow,
    failed: sum.failed,
    unfit: sum.unfit,
  };
}

function breakEvenOf(own: Tally, whole: Tally, prices: PriceTables): BreakEven | undefined {
  if (own.folded === 0) return undefined;
  const meanFixed = whole.fixedSum / whole.steps;
  const meanOthers = whole.contextSum / whole.steps - meanFixed;
  const at = (fixedShare: number, rates: CacheRates): number => {
    // The prefix stays cached, so each request, recalls included, reads that much more of it.
    const more = ((meanOthers * fixedShare) / (1 - fixedShare) - meanFixed) * rates.read;
    const cost = costOf(own.tokens, rates) + (own.steps + own.recalls) * more;
    const saved = costOf(whole.tokens, rates) + whole.steps * more - cost;
    const perRequest = cost / (own.steps + own.recalls);
    return extraRequestsPer1000Tokens({ saved, tokensFolded: own.folded, perRequest }) ?? 0;
  };
  return {
    tokensFolded: own.folded,
    recalls: own.recalls,
    atStaticShare: Object.fromEntries(
      staticShares.map((fixedShare) => [
        String(fixedShare),
        Object.fromEntries(Object.entries(prices).map(([name, rates]) => [name, at(fixedShare, rates)])),
      ]),
    ),
  };
}

/** Returns a share; 1 for a share of nothing. */
function share(part: number, whole: number): number {
  return whole === 0 ? 1 : part / whole;
}

function worstOf(conversations: readonly Played[], cost: (one: Played) => number) {
  return conversations
    .map((one) => ({ id: one.id, cost: cost(one) }))
    .reduce((worst, next) => (next.cost > worst.cost ? next : worst));
}

function relative({ tokens }: Pick<Tally, 'tokens'>, base: Tally, rates: CacheRates): number {
  return costOf(tokens, rates) / costOf(base.tokens, rates);
}
