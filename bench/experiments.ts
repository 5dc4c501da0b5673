/**
 * Measures what experiments cost the requests that are served: the latency and the CPU time of folded requests through a gateway with a holdout and
 * one with a shadow, relative to one without. Run `node bench/experiments.ts`; it takes a minute and only prints.
 *
 * Traps: (1) The gateways take turns, ten requests each and at most 50 a second, so noise of the machine hits all alike; a second gateway without
 * an experiment shows how much two equal ones differ. (2) The upstream answers at once, so a shadow sends its requests while the next ones
 * are served, and works at the same time on the same core. With a real provider they are spread over seconds. (3) The requests differ in
 * their last message only: each repeats one fold, and a shadow with the default share repeats one in a hundred of them.
 */
import { load } from './gateway/load.ts';
import { startTarget } from './gateway/target-process.ts';
import { startUpstream } from './gateway/upstream.ts';

const turns = 150;
/** Requests to one gateway before it is the turn of the next. */
const inTurn = 10;
const requests = turns * inTurn;
/** The most requests a second to each gateway. */
const maxRate = 50;
const warmUps = 100;
const bytes = 60_000;
const names = ['gateway that folds', 'gateway that folds', 'gateway with holdout', 'gateway with shadow'];

const upstream = await startUpstream();
const targets = [];
for (const name of names) targets.push(await startTarget(name, upstream));
for (const { origin } of targets) await load({ origin, connections: 1, bytes, requests: warmUps });

const before = await Promise.all(targets.map((target) => target.use()));
const latencies: number[][] = targets.map(() => []);
const start = performance.now();
for (let turn = 0; turn < turns; turn++) {
  for (const [at, { origin }] of targets.entries())
    latencies[at]!.push(...(await load({ origin, connections: 1, bytes, requests: inTurn })).latencies);
  const wait = start + ((turn + 1) * inTurn * 1_000) / maxRate - performance.now();
  if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
}
const after = await Promise.all(targets.map((target) => target.use()));

const [median, tail] = [0.5, 0.99].map((share) => quantile(latencies[0]!, share));
console.table(
  ['without', 'without, again', 'with a holdout', 'with a shadow'].map((gateway, at) => ({
    gateway,
    'p50 ms': round(quantile(latencies[at]!, 0.5)),
    'p99 ms': round(quantile(latencies[at]!, 0.99)),
    'p50 ratio': round(quantile(latencies[at]!, 0.5) / median!),
    'p99 ratio': round(quantile(latencies[at]!, 0.99) / tail!),
    'CPU ms a request': round((after[at]!.cpuMs - before[at]!.cpuMs) / requests),
  })),
);
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

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
