/** A receipt while its request is under way: collects what happens and is written once, at the end. */
import type { Usage } from '../codecs/codec.ts';
import type { Prepared } from '../compact/prepared.ts';
import type { CountedPrompt, RecallReport } from '../metrics/receipt.ts';
import type { HeaderList } from './http.ts';
import type { ExchangeNotes } from './recall-loop.ts';
import type { ReceiptLog } from './receipts.ts';

export type OpenReceipt = {
  readonly id: string;
  /** What the client is told of the request in the response's head. */
  readonly headers: HeaderList;
  readonly note: ExchangeNotes;
  /** Writes the receipt. Further calls do nothing. */
  close(): void;
  /** The body as it is; the receipt is written when it ends, however it ends. */
  closing(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
};

/** Names come from the client: what is kept of them is bounded. */
const longestName = 200;

type ReceiptRequest = {
  readonly tenant: string;
  readonly prepared: Prepared;
  readonly session: string | undefined;
  readonly path: string;
  /** When the whole body was there: milliseconds since the epoch. */
  readonly started: number;
  /** When it was known what to send. */
  readonly preparedAt: number;
};

type ReceiptRim = {
  readonly receipts: ReceiptLog;
  readonly clock: () => number;
  readonly newId: () => string;
};

export function openReceipt(rim: ReceiptRim, request: ReceiptRequest): OpenReceipt {
  const { prepared, started } = request;
  const id = rim.newId();
  const recalls: RecallReport[] = [];
  let usage: Usage | undefined;
  let rounds = 0;
  let prompt: CountedPrompt | undefined;
  let upstreamStatus: number | undefined;
  let problem: string | undefined;
  let closed = false;

  function close(): void {
    if (closed) return;
    closed = true;
    rim.receipts.add(request.tenant, {
      ...prepared.report,
      model: prepared.report.model?.slice(0, longestName),
      id,
      at: started,
      path: request.path,
      outcome: prepared.outcome,
      session: request.session?.slice(0, longestName),
      upstreamStatus,
      recalls,
      prompt,
      usage,
      problem,
      ms: { prepare: request.preparedAt - started, total: rim.clock() - started },
    });
  }

  return {
    id,
    headers: headersOf(id, prepared),
    note: {
      recalled: (report) => recalls.push(report),
      used: (reported) => {
        usage = reported;
        rounds++;
        // Of several rounds the usage is a sum; the first alone is of the prompt that was counted.
        if (rounds > 1 || reported === undefined) return;
        prompt = countedPrompt(prepared, reported.input);
        prepared.learn(reported.input);
      },
      upstreamStatus: (status) => {
        upstreamStatus = status;
      },
      problem: (text) => {
        problem = text;
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

function countedPrompt({ prompt }: Prepared, reported: number): CountedPrompt | undefined {
  if (!prompt || reported <= 0) return undefined;
  const errorPercent = Math.round(1_000 * (prompt.expected / reported - 1)) / 10;
  return { ...prompt, reported, errorPercent };
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
