/**
 * Measures what experiments cost the requests that are served: the latency and the CPU time of folded requests through a gateway with a holdout and
 * one with a shadow, relative to one without. Run `node bench/experiments.ts`; it takes two minutes and only prints.
 *
 * Traps: (1) The gateways take turns: ten requests each at most 50 a second, or ten over each of several connections as fast as it goes. So noise of the machine hits all alike; a second gateway without
 * an experiment shows how much two equal ones differ. (2) A shadow waits for an idle moment of its gateway, so
 * with several connections, its requests fall into the turns of the others, and make them slower: the CPU time of a request shows what it does. (3) The requests differ in
 * their last message only: each repeats one fold, and a shadow with the default share repeats one in a hundred of them.
 */
import { loadInTurns, quantile } from './gateway/in-turns.ts';
import { startTarget } from './gateway/target-process.ts';
import { startUpstream } from './gateway/upstream.ts';

const names = ['gateway that folds', 'gateway that folds', 'gateway with holdout', 'gateway with shadow'];

const upstream = await startUpstream();
const targets = [];
for (const name of names) targets.push(await startTarget(name, upstream));
const gateways = ['without', 'without, again', 'with a holdout', 'with a shadow'];
const rows: object[] = [];
for (const [connections, turns] of [
  [1, 150],
  [4, 40],
  [16, 15],
] as const) {
  const { uses } = await loadInTurns(targets, turns, connections);
  const [median, tail] = [0.5, 0.99].map((share) => quantile(uses[0]!.latencies, share));
  const rowOf = (gateway: string, at: number) => ({
    connections,
    gateway,
    'p50 ms': round(quantile(uses[at]!.latencies, 0.5)),
    'p99 ms': round(quantile(uses[at]!.latencies, 0.99)),
    'p50 ratio': round(quantile(uses[at]!.latencies, 0.5) / median!),
    'p99 ratio': round(quantile(uses[at]!.latencies, 0.99) / tail!),
    'CPU ms a request': round(uses[at]!.cpuMs),
  });
  rows.push(...gateways.map(rowOf));
}
console.table(rows);
for (const at of [2, 3]) console.log(`${names[at]}: ${await resultsOf(targets[at]!.origin)}`);
for (const target of targets) target.kill();
process.exit();

/** Says what the experiment counted, to show that it ran. */
async function resultsOf(origin: string): Promise<string> {
  const results = (await (await fetch(`${origin}/_leporello/experiment`)).json()) as {
    readonly experiments: readonly { readonly open: number }[];
    readonly shadows: readonly { readonly tally: object }[];
  };
  const open = results.experiments.reduce((sum, one) => sum + one.open, 0);
  return `${open} conversations, ${JSON.stringify(results.shadows.map(({ tally }) => tally))}`;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
