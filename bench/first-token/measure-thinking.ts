/**
 * Measures the first token of a provider that thinks, for one request size: twice directly, through a raw pipe and through the gateway. The
 * four requests of a sample get the same think time and are sent one after the other in random order. Samples of all formats run concurrently.
 */
import { randomNumbers } from '../tokens/arithmetic.ts';
import { type Body, bodyOf, formats, paths, renumber } from './bodies.ts';
import { type Client, openClient } from './client.ts';
import type { Processes } from './processes.ts';
import { mark, quickFrom } from './provider.ts';
import { compare, type Comparison, type Quantiles, quantiles } from './statistics.ts';

export type ThinkingOptions = {
  /** Bytes of a request. */
  readonly size: number;
  readonly samples: number;
  /** Samples that run at the same time. */
  readonly concurrency: number;
};

/** All members except `direct` are compared with `direct`. */
export type ThinkingMeasured = {
  readonly bytes: number;
  readonly direct: Quantiles;
  readonly noise: Comparison;
  readonly pipe: Comparison;
  readonly gateway: Comparison;
};

const names = ['direct', 'direct again', 'pipe', 'gateway'] as const;
type Name = (typeof names)[number];

/** Requests in each format before the measurement, so that it measures compiled code. The gateway has more code and needs more of them. */
const warmUp = { direct: 25, 'direct again': 25, pipe: 25, gateway: 100 };

export async function measureThinking(
  processes: Processes,
  { size, samples, concurrency }: ThinkingOptions,
): Promise<ThinkingMeasured> {
  const { provider, pipe, gateway } = processes;
  const origins: Record<Name, string> = { direct: provider, 'direct again': provider, pipe, gateway };
  const workers = Array.from({ length: concurrency }, () => openWorker(origins, size));
  const firsts: Record<Name, number[]> = { direct: [], 'direct again': [], pipe: [], gateway: [] };

  for (const name of names) {
    for (let turn = 0; turn < warmUp[name] * formats.length; turn += 1)
      await workers[0]!.ask(name, turn, quickFrom + turn);
  }
  await processes.takeExchanges();

  const next = randomNumbers(5);
  let started = 0;
  const run = async (worker: Worker): Promise<void> => {
    while (started < samples) {
      const sample = started++;
      for (const name of shuffledNames(next)) {
        const number = sample * names.length + names.indexOf(name);
        firsts[name][sample] = await worker.ask(name, sample, number);
      }
    }
  };
  await Promise.all(workers.map(run));
  const offered = (await processes.takeExchanges()).filter((exchange) => exchange.offered).length;
  if (offered !== samples)
    throw new Error(`The gateway offered the recall tool in ${offered} requests; expected ${samples}.`);
  await Promise.all(workers.map((worker) => worker.close()));

  const { direct } = firsts;
  return {
    bytes: workers[0]!.bytes,
    direct: quantiles([direct]),
    noise: compare(firsts['direct again'], direct),
    pipe: compare(firsts.pipe, direct),
    gateway: compare(firsts.gateway, direct),
  };
}

type Worker = {
  readonly bytes: number;
  /** Resolves to the milliseconds until the first token. */
  ask(name: Name, sample: number, number: number): Promise<number>;
  close(): Promise<void>;
};

/** Each worker has its own bodies, because it writes turn numbers into them. */
function openWorker(origins: Readonly<Record<Name, string>>, size: number): Worker {
  const bodies: readonly Body[] = formats.map((format) => bodyOf(format, size));
  const clients = new Map<Name, Client>(names.map((name) => [name, openClient(origins[name])]));
  return {
    bytes: bodies[0]!.bytes.length,
    async ask(name, sample, number) {
      const at = sample % formats.length;
      renumber(bodies[at]!, number, 'last');
      const { sent, received, outcome } = await clients
        .get(name)!
        .ask(paths[formats[at]!], bodies[at]!.bytes, [mark(0)]);
      if (name === 'gateway' && outcome !== 'untouched')
        throw new Error(`Expected the outcome untouched for ${formats[at]}; got ${outcome}.`);
      return received[0]! - sent;
    },
    async close() {
      for (const client of clients.values()) await client.close();
    },
  };
}

function shuffledNames(next: (below: number) => number): readonly Name[] {
  return names
    .map((name) => ({ name, at: next(1_000_000) }))
    .sort((a, b) => a.at - b.at)
    .map(({ name }) => name);
}
