/** A receipt while its request is under way: collects what happens and is written once, at the end. */
import type { Prepared } from '../../engine/prepared.ts';
import type { ReceiptTotals } from '../../receipts/totals.ts';
import { createPriceList, type PriceList, type PriceOverrides } from '../../receipts/prices.ts';
import type { CountedPrompt, FoldReport, RecallReport, Receipt } from '../../receipts/receipt.ts';
import { noUsage, plainUsage, sentPromptOf, type Usage, usageSince } from '../../receipts/usage.ts';
import type { GatewayLog, GatewayMetrics } from './reporting.ts';
import type { HeaderList } from '../http/http.ts';
import type { ExchangeNotes } from '../recall-loop.ts';
import type { ReceiptLog } from './receipt-log.ts';
import { createEarlierRequests, earlierRequestOf, type Difference } from '../../receipts/baseline-cost.ts';
import { type Money, computeMoney } from '../../receipts/cost.ts';
import { loadCatalog } from '../../tokens/catalog.ts';

export type OpenReceipt = {
  readonly id: string;
  /** As the receipt says it. */
  readonly session: string | undefined;
  /** What the client is told of the request in the response's head. */
  readonly headers: HeaderList;
  readonly note: ExchangeNotes;
  /** Writes the receipt. Further calls do nothing. */
  close(): void;
  /** The body as it is; the receipt is written when it ends, however it ends. */
  closing(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
};

/** Names come from the client: what is kept of them is bounded. */
export const longestName = 200;

type ReceiptRequest = {
  readonly tenant: string;
  readonly prepared: Prepared;
  /** What the client's headers call the session. */
  readonly session: string | undefined;
  readonly path: string;
  /** The wire format. */
  readonly format: string;
  /** Whether a model answers it: counts of tokens are in no sum. */
  readonly isModelCall: boolean;
  readonly prices: PriceList;
  /** When the whole body was there: milliseconds since the epoch. */
  readonly started: number;
  /** When it was known what to send. */
  readonly preparedAt: number;
};

type ReceiptDeps = {
  readonly receipts: ReceiptLog;
  readonly totals: ReceiptTotals;
  readonly metrics: GatewayMetrics | undefined;
  readonly costs: CostTracker;
  readonly log: GatewayLog;
  readonly clock: () => number;
  readonly newId: () => string;
};

export function openReceipt(deps: ReceiptDeps, request: ReceiptRequest): OpenReceipt {
  const { tenant, prepared, prices, started } = request;
  const id = deps.newId();
  const recalls: RecallReport[] = [];
  let usage: Usage | undefined;
  const rounds: (Usage | undefined)[] = [];
  let prompt: CountedPrompt | undefined;
  let upstreamStatus: number | undefined;
  let problem: string | undefined;
  let closed = false;

  function close(): void {
    if (closed) return;
    closed = true;
    const reported = rounds.every((round) => round !== undefined) ? rounds : [];
    const receipt: Receipt = {
      ...prepared.report,
      model: prepared.report.model?.slice(0, longestName),
      id,
      at: started,
      path: request.path,
      outcome: prepared.outcome,
      session: sessionOf(request),
      upstreamStatus,
      recalls,
      prompt,
      usage,
      rounds: reported,
      money: deps.costs.costOf({ tenant, prepared, prices, at: started, rounds: reported }),
      problem,
      ms: { prepare: request.preparedAt - started, total: deps.clock() - started },
    };
    deps.receipts.add(tenant, receipt);
    if (!request.isModelCall) return;
    deps.totals.add(tenant, receipt);
    deps.metrics?.requestEnded(request.format, receipt);
  }

  return {
    id,
    session: sessionOf(request),
    headers: headersOf(id, prepared),
    note: {
      recalled: (report) => recalls.push(report),
      used: (reported) => {
        rounds.push(roundOf(usage, reported));
        usage = reported && plainUsage(reported);
        // The usage of several rounds is a sum; only the first round is of the prompt that was counted.
        if (rounds.length > 1 || reported === undefined) return;
        const sent = sentPromptOf(reported);
        if (sent === undefined) return;
        prompt = countedPrompt(prepared, sent);
        prepared.learn(sent);
      },
      upstreamStatus: (status) => {
        upstreamStatus = status;
      },
      problem: (text) => {
        problem = text;
        // A failure after the wait ended is in no receipt.
        if (closed) deps.log.warn({ receipt: id, problem: text }, 'failed after the reply');
      },
    },
    close,
    closing: (body) =>
      watched(body, (error) => {
        if (error !== undefined) problem ??= 'the response broke off';
        close();
      }),
  };
}

/** What one round added to the sum; undefined where it reported nothing. */
function roundOf(before: Usage | undefined, sum: Usage | undefined): Usage | undefined {
  const round = sum && usageSince(before ?? noUsage, sum);
  return round && round.input > 0 ? round : undefined;
}

/** Digits of a digest that tell conversations apart. */
const digestLength = 16;

function sessionOf({ session, prepared: { identity } }: ReceiptRequest): string | undefined {
  const said = session ?? identity.session;
  if (said !== undefined && said !== '') return said.slice(0, longestName);
  return identity.beginning && `begins:${identity.beginning.slice(0, digestLength)}`;
}

function countedPrompt({ prompt }: Prepared, reported: number): CountedPrompt | undefined {
  if (!prompt || reported <= 0) return undefined;
  const { counted, expected } = prompt;
  return { counted, expected, reported, errorPercent: Math.round(1_000 * (expected / reported - 1)) / 10 };
}

function headersOf(id: string, { outcome, report }: Prepared): HeaderList {
  const counts = [
    ['x-leporello-tokens-before', report.tokensBefore],
    ['x-leporello-tokens-after', report.tokensAfter],
  ] as const;
  return [
    ['x-leporello-outcome', outcome.status],
    ...counts.flatMap(([name, count]) => (count === undefined ? [] : [[name, String(count)] as const])),
    ['x-leporello-receipt', id],
  ];
}

/** Iterates the body and tells of its end, once. By hand: a generator that is ended before it began would tell nobody. */
function watched(
  body: AsyncIterable<Uint8Array>,
  ended: (error: unknown) => void,
): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const chunks = body[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const step = await chunks.next();
            if (step.done) ended(undefined);
            return step;
          } catch (error) {
            ended(error);
            throw error;
          }
        },
        async return() {
          ended(undefined);
          await chunks.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

export interface CostTracker {
  /** The money of an answered request; undefined where usage or price are not known. Called once for each request. */
  costOf(request: EndedRequest): Money | undefined;
}

export type EndedRequest = {
  readonly tenant: string;
  readonly prepared: Prepared;
  readonly prices: PriceList;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Round by round; empty where one was not reported. */
  readonly rounds: readonly Usage[];
};

export function createCostTracker(): CostTracker {
  const earlierRequests = createEarlierRequests();
  return {
    costOf({ tenant, prepared, prices, at, rounds: [first, ...further] }) {
      if (!first) return undefined;
      const { identity, report } = prepared;
      const standing = { tenant, links: identity.links, beginning: identity.beginning };
      const request = {
        at,
        rounds: [first, ...further] as const,
        difference: differenceOf(prepared),
        ...earlierRequests.find(standing),
      };
      earlierRequests.note(standing, earlierRequestOf(request));
      return computeMoney(request, (promptTokens) => prices.priceOf(report.model, promptTokens));
    },
  };
}

/** What was only observed went out as it came, and so did what nobody counted. */
function differenceOf({ outcome, prompt, report }: Prepared): Difference | undefined {
  const { tokensBefore, tokensAfter, tokensKept, replayed, shrunk, steps, hiddenRecalls, cacheMarks } =
    report;
  if (outcome.status === 'observed' || !prompt) return undefined;
  if (tokensBefore === undefined || tokensAfter === undefined) return undefined;
  const edits = steps.reduce((sum, step) => sum + step.edits, replayed + shrunk);
  return { counted: prompt.came, tokensBefore, tokensAfter, edits, hiddenRecalls, cacheMarks, tokensKept };
}

/** Never rejects: without a catalogue nobody knows a price. */
export type Prices = () => Promise<PriceList>;

export function pricesFrom(overrides: PriceOverrides | undefined): Prices {
  return async function prices() {
    try {
      return createPriceList(await loadCatalog(), overrides);
    } catch {
      return { priceOf: () => undefined };
    }
  };
}

export function tellCompressions(log: GatewayLog, receipt: string, { compressions }: FoldReport): void {
  for (const { ratio, target, ...one } of compressions) {
    const fields = { receipt, ...one, ratio: toTenths(ratio), target: target && toTenths(target) };
    if (one.warning === 'under') log.warn(fields, 'a compression saved far less than was asked for');
    else if (one.warning === 'over') log.warn(fields, 'a compression left far less than was asked for');
    else log.info(fields, 'compressed');
  }
}

function toTenths(ratio: number): number {
  return Math.round(ratio * 10) / 10;
}
