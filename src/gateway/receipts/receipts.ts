/**
 * Collects the facts of a request's receipt while the request is in progress, computes its cost, and writes the receipt once, at the end. Keeps
 * the newest receipts in memory, by tenant; a restart begins with none.
 */
import { type Caches, openFixed } from '../../caches.ts';
import type { EngineRequest, PreparedRequest } from '../../engine/types.ts';
import { countOf } from '../../outline/outcome.ts';
import type { ReceiptTotals } from '../../receipts/totals.ts';
import type { PriceList } from '../../tokens/model-facts.ts';
import type { Usage } from '../../conversation/conversation.ts';
import type {
  CountedPrompt,
  FoldReport,
  RecallReport,
  Receipt,
  ShadowReceipt,
  SummaryReceipt,
} from '../../receipts/receipt.ts';
import type { HeaderList, UpstreamResponse } from '../http/http.ts';
import {
  type Difference,
  type Money,
  createEarlierRequests,
  earlierRequestOf,
  computeMoney,
  noUsage,
  plainUsage,
  sentPromptOf,
  usageSince,
} from '../../receipts/cost.ts';
import type { ModelReply } from '../../codecs/codec.ts';
import type { ExchangeNotes, GatewayLog, GatewayMetrics } from './metrics.ts';

/** The receipt of a request in progress. */
export type OpenReceipt = {
  readonly id: string;
  /** The session that the receipt names. */
  readonly session: string | undefined;
  /** Response headers that tell the client about the receipt. */
  readonly headers: HeaderList;
  readonly note: ExchangeNotes;
  /** Writes the receipt. Further calls do nothing. */
  close(): void;
  /** Returns the same body; the receipt is written when it ends, completely or not. */
  closing(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
};

/** Characters that are kept of a name that comes from the client. */
export const maxNameLength = 200;

type ReceiptRequest = {
  readonly tenant: string;
  readonly prepared: PreparedRequest;
  /** The client's request, for an experiment. */
  readonly request: EngineRequest | undefined;
  /** Sends a body as this request was sent, for an experiment. */
  readonly resender: Resender | undefined;
  /** The session that the client's headers name. */
  readonly session: string | undefined;
  readonly path: string;
  /** The wire format. */
  readonly format: string;
  /** True when a model answers the request. Requests that count tokens are left out of totals and metrics. */
  readonly isModelCall: boolean;
  readonly prices: PriceList;
  /** Time at which the whole body had arrived, in milliseconds since the epoch. */
  readonly started: number;
  /** Time at which the request was prepared, in milliseconds since the epoch. */
  readonly preparedAt: number;
  /** True when the client has disconnected. */
  readonly hasLeft: () => boolean;
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

/** Opens the receipt of a request. */
export function openReceipt(deps: ReceiptDeps, request: ReceiptRequest): OpenReceipt {
  const { tenant, prepared, prices, started } = request;
  const id = deps.newId();
  const recalls: RecallReport[] = [];
  const asked: string[] = [];
  let usage: Usage | undefined;
  let rounds: readonly (Usage | undefined)[] = [];
  let prompt: CountedPrompt | undefined;
  let upstreamStatus: number | undefined;
  let problem: string | undefined;
  let reply: ModelReply | undefined;
  let closed = false;

  function close(end?: 'complete' | 'broken'): void {
    if (closed) return;
    closed = true;
    const hasLeft = end !== 'complete' && request.hasLeft();
    const cutOff = hasLeft ? 'client left' : end === 'broken' ? 'broke off' : undefined;
    if (hasLeft) deps.log.info({ receipt: id }, 'the client left before the response ended');
    const reported = rounds.every((round) => round !== undefined) ? rounds : [];
    const receipt: Receipt = {
      kind: 'request',
      ...prepared.report,
      model: prepared.report.model?.slice(0, maxNameLength),
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
      cutOff,
      problem: problem ?? (cutOff === 'broke off' ? 'the response broke off' : undefined),
      ms: { prepare: request.preparedAt - started, total: deps.clock() - started },
    };
    deps.receipts.add(tenant, receipt, { ...request, asked, reply });
    if (!request.isModelCall) return;
    deps.totals.add(tenant, receipt);
    deps.metrics?.requestEnded(request.format, receipt);
  }

  function noteRound(reported: Usage | undefined): void {
    // Receipts are kept, and `push` would make room for sixteen more rounds in each.
    rounds = [...rounds, roundOf(usage, reported)];
    usage = reported && plainUsage(reported);
  }

  return {
    id,
    session: sessionOf(request),
    headers: headersOf(id, prepared),
    note: {
      recalled(report, of) {
        recalls.push(report);
        asked.push(of);
      },
      used: (reported) => {
        noteRound(reported);
        // Usage sums up all rounds, and only the first round sent the prompt that was counted.
        if (rounds.length > 1 || reported === undefined) return;
        const sent = sentPromptOf(reported);
        if (sent === undefined) return;
        prompt = countedPrompt(prepared, sent);
        prepared.reportPromptTokens(sent);
      },
      ended: (reported) => {
        const rest = reported && usageSince(usage ?? noUsage, reported);
        // This round was not read to its end, so its report may be preliminary: good for a lower bound, not to correct counts.
        if (rest && rest.input + rest.output > 0) noteRound(reported);
      },
      replied: (last) => {
        reply = last;
      },
      upstreamStatus: (status) => {
        upstreamStatus = status;
      },
      problem: (text) => {
        problem = text;
        // The receipt is already written, so a late failure is only logged.
        if (closed) deps.log.warn({ receipt: id, problem: text }, 'a step failed after the reply had ended');
      },
    },
    close: () => close(),
    closing: (body) => watched(body, close),
  };
}

/** Returns what one round added to the sum; undefined when it reported nothing. */
function roundOf(before: Usage | undefined, sum: Usage | undefined): Usage | undefined {
  const round = sum && usageSince(before ?? noUsage, sum);
  return round && round.input > 0 ? round : undefined;
}

/** Digits of a digest that are enough to distinguish conversations. */
const digestLength = 16;

function sessionOf({ session, prepared: { identity } }: ReceiptRequest): string | undefined {
  const said = session ?? identity.session;
  if (said !== undefined && said !== '') return said.slice(0, maxNameLength);
  return identity.beginning && `begins:${identity.beginning.slice(0, digestLength)}`;
}

function countedPrompt({ prompt }: PreparedRequest, reported: number): CountedPrompt | undefined {
  if (!prompt || reported <= 0) return undefined;
  const { counted, expected } = prompt;
  return { counted, expected, reported, errorPercent: Math.round(1_000 * (expected / reported - 1)) / 10 };
}

function headersOf(id: string, { outcome, report }: PreparedRequest): HeaderList {
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

/**
 * Returns the same body, and calls `ended` when it ends and has run its cleanup. Not a generator: an async generator that is returned before
 * its first `next()` never runs its `finally`.
 */
function watched(
  body: AsyncIterable<Uint8Array>,
  ended: (end?: 'complete' | 'broken') => void,
): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const chunks = body[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const step = await chunks.next();
            if (step.done) ended('complete');
            return step;
          } catch (error) {
            ended('broken');
            throw error;
          }
        },
        async return() {
          try {
            await chunks.return?.();
          } finally {
            ended();
          }
          return { done: true, value: undefined };
        },
      };
    },
  };
}

/** Computes the cost of requests as they end, and remembers of each conversation what the next request is compared with. */
export interface CostTracker {
  /** Returns the cost of an answered request; undefined when usage or price is unknown. Called once for each request. */
  costOf(request: EndedRequest): Money | undefined;
}

/** A request that has ended. */
type EndedRequest = {
  readonly tenant: string;
  readonly prepared: PreparedRequest;
  readonly prices: PriceList;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Usage of each round; empty when a round did not report its usage. */
  readonly rounds: readonly Usage[];
};

/** Creates the cost tracker of one gateway. */
export function createCostTracker(caches?: Caches): CostTracker {
  const earlierRequests = createEarlierRequests(caches);
  return {
    costOf({ tenant, prepared, prices, at, rounds: [first, ...further] }) {
      if (!first) return undefined;
      const { identity, report } = prepared;
      const prefix = { tenant, links: identity.links, beginning: identity.beginning };
      const request = {
        at,
        rounds: [first, ...further] as const,
        difference: differenceOf(prepared),
        ...earlierRequests.find(prefix),
      };
      earlierRequests.note(prefix, earlierRequestOf(request));
      return computeMoney(request, (promptTokens) => prices.priceOf(report.model, promptTokens));
    },
  };
}

/**
 * Returns how the sent request differs from the client's; undefined when it does not differ, because it was only observed, or when it was
 * not counted.
 */
function differenceOf({ outcome, prompt, report }: PreparedRequest): Difference | undefined {
  const { tokensBefore, tokensAfter, tokensKept, replayed, shrunk, steps, hiddenRecalls, cacheMarks } =
    report;
  if (outcome.status === 'observed' || !prompt) return undefined;
  if (tokensBefore === undefined || tokensAfter === undefined) return undefined;
  const edits = steps.reduce((sum, step) => sum + step.edits, replayed + shrunk);
  return {
    counted: prompt.original,
    tokensBefore,
    tokensAfter,
    edits,
    hiddenRecalls,
    cacheMarks,
    tokensKept,
  };
}

/** Logs a new fold in one line: the trigger and its goal, the request before and after, what each strategy took, and what stayed and why. */
export function logFold(log: GatewayLog, receipt: string, report: FoldReport): void {
  const { trigger, goal, window, tokensBefore, tokensAfter, tokensKept, steps, stayed = {}, model } = report;
  if (trigger === undefined || !steps.some(({ edits }) => edits > 0)) return;
  const percent = (tokens: number | undefined) =>
    tokens === undefined || window === undefined ? undefined : toTenths((tokens / window) * 100);
  const took = steps.map(({ strategy, edits, tokensSaved, refused }) =>
    refused === undefined
      ? `${strategy}: ${tokensSaved} tokens in ${countOf(edits, 'edit')}`
      : `${strategy}: refused, ${refused}`,
  );
  log.info(
    {
      receipt,
      model,
      trigger,
      goal: goal && `${Math.round(goal.target)} ${goal.unit}`,
      tokensBefore,
      tokensAfter,
      percentBefore: percent(tokensBefore),
      percentAfter: percent(tokensAfter),
      tokensKept,
      took,
      stayed: Object.entries(stayed).map(([reason, tokens]) => `${reason}: ${tokens} tokens`),
    },
    'folded',
  );
}

/** Logs what a fold compressed, as a warning when a compression is far from its target. */
export function logCompressions(log: GatewayLog, receipt: string, { compressions }: FoldReport): void {
  for (const { ratio, target, ...one } of compressions) {
    const fields = { receipt, ...one, ratio: toTenths(ratio), target: target && toTenths(target) };
    if (one.warning === 'under') log.warn(fields, 'a compression saved far less than its target');
    else if (one.warning === 'over') log.warn(fields, 'a compression kept far less than its target');
    else log.info(fields, 'compressed');
  }
}

function toTenths(ratio: number): number {
  return Math.round(ratio * 10) / 10;
}

/** A receipt of a request, of a summary that was written in the background, or of a request that was sent again. */
export type AnyReceipt = Receipt | SummaryReceipt | ShadowReceipt;

/** The request that a receipt reports on, its last reply, and the arguments of its recalls. All contain content. */
export type ReceiptSource = Pick<ReceiptRequest, 'prepared' | 'request' | 'resender'> & {
  readonly asked: readonly string[];
  /** Undefined when the reply was not read to its end. */
  readonly reply: ModelReply | undefined;
};

/** Lets another thread forget a request whose receipt is complete, unless a summary or an experiment still needs it. */
export function releaseEnded({ prepared, request }: ReceiptSource): void {
  if (!request && !prepared.summary) prepared.release?.();
}

/** Sends a body in the name of the client, with the headers and to the URL of its request. It holds a credential. */
export type Resender = {
  readonly headers: HeaderList;
  readonly send: (body: Uint8Array, signal: AbortSignal) => Promise<UpstreamResponse>;
};

/** Receipts by id. An undefined tenant is the administrator, who sees all receipts. */
export interface ReceiptLog {
  add(tenant: string, receipt: AnyReceipt, source?: ReceiptSource): void;
  get(tenant: string | undefined, id: string): AnyReceipt | undefined;
  /** Returns receipts, newest first. */
  list(tenant: string | undefined, limit: number): readonly AnyReceipt[];
}

/** Creates a log of at most `max` receipts. With its source, a receipt ends its request. */
export function createReceiptLog(max?: number): ReceiptLog {
  const receipts = openFixed<string, { readonly tenant: string; readonly receipt: AnyReceipt }>('receipts', {
    max,
  });
  return {
    add(tenant, receipt, source) {
      receipts.set(receipt.id, { tenant, receipt });
      if (source) releaseEnded(source);
    },
    get(tenant, id) {
      const found = receipts.peek(id);
      return found && isOf(tenant, found.tenant) ? found.receipt : undefined;
    },
    list(tenant, limit) {
      const own = [...receipts.entries()].filter(([, found]) => isOf(tenant, found.tenant));
      return own
        .slice(-limit)
        .toReversed()
        .map(([, { receipt }]) => receipt);
    },
  };
}

function isOf(tenant: string | undefined, owner: string): boolean {
  return tenant === undefined || tenant === owner;
}
