/**
 * Whether any request waits for a summary: agents play request by request against gateways of one build, side by side, with summaries off,
 * extractive, and by a model whose provider takes 30 s for each. Run: `node bench/summary-latency.ts [--rounds N] [--summary-ms N]`; it
 * prints tables and, with its usual length, writes bench/results/summary-latency.json. Some six minutes.
 *
 * The traps are in `traps` below and are printed with the tables, so that nobody reads the figures without them.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import type { Totals } from '../src/receipts/totals.ts';
import type { SummaryReceipt } from '../src/receipts/receipt.ts';
import { difference, type Estimate, quantiles } from './first-token/statistics.ts';
import { type Played, play, type Round } from './summary-latency/play.ts';
import { startAll } from './summary-latency/processes.ts';
import { serveSlowProvider } from './summary-latency/provider.ts';
import { round } from './tokens/arithmetic.ts';

const usual = { rounds: 240, summaryMs: 30_000 };
const agents = 4;
const paceMs = 1_250;
const firstFiles = 40;
/** Code is compiled, and each conversation is met for the first time. */
const warmUp = 10;

const traps = [
  'All on the loopback of one machine, without TLS; the provider answers everything but summaries at once.',
  `${agents} agents go on by one call with a result of some 1,000 tokens each ${paceMs} ms. Slower ones, as real ones are, find more of their summaries ready; faster ones get more extracts.`,
  'Targets are asked in turn, in another order each round, one request at a time. "off, again" has the settings of "off": how far the two are apart is noise.',
  'Folds are made for summaries: at 60,000 tokens down to 6,000, so that stubs of results are not enough, and none by price or time.',
  'What is done in the background for a summary (its prompt built, its words checked) runs on the thread that serves requests: one request in many meets it, so that p95 and the longest show it rather than the median.',
  'A gateway that has folded sends less, and the provider reads less: its requests may come back sooner than those that nobody folded.',
];

const triggers = [
  'triggers.cacheRent=false',
  'triggers.coldCache=false',
  'triggers.tokenBudget={"trigger":60000,"target":6000,"buffer":1}',
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
    rounds: { type: 'string', default: String(usual.rounds) },
    'summary-ms': { type: 'string', default: String(usual.summaryMs) },
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
  const machine = { node: process.version, cores: availableParallelism(), load, rounds, summaryMs };
  print(rows, measured);
  console.log(
    `Node ${machine.node}, ${machine.cores} cores, load average before ${load.before} and after ${load.after}.`,
  );
  if (rounds === usual.rounds && summaryMs === usual.summaryMs) report({ ...machine, traps, rows });
}

type Spread = { readonly p50: number; readonly p95: number; readonly longest: number; readonly of: number };

type Row = {
  readonly name: string;
  readonly all: Spread;
  /** In rounds in which the slow gateway had a summary written. */
  readonly meanwhile: Spread;
  readonly overDirect: { readonly p50: Estimate; readonly p95: Estimate };
  readonly overOff: { readonly p50: Estimate; readonly p95: Estimate };
  readonly totals: Pick<Totals, 'folds' | 'summaries'> & { readonly by: Readonly<Record<string, number>> };
};

function rowOf(name: string, { rounds, receipts }: Played, { folds, summaries, compressions }: Totals): Row {
  const written = receipts.filter((one): one is SummaryReceipt => 'kind' in one);
  const isMeanwhile = ({ at }: Round) => written.some((one) => one.at <= at && at <= one.at + one.ms);
  const of = (target: string, some = rounds) => some.map(({ ms }) => ms[target]!);
  return {
    name,
    all: spreadOf(of(name)),
    meanwhile: spreadOf(of(name, rounds.filter(isMeanwhile))),
    overDirect: difference(of(name), of('direct')),
    overOff: difference(of(name), of('off')),
    totals: { folds, summaries, by: compressions?.by ?? {} },
  };
}

function spreadOf(rounds: readonly (readonly number[])[]): Spread {
  const all = rounds.flat();
  return { ...quantiles(rounds), longest: Math.max(...all), of: all.length };
}

/** Compressions are left out where there are none. */
async function totalsOf(origin: string): Promise<Totals> {
  const answer = await fetch(`${origin}/_leporello/totals`, { headers: { authorization: 'Bearer bench' } });
  return ((await answer.json()) as { readonly total: Totals }).total;
}

function print(rows: readonly Row[], { receipts }: Played): void {
  console.log(traps.map((line) => `- ${line}\n`).join(''));
  console.table(
    rows.map(({ name, all, meanwhile, overDirect, overOff }) => ({
      summaries: name,
      'ms, p50 / p95 / longest': spelled(all),
      [`while one was written (${meanwhile.of})`]: spelled(meanwhile),
      'added to direct, p50': between(overDirect.p50),
      p95: between(overDirect.p95),
      'later than off, p50': between(overOff.p50),
      'p95 ': between(overOff.p95),
    })),
  );
  console.table(
    rows.map(({ name, totals: { folds, summaries, by } }) => ({
      summaries: name,
      folds,
      'asked of a model': summaries,
      "with a model's words": (by['summarizer'] ?? 0) + (by['both'] ?? 0),
      extracts: by['extractive'] ?? 0,
    })),
  );
  const took = receipts.flatMap((one) => ('kind' in one ? [one.ms] : []));
  const { longest } = rows.find(({ name }) => name === slow)!.all;
  console.log(
    `${took.length} summaries took ${Math.min(...took).toFixed(0)} to ${Math.max(...took).toFixed(0)} ms each; the longest request beside them ${longest.toFixed(0)} ms.`,
  );
}

function spelled({ p50, p95, longest }: Spread): string {
  return [p50, p95, longest].map((ms) => ms.toFixed(1)).join(' / ');
}

function between({ value, low, high }: Estimate): string {
  return `${value.toFixed(2)} [${low.toFixed(2)}, ${high.toFixed(2)}]`;
}

function report(results: object): void {
  const folder = new URL('results/', import.meta.url);
  mkdirSync(folder, { recursive: true });
  const text = JSON.stringify(
    results,
    (_key, value: unknown) => (typeof value === 'number' ? round(value, 3) : value),
    2,
  );
  writeFileSync(new URL('summary-latency.json', folder), `${text}\n`);
}
