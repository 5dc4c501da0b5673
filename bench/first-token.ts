/**
 * Measures the delay that the gateway adds to the first token and to later tokens of a stream, in each wire format, with the recall tool
 * offered but not called. It compares three ways: directly to the provider, through a raw pipe (node:http into node:http), and through the
 * gateway. A second part measures a recall in the middle of a stream: when the client receives the text before it and the text after it. A
 * third part uses a provider that thinks before it answers, as models do, and tests whether the delay is larger than noise. Run
 * `node bench/first-token.ts [--rounds N] [--samples N] [--only thinking]`; it prints tables and, without options, writes
 * bench/results/first-token.json. It takes about two minutes.
 *
 * The traps are in `traps` below and are printed with the tables.
 */
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { bodyOf, type Format, formats } from './first-token/bodies.ts';
import { measure, type Measured } from './first-token/measure.ts';
import { measureRecall, type RecallMeasured } from './first-token/measure-recall.ts';
import { measureThinking, type ThinkingMeasured } from './first-token/measure-thinking.ts';
import { type Processes, startProcesses } from './first-token/processes.ts';
import { type ProviderKind, providerKinds, serveProvider } from './first-token/provider.ts';
import { type Comparison, type Estimate, overlap, type Quantiles } from './first-token/statistics.ts';
import { thinking } from './first-token/think-times.ts';
import { targets } from './gateway/targets.ts';
import { writeResult } from './results.ts';

const traps = [
  'Everything runs on the loopback of one machine, without TLS. Networks and models add delays that are not measured here.',
  'Client, provider, pipe and gateway are separate processes. On two cores they compete, which slows the pipe and the gateway more than direct requests. Other work on the machine shows in p95.',
  'The provider is scripted: it parses and checks the request, sends its first token at once and then one every 2 ms. A model takes longer.',
  'In formats with content blocks, each token is a block of its own here: three or more events, while a real provider sends one.',
  "The first token is timed from sending the request, later tokens from the provider's write to the client's read, by the same clock.",
  'Targets are asked in turn, in a new random order in each round. Noise is direct compared with direct. The p95 of a first token comes from few requests: use more rounds to compare it. [a, b] contains 95 % of the bootstrap samples.',
  '"Never seen" changes every message. The gateway has this cost for the first request after a restart, not in each turn.',
  'The gateway of a format serves 250 requests of 5 kB before they are measured, then 100 of 200 kB and 50 never seen. The provider answers these without pauses. While its code is being compiled, requests take 1 to 2 ms longer, the first one about 50 ms.',
  'If the machine stalls the client for 20 ms, the client reads the text before a recall and the text after it at the same time, and the first counts as late.',
  'The trigger `cacheRent` is off, so only the requests with a recall are folded: each of them repeats a fold of 700 kB.',
];

const thinkingTraps = [
  `The think time of the model is an assumption: log-normal, median ${thinking.medianMs} ms, standard deviation of the logarithm ${thinking.spread}. With longer or more variable think times, smaller differences disappear in noise.`,
  'Noise shrinks with the square root of the number of samples, so with enough samples any difference exceeds it. "Within" means that this many requests could not show a difference, not that there is none. The paired figure shows its size.',
  'The four requests of a sample get the same think time, as exactly as a timer of 1 ms allows. Only the paired figure uses this.',
  'The provider sends nothing before it has thought, not even its status line, so all work of the gateway on a response delays the first token.',
  'Samples run concurrently, in four formats. If one stalls the machine, the others wait, with and without the gateway.',
];

const kinds = [
  { request: '5 kB', size: 5_000, renumbered: 'last', warmUp: 250 },
  { request: '200 kB', size: 200_000, renumbered: 'last', warmUp: 100 },
  { request: '200 kB, never seen', size: 200_000, renumbered: 'everywhere', warmUp: 50 },
] as const;

type Cell = { readonly format: Format; readonly request: string; readonly bytes: number } & Measured;
type ThinkingCell = { readonly request: string } & ThinkingMeasured;
type RecallCell = { readonly format: Format; readonly bytes: number } & RecallMeasured;

const [, script, role, argument] = process.argv;
if (role === '--provider') await serveProvider(providerKinds.find((kind) => kind === argument)!);
else if (role === '--pipe') process.send?.(`http://127.0.0.1:${await targets['raw pipe']!(argument!)}`);
else await main();

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { rounds: { type: 'string' }, samples: { type: 'string' }, only: { type: 'string' } },
  });
  const { rounds = '30', samples = '120', only } = values;
  if (only !== undefined && only !== 'thinking')
    throw new Error(`--only is ${only}, but must be thinking: no other part runs alone.`);
  const loadBefore = loadavg()[0];
  const quick = only === undefined ? await measureQuick(Number(rounds)) : undefined;
  const thinkingCells = await measureThinkingCells(Number(samples));
  const load = { before: loadBefore, after: loadavg()[0] };
  const machine = { node: process.version, cores: availableParallelism(), load };
  console.log(
    `All figures are milliseconds. Node ${machine.node}, ${machine.cores} cores, load average ${load.before} before the run, ${load.after} after it.`,
  );
  if (quick) {
    const { cells, recalls } = quick;
    console.log(`\nProvider that answers at once, ${rounds} rounds.\n${listed(traps)}`);
    console.table(cells.flatMap(rowsOf));
    console.log('Recall in the middle of a stream: p50 / p95 in milliseconds.');
    console.table(recallTable(recalls, Number(rounds)));
  }
  console.log(`\nProvider that thinks, ${samples} samples.\n${listed(thinkingTraps)}`);
  console.table(thinkingCells.flatMap(thinkingRows));
  if (quick) {
    const { cells, recalls } = quick;
    writeResult('first-token', {
      rounds: Number(rounds),
      cells,
      recalls,
      samples: Number(samples),
      thinking,
      thinkingCells,
    });
  }
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
      console.log(`The format ${format} is left out: the gateway does not offer the recall tool in it.`);
      continue;
    }
    cells.push(...measured);
    const body = bodyOf(format, 700_000);
    const result = await withProcesses('recalling', (processes) =>
      measureRecall(processes, { format, body, rounds }),
    );
    recalls.push({ format, bytes: body.bytes.length, ...result });
  }
  return { cells, recalls };
}

async function measureThinkingCells(samples: number): Promise<readonly ThinkingCell[]> {
  const cells: ThinkingCell[] = [];
  for (const { request, size } of kinds.slice(0, 2)) {
    const result = await withProcesses('thinking', (processes) =>
      measureThinking(processes, { size, samples, concurrency: 16 }),
    );
    cells.push({ request, ...result });
  }
  return cells;
}

/** Returns no cells if the gateway does not offer the recall tool in the format. All requests of a format go to the same gateway. */
async function measureFormat(format: Format, rounds: number): Promise<readonly Cell[]> {
  return withProcesses('quick', async (processes) => {
    const cells: Cell[] = [];
    for (const { request, size, ...how } of kinds) {
      const body = bodyOf(format, size);
      const result = await measure(processes, { format, body, ...how, rounds });
      if (!result) return [];
      cells.push({ format, request, bytes: body.bytes.length, ...result });
    }
    return cells;
  });
}

async function withProcesses<T>(
  provider: ProviderKind,
  run: (processes: Processes) => Promise<T>,
): Promise<T> {
  await using processes = await startProcesses(script!, provider);
  return await run(processes);
}

function rowsOf({ format, request, figures }: Cell) {
  return figures.map(({ token, direct, pipe, gateway, noise }) => ({
    measured: `${format}, ${request}: ${token}`,
    direct: both(direct),
    noise: withInterval(noise.p50),
    'pipe +p50': withInterval(pipe.p50),
    'gateway +p50': withInterval(gateway.p50),
    'pipe +p95': withInterval(pipe.p95),
    'gateway +p95': withInterval(gateway.p95),
    'gateway is': overlap(gateway.p50, noise.p50) ? 'within noise' : 'beyond noise',
  }));
}

function thinkingRows({ request, direct, noise, pipe, gateway }: ThinkingCell) {
  const rowOf = (target: string, { medians, paired, later }: Comparison) => ({
    target: `${request}: ${target}`,
    'direct p50 / p95': both(direct),
    'difference of medians': withInterval(medians),
    noise: isWithin(medians.value, noise.medians) ? 'within' : 'beyond',
    'median difference in a sample': withInterval(paired),
    'later in pairs': `${(100 * later).toFixed(1)} %`,
  });
  return [rowOf('direct again (noise)', noise), rowOf('pipe', pipe), rowOf('gateway', gateway)];
}

function isWithin(value: number, { low, high }: Estimate): boolean {
  return low <= value && value <= high;
}

/** Returns a row for each interval, with a column for each format. */
function recallTable(recalls: readonly RecallCell[], rounds: number) {
  const table: Record<string, Record<string, string>> = {};
  const put = (row: string, format: Format, text: string): void => {
    table[row] = { ...table[row], [format]: text };
  };
  for (const { format, intervals, before } of recalls) {
    for (const [name, interval] of Object.entries(intervals)) put(name, format, both(interval));
    put(
      'text before the recall received before the recall was answered',
      format,
      `${before.answer} of ${rounds}`,
    );
    put('text before the recall received before the call began', format, `${before.call} of ${rounds}`);
  }
  return table;
}

function both({ p50, p95 }: Quantiles): string {
  return `${p50.toFixed(2)} / ${p95.toFixed(2)}`;
}

function withInterval({ value, low, high }: Estimate): string {
  return `${value.toFixed(2)} [${low.toFixed(2)}, ${high.toFixed(2)}]`;
}
