/** A stream in which the model reads a memory: when the client has what stands before the recall, and what comes behind it. */
import { type Body, type Format, paths, renumber } from './bodies.ts';
import { openClient } from './client.ts';
import type { Processes } from './processes.ts';
import { mark, markBeforeRecall } from './provider.ts';
import { type Quantiles, quantiles } from './statistics.ts';

type Recalling = { readonly format: Format; readonly body: Body; readonly rounds: number };

/** One answer, in the order in which it should go. */
type Instants = {
  readonly sent: number;
  readonly wroteBefore: number;
  readonly gotBefore: number;
  /** The provider began to write the private call. */
  readonly wroteCall: number;
  /** The provider had the continuation, with the answer in it. */
  readonly answered: number;
  readonly wroteBehind: number;
  readonly gotBehind: number;
};

export type RecallMeasured = {
  readonly intervals: Readonly<Record<string, Quantiles>>;
  /** Rounds in which the client had the text before the recall when the recall was answered, and when the model began to ask. */
  readonly before: { readonly answer: number; readonly call: number };
};

const warmUp = 25;

export async function measureRecall(
  processes: Processes,
  { format, body, rounds }: Recalling,
): Promise<RecallMeasured> {
  const client = openClient(processes.gateway);
  const all: Instants[] = [];
  for (let at = -warmUp; at < rounds; at += 1) {
    renumber(body, at + warmUp, 'last');
    const { sent, got, outcome } = await client.ask(paths[format], body.bytes, [markBeforeRecall, mark(0)]);
    const told = await processes.told();
    const [asking, going] = told;
    if (outcome !== 'compacted' || !asking || !going || told.length !== 2)
      throw new Error(
        `Expected a folded ${format} request and one recall: ${outcome}, ${told.length} calls.`,
      );
    if (at < 0) continue;
    all.push({
      sent,
      wroteBefore: asking.wrote[0]!,
      gotBefore: got[0]!,
      wroteCall: asking.wrote[1]!,
      answered: going.asked,
      wroteBehind: going.wrote[0]!,
      gotBehind: got[1]!,
    });
  }
  await client.close();
  const between = (from: keyof Instants, to: keyof Instants): Quantiles =>
    quantiles([all.map((one) => one[to] - one[from])]);
  return {
    intervals: {
      'request sent > first text received': between('sent', 'gotBefore'),
      'text before the recall: written > received': between('wroteBefore', 'gotBefore'),
      'text before the recall: received > recall answered': between('gotBefore', 'answered'),
      'call written > answered': between('wroteCall', 'answered'),
      'recall answered > next text received': between('answered', 'gotBehind'),
      'next text: written > received': between('wroteBehind', 'gotBehind'),
    },
    before: {
      answer: all.filter((one) => one.gotBefore < one.answered).length,
      call: all.filter((one) => one.gotBefore < one.wroteCall).length,
    },
  };
}
