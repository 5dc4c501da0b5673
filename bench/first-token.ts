/**
 * How much later a client has the first token, and each later one, when it asks through the gateway: with the recall tool offered and
 * not called, for each wire format, beside a raw pipe (node:http into node:http) and beside the same provider asked directly. Then what a
 * recall in the middle of a stream does to what stands before and behind it. Last, whether any of it can be told from noise where a model
 * thinks before it speaks, as all do. Run: `node bench/first-token.ts [--rounds N] [--samples N] [--only thinking]`; it prints tables and,
 * when it ran whole, writes bench/results/first-token.json. About eleven minutes, three of them the last part.
 *
 * The traps are in `traps` below and are printed with the tables, so that nobody reads the figures without them.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { bodyOf, type Format, formats } from './first-token/bodies.ts';
import { measure, type Measured } from './first-token/measure.ts';
import { measureRecall, type RecallMeasured } from './first-token/measure-recall.ts';
import { measureThinking, type ThinkingMeasured } from './first-token/measure-thinking.ts';
import { type Processes, startProcesses } from './first-token/processes.ts';
import { type ProviderKind, providerKinds, serveProvider } from './first-token/provider.ts';
import { type Apart, type Estimate, overlap, type Quantiles } from './first-token/statistics.ts';
import { thinking } from './first-token/think-times.ts';
import { targets } from './gateway/targets.ts';
import { round } from './tokens/arithmetic.ts';

const traps = [
  'All on the loopback of one machine, without TLS: nothing here says what a network or a model adds.',
  "Client, provider, pipe and gateway are processes of their own. On two cores they stand in one another's way, a pipe and the gateway more than direct; where others work on the machine, p95 shows them.",
  'The provider is scripted: it parses and checks the request, says its first token at once and one every 2 ms. A model takes longer.',
  'In formats with content blocks each token is a block of its own here: three events or more where a provider sends one.',
  "Later tokens are timed from the provider's write to the client's read, by the one clock of the machine; the first from sending the request.",
  'Targets are asked in turn, in another order each round. Noise is direct against direct; [a, b] is where 95 % of bootstrap samples lie.',
  '"Never seen" changes every message: what the gateway pays for the first request after a restart, not for each turn.',
  'The gateway has served 275 requests of the kind before it is measured. Its first ones, while its code is being compiled, take 1 to 2 ms more, the very first some 50 ms.',
  'A client that the machine stalls for 20 ms reads what stands before a recall and what comes behind it at once, and counts as late.',
  'Folds that pay are off (`triggers.cacheRent`), so no request is folded but those with a recall: there each replays a fold of 700 kB.',
];

const thinkingTraps = [
  `How long a model thinks is an assumption: log-normal, median ${thinking.medianMs} ms, ${thinking.spread} of spread (of the logarithm). Where it thinks longer or less evenly, less is told apart.`,
  'Noise shrinks with the root of the samples: with enough of them any difference is beyond it. "Within" says that so many requests could not tell, not that there is no difference; the paired figure says how large it is.',
  'The four requests of a sample get the same think time, to a timer of 1 ms; only the paired figure makes use of that.',
  'The provider says nothing before it has thought, not even its status line: all that the gateway does with a response is on the way to the first token.',
  'Samples go on at once, in four formats. What one stalls another waits for, with gateway and without.',
];

const kinds = [
  { request: '5 kB', size: 5_000, renumbered: 'last' },
  { request: '200 kB', size: 200_000, renumbered: 'last' },
  { request: '200 kB, never seen', size: 200_000, renumbered: 'everywhere' },
] as const;

type Cell = { readonly format: Format; readonly request: string; readonly bytes: number } & Measured;
type ThoughtCell = { readonly request: string } & ThinkingMeasured;
type RecallCell = { readonly format: Format; readonly bytes: number } & RecallMeasured;

const [, script, role, argument] = process.argv;
if (role === '--provider') await serveProvider(providerKinds.find((kind) => kind === argument)!);
else if (role === '--pipe') process.send?.(`http://127.0.0.1:${await targets['raw pipe']!(argument!)}`);
else await main();

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { rounds: { type: 'string' }, samples: { type: 'string' }, only: { type: 'string' } },
  });
  const { rounds = '100', samples = '600', only } = values;
  if (only !== undefined && only !== 'thinking')
    throw new Error(`--only is ${only}, but must be thinking: nothing else runs alone.`);
  const loadBefore = loadavg()[0];
  const quick = only === undefined ? await measureQuick(Number(rounds)) : undefined;
  const thought = await measureThought(Number(samples));
  const load = { before: loadBefore, after: loadavg()[0] };
  const machine = { node: process.version, cores: availableParallelism(), load };
  console.log(
    `Milliseconds; Node ${machine.node}, ${machine.cores} cores, load average before ${load.before} and after ${load.after}.`,
  );
  if (quick) {
    const { cells, recalls } = quick;
    console.log(`\nA provider that answers at once, ${rounds} rounds.\n${listed(traps)}`);
    console.table(cells.flatMap(rowsOf));
    console.log('A recall in the middle of a stream: p50 / p95 in milliseconds.');
    console.table(recallTable(recalls, Number(rounds)));
  }
  console.log(`\nA provider that thinks, ${samples} samples.\n${listed(thinkingTraps)}`);
  console.table(thought.flatMap(thoughtRows));
  if (quick) report({ ...machine, rounds, traps, ...quick, samples, thinking, thinkingTraps, thought });
}

function listed(lines: readonly string[]): string {
  return lines.map((line) => `- ${line}\n`).join('');
}

async function measureQuick(rounds: number) {
  const cells: Cell[] = [];
  const recalls: RecallCell[] = [];
  for (const format of formats) {
    const measured = await measureFormat(format, rounds);
    if (measured.length === 0) {
      console.log(`The gateway offers no recall tool in the format ${format}: it is left out.`);
      continue;
    }
    cells.push(...measured);
    const body = bodyOf(format, 700_000);
    const found = await within('recalling', (processes) =>
      measureRecall(processes, { format, body, rounds }),
    );
    recalls.push({ format, bytes: body.bytes.length, ...found });
  }
  return { cells, recalls };
}

async function measureThought(samples: number): Promise<readonly ThoughtCell[]> {
  const cells: ThoughtCell[] = [];
  for (const { request, size } of kinds.slice(0, 2)) {
    const found = await within('thinking', (processes) =>
      measureThinking(processes, { size, samples, atOnce: 16 }),
    );
    cells.push({ request, ...found });
  }
  return cells;
}

/** Empty when the gateway does not serve the format. */
async function measureFormat(format: Format, rounds: number): Promise<readonly Cell[]> {
  const cells: Cell[] = [];
  for (const { request, size, renumbered } of kinds) {
    const body = bodyOf(format, size);
    const found = await within('quick', (processes) =>
      measure(processes, { format, body, renumbered, rounds }),
    );
    if (!found) return [];
    cells.push({ format, request, bytes: body.bytes.length, ...found });
  }
  return cells;
}

async function within<T>(provider: ProviderKind, run: (processes: Processes) => Promise<T>): Promise<T> {
  await using processes = await startProcesses(script!, provider);
  return await run(processes);
}

function rowsOf({ format, request, figures }: Cell) {
  return figures.map(({ what, direct, pipe, gateway, noise }) => ({
    what: `${format}, ${request}: ${what}`,
    direct: both(direct),
    noise: spelled(noise.p50),
    'pipe +p50': spelled(pipe.p50),
    'gateway +p50': spelled(gateway.p50),
    'pipe +p95': spelled(pipe.p95),
    'gateway +p95': spelled(gateway.p95),
    'gateway is': overlap(gateway.p50, noise.p50) ? 'within noise' : 'beyond noise',
  }));
}

function thoughtRows({ request, direct, noise, pipe, gateway }: ThoughtCell) {
  const rowOf = (target: string, { medians, paired, later }: Apart) => ({
    what: `${request}: ${target}`,
    'direct p50 / p95': both(direct),
    'median later by': spelled(medians),
    'than noise is': isWithin(medians.value, noise.medians) ? 'within' : 'beyond',
    'in the same sample later by': spelled(paired),
    'later in pairs': `${(100 * later).toFixed(1)} %`,
  });
  return [rowOf('direct again (noise)', noise), rowOf('pipe', pipe), rowOf('gateway', gateway)];
}

function isWithin(value: number, { low, high }: Estimate): boolean {
  return low <= value && value <= high;
}

/** A row an interval, a column a format. */
function recallTable(recalls: readonly RecallCell[], rounds: number) {
  const table: Record<string, Record<string, string>> = {};
  const put = (row: string, format: Format, text: string): void => {
    table[row] = { ...table[row], [format]: text };
  };
  for (const { format, intervals, before } of recalls) {
    for (const [name, interval] of Object.entries(intervals)) put(name, format, both(interval));
    put('text before it received before its answer', format, `${before.answer} of ${rounds}`);
    put('text before it received before its call began', format, `${before.call} of ${rounds}`);
  }
  return table;
}

function both({ p50, p95 }: Quantiles): string {
  return `${p50.toFixed(2)} / ${p95.toFixed(2)}`;
}

function spelled({ value, low, high }: Estimate): string {
  return `${value.toFixed(2)} [${low.toFixed(2)}, ${high.toFixed(2)}]`;
}

function report(results: object): void {
  const folder = new URL('results/', import.meta.url);
  mkdirSync(folder, { recursive: true });
  writeFileSync(new URL('first-token.json', folder), `${JSON.stringify(results, rounded, 2)}\n`);
}

function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? round(value, 3) : value;
}
