/**
 * Measures whether requests wait for summaries. Agents send requests to gateways of the same build with different settings: summaries off,
 * extractive, and by a model that takes 30 s for each summary. Run `node bench/summary-latency.ts [--rounds N] [--summary-ms N]`; it prints
 * tables. It takes about six minutes.
 *
 * The traps are in `traps` below and are printed with the tables.
 */
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import type { Totals } from '../src/receipts/totals.ts';
import type { SummaryReceipt } from '../src/receipts/receipt.ts';
import { difference, type Estimate, quantiles } from './first-token/statistics.ts';
import { type Played, play, type Round } from './summary-latency/play.ts';
import { startAll } from './summary-latency/processes.ts';
import { serveSlowProvider } from './summary-latency/provider.ts';

const defaults = { rounds: 240, summaryMs: 30_000 };
const agents = 4;
const paceMs = 1_250;
const firstFiles = 40;
/** Rounds that are not measured: code is compiled, and each conversation is new to the gateways. */
const warmUp = 10;

const traps = [
  'Everything runs on the loopback of one machine, without TLS. The provider answers at once, except for summaries.',
  `${agents} agents each add one call with a result of about 1,000 tokens every ${paceMs} ms. Slower agents, like real ones, would find more summaries ready; faster ones would get more extracts.`,
  'Targets are asked in turn, in a new random order in each round, one request at a time. "off, again" has the settings of "off", so their difference is noise.',
  'Folds are set up to need summaries: from 60,000 tokens to 6,000, so that stubs of results are not enough. The triggers for cache cost and cold caches are off.',
  'Background work for a summary (building its prompt, checking its text) runs on the thread that serves requests. Few requests meet it, so it shows in p95 and in the longest request, not in the median.',
  'A gateway that folded sends less, and the provider reads less, so its requests may be faster than those that were not folded.',
];

const triggers = [
  'triggers.cacheRent=false',
  'triggers.coldCache=false',
  'triggers.tokenBudget={"triggerTokens":60000,"targetTokens":6000,"bufferTokens":1}',
].flatMap((one) => ['--set', one]);
const slow = 'by a model, slow';
const settings = {
  off: triggers,
  'off, again': triggers,
  extractive: [...triggers, '--set', 'summaries={"kind":"extractive"}'],
  [slow]: [...triggers, '--set', 'summaries={"kind":"model"}'],
} as const;
const names = Object.keys(settings) as readonly (keyof typeof settings)[];

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: String(defaults.rounds) },
    'summary-ms': { type: 'string', default: String(defaults.summaryMs) },
    provider: { type: 'string' },
  },
});
if (options.provider !== undefined) await serveSlowProvider(Number(options.provider));
else await main(Number(options.rounds), Number(options['summary-ms']));

async function main(rounds: number, summaryMs: number): Promise<void> {
  const before = loadavg()[0];
  await using running = await startAll(process.argv[1]!, summaryMs, settings);
  const targets = { direct: running.provider, ...running.gateways };
  const played = await play({ targets, agents, rounds, firstFiles, paceMs, receiptsOf: slow });
  const measured = { ...played, rounds: played.rounds.slice(warmUp) };
  const rows: Row[] = [];
  for (const name of names) rows.push(rowOf(name, measured, await totalsOf(running.gateways[name]!)));
  const load = { before, after: loadavg()[0] };
  print(rows, measured);
  console.log(
    `Node ${process.version}, ${availableParallelism()} cores, load average ${load.before} before the run, ${load.after} after it.`,
  );
}

/** Latencies in milliseconds. */
type Spread = {
  readonly p50: number;
  readonly p95: number;
  readonly longest: number;
  readonly requests: number;
};

type Row = {
  readonly name: string;
  readonly all: Spread;
  /** Requests in rounds during which the slow model wrote a summary. */
  readonly duringSummaries: Spread;
  readonly overDirect: { readonly p50: Estimate; readonly p95: Estimate };
  readonly overOff: { readonly p50: Estimate; readonly p95: Estimate };
  readonly totals: Pick<Totals, 'folds' | 'summaries'> & { readonly by: Readonly<Record<string, number>> };
};

function rowOf(name: string, { rounds, receipts }: Played, { folds, summaries, compressions }: Totals): Row {
  const written = receipts.filter((one): one is SummaryReceipt => one.kind === 'summary');
  const isDuringSummary = ({ at }: Round) => written.some((one) => one.at <= at && at <= one.at + one.ms);
  const of = (target: string, some = rounds) => some.map(({ ms }) => ms[target]!);
  return {
    name,
    all: spreadOf(of(name)),
    duringSummaries: spreadOf(of(name, rounds.filter(isDuringSummary))),
    overDirect: difference(of(name), of('direct')),
    overOff: difference(of(name), of('off')),
    totals: { folds, summaries, by: compressions?.by ?? {} },
  };
}

function spreadOf(rounds: readonly (readonly number[])[]): Spread {
  const all = rounds.flat();
  return { ...quantiles(rounds), longest: Math.max(...all), requests: all.length };
}

/** Returns the gateway's totals. They have no `compressions` if there were none. */
async function totalsOf(origin: string): Promise<Totals> {
  const answer = await fetch(`${origin}/_leporello/totals`, { headers: { authorization: 'Bearer bench' } });
  return ((await answer.json()) as { readonly total: Totals }).total;
}

function print(rows: readonly Row[], { receipts }: Played): void {
  console.log(traps.map((line) => `- ${line}\n`).join(''));
  console.table(
    rows.map(({ name, all, duringSummaries, overDirect, overOff }) => ({
      summaries: name,
      'ms, p50 / p95 / longest': spreadText(all),
      [`during a summary (${duringSummaries.requests})`]: spreadText(duringSummaries),
      'minus direct, p50': withInterval(overDirect.p50),
      'minus direct, p95': withInterval(overDirect.p95),
      'minus off, p50': withInterval(overOff.p50),
      'minus off, p95': withInterval(overOff.p95),
    })),
  );
  console.table(
    rows.map(({ name, totals: { folds, summaries, by } }) => ({
      summaries: name,
      folds,
      'requested from the model': summaries,
      'used text of the model': (by['summarizer'] ?? 0) + (by['both'] ?? 0),
      extracts: by['extractive'] ?? 0,
    })),
  );
  const durations = receipts.flatMap((one) => (one.kind === 'summary' ? [one.ms] : []));
  if (durations.length === 0) {
    console.log('No summary was written by the model. Use more rounds.');
    return;
  }
  const { longest } = rows.find(({ name }) => name === slow)!.all;
  console.log(
    `${durations.length} summaries took ${Math.min(...durations).toFixed(0)} to ${Math.max(...durations).toFixed(0)} ms each. The longest request of the same gateway took ${longest.toFixed(0)} ms.`,
  );
}

function spreadText({ p50, p95, longest }: Spread): string {
  return [p50, p95, longest].map((ms) => ms.toFixed(1)).join(' / ');
}

function withInterval({ value, low, high }: Estimate): string {
  return `${value.toFixed(2)} [${low.toFixed(2)}, ${high.toFixed(2)}]`;
}
