/** Sends requests through several gateways in turns, so that noise of the machine hits all alike. */
import { load } from './load.ts';
import type { TargetProcess } from './target-process.ts';

/** Requests to one gateway before it is the turn of the next. */
const inTurn = 10;
/** The most requests a second to each gateway. */
const maxRate = 50;
const warmUps = 100;
const bytes = 60_000;

/** Figures of one gateway: the latencies of its requests in ms, and its CPU time in ms a request. */
export type TurnsUse = {
  readonly latencies: readonly number[];
  readonly cpuMs: number;
  readonly rssMb: number;
};

/**
 * Sends `turns` times ten requests of 60 kB through each target over each connection, after a warm-up. With more than one connection, each gateway is
 * as busy as it can be in its turn. `seconds`: how long that took.
 */
export async function loadInTurns(
  targets: readonly TargetProcess[],
  turns: number,
  connections = 1,
): Promise<{ readonly uses: readonly TurnsUse[]; readonly requests: number; readonly seconds: number }> {
  for (const { origin } of targets) await load({ origin, connections, bytes, requests: warmUps });
  const each = inTurn * connections;
  const requests = turns * each;
  const before = await Promise.all(targets.map((target) => target.use()));
  const latencies: number[][] = targets.map(() => []);
  const start = performance.now();
  for (let turn = 0; turn < turns; turn++) {
    for (const [at, { origin }] of targets.entries())
      latencies[at]!.push(...(await load({ origin, connections, bytes, requests: each })).latencies);
    if (connections > 1) continue;
    const wait = start + ((turn + 1) * inTurn * 1_000) / maxRate - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
  }
  const seconds = (performance.now() - start) / 1_000;
  const after = await Promise.all(targets.map((target) => target.use()));
  const uses = after.map(({ cpuMs, rssMb }, at) => ({
    latencies: latencies[at]!,
    cpuMs: (cpuMs - before[at]!.cpuMs) / requests,
    rssMb,
  }));
  return { uses, requests, seconds };
}

/** Returns the value below which a share of the values lie. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
