/** A receipt while its request is under way: collects what happens and is written once, at the end. */
import type { Prepared } from '../../engine/prepared.ts';
import type { ReceiptTotals } from '../../receipts/totals.ts';
import type { PriceList } from '../../receipts/prices.ts';
import type { CountedPrompt, Receipt, RecallReport } from '../../receipts/receipt.ts';
import { noUsage, plainUsage, sentPromptOf, type Usage, usageSince } from '../../receipts/usage.ts';
import type { GatewayLog } from './gateway-log.ts';
import type { GatewayMetrics } from './gateway-metrics.ts';
import type { HeaderList } from '../http/http.ts';
import type { ExchangeNotes } from '../recall-loop.ts';
import type { ReceiptLog } from './receipt-log.ts';
import type { Reckoner } from './cost-tracker.ts';

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

type ReceiptRim = {
  readonly receipts: ReceiptLog;
  readonly totals: ReceiptTotals;
  readonly metrics: GatewayMetrics | undefined;
  readonly reckoner: Reckoner;
  readonly log: GatewayLog;
  readonly clock: () => number;
  readonly newId: () => string;
};

export function openReceipt(rim: ReceiptRim, request: ReceiptRequest): OpenReceipt {
  const { tenant, prepared, prices, started } = request;
  const id = rim.newId();
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
      money: rim.reckoner.reckon({ tenant, prepared, prices, at: started, rounds: reported }),
      problem,
      ms: { prepare: request.preparedAt - started, total: rim.clock() - started },
    };
    rim.receipts.add(tenant, receipt);
    if (!request.isModelCall) return;
    rim.totals.add(tenant, receipt);
    rim.metrics?.requestEnded(request.format, receipt);
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
        if (closed) rim.log.warn({ receipt: id, problem: text }, 'failed after the reply');
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
