/** Measures a stream in which the model recalls an original: when the client receives the text before the recall and the text after it. */
import { type Body, type Format, paths, renumber } from './bodies.ts';
import { openClient } from './client.ts';
import type { Processes } from './processes.ts';
import { mark, markBeforeRecall } from './provider.ts';
import { type Quantiles, quantiles } from './statistics.ts';

type RecallOptions = { readonly format: Format; readonly body: Body; readonly rounds: number };

/** The times of one response in milliseconds, in the expected order. */
type Instants = {
  readonly sent: number;
  readonly wroteBefore: number;
  readonly receivedBefore: number;
  /** The provider began to write the private call. */
  readonly wroteCall: number;
  /** The provider received the continuation, which contains the recalled original. */
  readonly answered: number;
  readonly wroteAfter: number;
  readonly receivedAfter: number;
};

export type RecallMeasured = {
  readonly intervals: Readonly<Record<string, Quantiles>>;
  /** Rounds in which the client received the text before the recall before the recall was answered, and before the model began its call. */
  readonly before: { readonly answer: number; readonly call: number };
};

const warmUp = 10;

export async function measureRecall(
  processes: Processes,
  { format, body, rounds }: RecallOptions,
): Promise<RecallMeasured> {
  const client = openClient(processes.gateway);
  const all: Instants[] = [];
  // A cold gateway on a busy machine may miss its deadline for folding, so these requests need not be folded.
  for (let at = 0; at < warmUp; at += 1) {
    renumber(body, at, 'last');
    await client.ask(paths[format], body.bytes, []);
  }
  await processes.takeExchanges();
  for (let at = 0; at < rounds; at += 1) {
    renumber(body, at + warmUp, 'last');
    const { sent, received, outcome } = await client.ask(paths[format], body.bytes, [
      markBeforeRecall,
      mark(0),
    ]);
    const exchanges = await processes.takeExchanges();
    const [asking, continuing] = exchanges;
    if (outcome !== 'compacted' || !asking || !continuing || exchanges.length !== 2)
      throw new Error(
        `Expected a folded ${format} request and one recall; got outcome ${outcome} and ${exchanges.length} provider requests.`,
      );
    all.push({
      sent,
      wroteBefore: asking.wrote[0]!,
      receivedBefore: received[0]!,
      wroteCall: asking.wrote[1]!,
      answered: continuing.asked,
      wroteAfter: continuing.wrote[0]!,
      receivedAfter: received[1]!,
    });
  }
  await client.close();
  const between = (from: keyof Instants, to: keyof Instants): Quantiles =>
    quantiles([all.map((one) => one[to] - one[from])]);
  return {
    intervals: {
      'request sent > first text received': between('sent', 'receivedBefore'),
      'text before the recall: written > received': between('wroteBefore', 'receivedBefore'),
      'text before the recall: received > recall answered': between('receivedBefore', 'answered'),
      'recall call written > answered': between('wroteCall', 'answered'),
      'recall answered > next text received': between('answered', 'receivedAfter'),
      'next text: written > received': between('wroteAfter', 'receivedAfter'),
    },
    before: {
      answer: all.filter((one) => one.receivedBefore < one.answered).length,
      call: all.filter((one) => one.receivedBefore < one.wroteCall).length,
    },
  };
}
