/**
 * One size of request behind a provider that thinks: asked directly, twice, through a raw pipe and through the gateway. The four requests
 * of a sample get the same think time and are asked one after the other in random order; many samples go on at once, in all formats.
 */
import { randomNumbers } from '../tokens/arithmetic.ts';
import { type Body, bodyOf, formats, paths, renumber } from './bodies.ts';
import { type Client, openClient } from './client.ts';
import type { Processes } from './processes.ts';
import { mark, quickFrom } from './provider.ts';
import { type Apart, apart, type Quantiles, quantiles } from './statistics.ts';

export type ThinkingOptions = {
  /** Bytes of a request. */
  readonly size: number;
  readonly samples: number;
  /** Samples under way at once. */
  readonly atOnce: number;
};

/** All but `direct` are against it. */
export type ThinkingMeasured = {
  readonly bytes: number;
  readonly direct: Quantiles;
  readonly noise: Apart;
  readonly pipe: Apart;
  readonly gateway: Apart;
};

const names = ['direct', 'direct again', 'pipe', 'gateway'] as const;
type Name = (typeof names)[number];

/** Requests in each format before that, so that figures are of compiled code: ours takes more of them. */
const warmUp = { direct: 25, 'direct again': 25, pipe: 25, gateway: 250 };

export async function measureThinking(
  processes: Processes,
  { size, samples, atOnce }: ThinkingOptions,
): Promise<ThinkingMeasured> {
  const { provider, pipe, gateway } = processes;
  const origins: Record<Name, string> = { direct: provider, 'direct again': provider, pipe, gateway };
  const workers = Array.from({ length: atOnce }, () => openWorker(origins, size));
  const firsts: Record<Name, number[]> = { direct: [], 'direct again': [], pipe: [], gateway: [] };

  for (const name of names) {
    for (let turn = 0; turn < warmUp[name] * formats.length; turn += 1)
      await workers[0]!.ask(name, turn, quickFrom + turn);
  }
  await processes.told();

  const next = randomNumbers(5);
  let begun = 0;
  const run = async (worker: Worker): Promise<void> => {
    while (begun < samples) {
      const sample = begun++;
      for (const name of shuffledNames(next)) {
        const number = sample * names.length + names.indexOf(name);
        firsts[name][sample] = await worker.ask(name, sample, number);
      }
    }
  };
  await Promise.all(workers.map(run));
  const offered = (await processes.told()).filter((told) => told.offered).length;
  if (offered !== samples)
    throw new Error(`The recall tool was offered in ${offered} of ${samples} requests.`);
  await Promise.all(workers.map((worker) => worker.close()));

  const { direct } = firsts;
  return {
    bytes: workers[0]!.bytes,
    direct: quantiles([direct]),
    noise: apart(firsts['direct again'], direct),
    pipe: apart(firsts.pipe, direct),
    gateway: apart(firsts.gateway, direct),
  };
}

type Worker = {
  readonly bytes: number;
  /** Milliseconds to the first token. */
  ask(name: Name, sample: number, number: number): Promise<number>;
  close(): Promise<void>;
};

/** Bodies are written into, so each worker has its own. */
function openWorker(origins: Readonly<Record<Name, string>>, size: number): Worker {
  const bodies: readonly Body[] = formats.map((format) => bodyOf(format, size));
  const clients = new Map<Name, Client>(names.map((name) => [name, openClient(origins[name])]));
  return {
    bytes: bodies[0]!.bytes.length,
    async ask(name, sample, number) {
      const at = sample % formats.length;
      renumber(bodies[at]!, number, 'last');
      const { sent, got, outcome } = await clients
        .get(name)!
        .ask(paths[formats[at]!], bodies[at]!.bytes, [mark(0)]);
      if (name === 'gateway' && outcome !== 'untouched')
        throw new Error(`The gateway's outcome for ${formats[at]} is ${outcome}.`);
      return got[0]! - sent;
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
