/** Plays agents against all targets and records the time of each request. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import type { AnyReceipt } from '../../src/gateway/receipts/receipts.ts';
import { now } from '../first-token/clock.ts';
import { randomNumbers } from '../tokens/arithmetic.ts';
import { bodyAfter } from './agents.ts';

/** A round: its start in milliseconds since the epoch, and the milliseconds of each agent's request by target. */
export type Round = { readonly at: number; readonly ms: Readonly<Record<string, readonly number[]>> };

export type Played = {
  readonly rounds: readonly Round[];
  /** Receipts of the target `receiptsOf`. */
  readonly receipts: readonly AnyReceipt[];
};

type Plan = {
  /** Origins by name. */
  readonly targets: Readonly<Record<string, string>>;
  readonly agents: number;
  readonly rounds: number;
  readonly firstFiles: number;
  readonly paceMs: number;
  /** The target whose receipts are read. */
  readonly receiptsOf: string;
};

const headers = { 'content-type': 'application/json', authorization: 'Bearer bench' };

/** Receipts are read after this many rounds, because a gateway lists only the newest 500. */
const roundsPerReading = 50;

export async function play({ targets, receiptsOf, ...plan }: Plan): Promise<Played> {
  const next = randomNumbers(3);
  const pools = Object.entries(targets).map(([name, origin]) => ({
    name,
    pool: new Pool(origin, { connections: 1 }),
  }));
  const rounds: Round[] = [];
  const receipts = new Map<string, AnyReceipt>();
  for (let round = 0; round < plan.rounds; round++) {
    const due = now() + plan.paceMs;
    const at = Date.now();
    const bodies = Array.from({ length: plan.agents }, (_, agent) =>
      bodyAfter(agent, plan.firstFiles + round),
    );
    const ms: Record<string, number[]> = {};
    const order = pools.map((target) => ({ ...target, place: next(1_000) }));
    for (const { name, pool } of order.toSorted((a, b) => a.place - b.place)) {
      ms[name] = [];
      for (const body of bodies) ms[name].push(await ask(pool, body));
    }
    rounds.push({ at, ms });
    if (round % roundsPerReading === 0 || round === plan.rounds - 1)
      for (const receipt of await read(targets[receiptsOf]!)) receipts.set(receipt.id, receipt);
    await sleep(Math.max(0, due - now()));
  }
  await Promise.all(pools.map(({ pool }) => pool.close()));
  return { rounds, receipts: [...receipts.values()] };
}

async function ask(pool: Pool, body: string): Promise<number> {
  const sent = now();
  const answer = await pool.request({ method: 'POST', path: '/v1/chat/completions', headers, body });
  const text = await answer.body.text();
  if (answer.statusCode !== 200)
    throw new Error(`Expected status 200, got ${answer.statusCode}: ${text.slice(0, 300)}`);
  return now() - sent;
}

async function read(origin: string): Promise<readonly AnyReceipt[]> {
  const answer = await fetch(`${origin}/_leporello/receipts?limit=500`, { headers });
  return ((await answer.json()) as { readonly receipts: readonly AnyReceipt[] }).receipts;
}
