/** Measures the tokens of one format and size: twice directly, through a raw pipe and through the gateway, in turn. */
import { randomNumbers } from '../tokens/arithmetic.ts';
import { type Body, type Format, paths, renumber } from './bodies.ts';
import { openClient } from './client.ts';
import type { Processes } from './processes.ts';
import { mark, texts } from './provider.ts';
import { type Difference, difference, type Quantiles, quantiles, type Rounds } from './statistics.ts';

export type MeasureOptions = {
  readonly format: Format;
  readonly body: Body;
  /** The messages whose turn number changes from one request to the next. */
  readonly renumbered: 'last' | 'everywhere';
  readonly rounds: number;
  /** Requests to the gateway before the measurement, so that it measures compiled code, as in a gateway that has run for a while. */
  readonly warmUp: number;
};

/** All members after `direct` are differences from it. */
export type Figure = {
  readonly token: 'first token' | 'later tokens';
  readonly direct: Quantiles;
  readonly noise: Difference;
  readonly pipe: Difference;
  readonly gateway: Difference;
};
export type Measured = { readonly figures: readonly Figure[] };

/** Requests to the provider and the pipe before the measurement. */
const shortWarmUp = 15;
/** Rounds before the measurement. */
const warmRounds = 3;
const names = ['direct', 'direct again', 'pipe', 'gateway'] as const;
type Name = (typeof names)[number];

/** Returns undefined if the gateway does not offer the recall tool in this format. */
export async function measure(
  processes: Processes,
  { format, body, renumbered, rounds, warmUp }: MeasureOptions,
): Promise<Measured | undefined> {
  const { provider, pipe, gateway } = processes;
  const origins = { direct: provider, 'direct again': provider, pipe, gateway };
  const clients = names.map((name) => ({ name, client: openClient(origins[name]) }));
  const first = emptyRounds();
  const later = emptyRounds();
  const next = randomNumbers(3);
  let turn = 0;
  await processes.begin('warm up');
  for (const { name, client } of clients) {
    for (let request = 0; request < (name === 'gateway' ? warmUp : shortWarmUp); request += 1) {
      renumber(body, (turn += 1), renumbered);
      await client.ask(paths[format], body.bytes, marks);
    }
  }
  await processes.begin('measure');
  for (let at = -warmRounds; at < rounds; at += 1) {
    for (const { name, client } of shuffled(clients, next)) {
      renumber(body, (turn += 1), renumbered);
      const { sent, received, outcome } = await client.ask(paths[format], body.bytes, marks);
      const [exchange] = await processes.takeExchanges();
      if (name === 'gateway') {
        if (!exchange!.offered) return undefined;
        if (outcome !== 'untouched')
          throw new Error(`Expected the outcome untouched for ${format}; got ${outcome}.`);
      }
      if (at < 0) continue;
      first[name].push([received[0]! - sent]);
      later[name].push(received.slice(1).map((time, index) => time - exchange!.wrote[index + 1]!));
    }
  }
  for (const { client } of clients) await client.close();
  return { figures: [figureOf('first token', first), figureOf('later tokens', later)] };
}

const marks = Array.from({ length: texts }, (_, text) => mark(text));

function emptyRounds(): Record<Name, number[][]> {
  return { direct: [], 'direct again': [], pipe: [], gateway: [] };
}

function figureOf(token: Figure['token'], by: Readonly<Record<Name, Rounds>>): Figure {
  return {
    token,
    direct: quantiles(by.direct),
    noise: difference(by['direct again'], by.direct),
    pipe: difference(by.pipe, by.direct),
    gateway: difference(by.gateway, by.direct),
  };
}

function shuffled<T>(list: readonly T[], next: (below: number) => number): readonly T[] {
  return list
    .map((item) => ({ item, at: next(1_000_000) }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
