/** One format and size: the same provider asked directly, twice, through a raw pipe and through the gateway, in turn. */
import { randomNumbers } from '../tokens/arithmetic.ts';
import { type Body, type Format, paths, renumber } from './bodies.ts';
import { openClient } from './client.ts';
import type { Processes } from './processes.ts';
import { mark, texts } from './provider.ts';
import { type Difference, difference, type Quantiles, quantiles, type Rounds } from './statistics.ts';

export type Measuring = {
  readonly format: Format;
  readonly body: Body;
  /** How one request differs from the one before. */
  readonly renumbered: 'last' | 'everywhere';
  readonly rounds: number;
};

/** All but `direct` are differences to it. */
export type Figure = {
  readonly what: 'first token' | 'later tokens';
  readonly direct: Quantiles;
  readonly noise: Difference;
  readonly pipe: Difference;
  readonly gateway: Difference;
};
export type Measured = { readonly figures: readonly Figure[] };

const warmUp = 25;
/** Requests to the gateway alone before that: figures are of compiled code, as a gateway that serves a while runs. */
const compiledAfter = 250;
const names = ['direct', 'direct again', 'pipe', 'gateway'] as const;
type Name = (typeof names)[number];

/** Undefined when the gateway does not offer the recall tool in this format. */
export async function measure(
  processes: Processes,
  { format, body, renumbered, rounds }: Measuring,
): Promise<Measured | undefined> {
  const { provider, pipe, gateway } = processes;
  const origins = { direct: provider, 'direct again': provider, pipe, gateway };
  const clients = names.map((name) => ({ name, client: openClient(origins[name]) }));
  const first = emptyRounds();
  const later = emptyRounds();
  const next = randomNumbers(3);
  let turn = 0;
  const { client: alone } = clients.find(({ name }) => name === 'gateway')!;
  for (; turn < compiledAfter; turn += 1) {
    renumber(body, turn, renumbered);
    await alone.ask(paths[format], body.bytes, marks);
    await processes.told();
  }
  for (let at = -warmUp; at < rounds; at += 1) {
    for (const { name, client } of shuffled(clients, next)) {
      renumber(body, (turn += 1), renumbered);
      const { sent, got, outcome } = await client.ask(paths[format], body.bytes, marks);
      const [told] = await processes.told();
      if (name === 'gateway') {
        if (!told!.offered) return undefined;
        if (outcome !== 'untouched') throw new Error(`The gateway's outcome for ${format} is ${outcome}.`);
      }
      if (at < 0) continue;
      first[name].push([got[0]! - sent]);
      later[name].push(got.slice(1).map((came, i) => came - told!.wrote[i + 1]!));
    }
  }
  for (const { client } of clients) await client.close();
  return { figures: [figureOf('first token', first), figureOf('later tokens', later)] };
}

const marks = Array.from({ length: texts }, (_, text) => mark(text));

function emptyRounds(): Record<Name, number[][]> {
  return { direct: [], 'direct again': [], pipe: [], gateway: [] };
}

function figureOf(what: Figure['what'], by: Readonly<Record<Name, Rounds>>): Figure {
  return {
    what,
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
