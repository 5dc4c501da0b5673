/**
 * How much later a client has the first token, and each later one, when it asks through the gateway: with the recall tool offered and
 * not called, for each wire format, beside a raw pipe (node:http into node:http) and beside the same provider asked directly. Then what a
 * recall in the middle of a stream does to what stands before and behind it. Run: `node bench/first-token.ts [ROUNDS]`; it prints
 * tables and writes bench/results/first-token.json. About six minutes.
 *
 * The traps are in `traps` below and are printed with the tables, so that nobody reads the figures without them.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { bodyOf, type Format, formats } from './first-token/bodies.ts';
import { measure, type Measured } from './first-token/measure.ts';
import { measureRecall, type RecallMeasured } from './first-token/measure-recall.ts';
import { type Processes, startProcesses } from './first-token/processes.ts';
import { serveProvider } from './first-token/provider.ts';
import { type Estimate, overlap, type Quantiles } from './first-token/statistics.ts';
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
  'No request is long enough to be folded, but those with a recall: there each replays a fold of 700 kB.',
];

const kinds = [
  { request: '5 kB', size: 5_000, renumbered: 'last' },
  { request: '200 kB', size: 200_000, renumbered: 'last' },
  { request: '200 kB, never seen', size: 200_000, renumbered: 'everywhere' },
] as const;

type Cell = { readonly format: Format; readonly request: string; readonly bytes: number } & Measured;
type RecallCell = { readonly format: Format; readonly bytes: number } & RecallMeasured;

const [, script, role, upstream] = process.argv;
if (role === '--provider' || role === '--recalling-provider')
  await serveProvider(role === '--recalling-provider');
else if (role === '--pipe') process.send?.(`http://127.0.0.1:${await targets['raw pipe']!(upstream!)}`);
else await main(Number(role ?? 100));

async function main(rounds: number): Promise<void> {
  const loadBefore = loadavg()[0];
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
    const found = await within('--recalling-provider', (processes) =>
      measureRecall(processes, { format, body, rounds }),
    );
    recalls.push({ format, bytes: body.bytes.length, ...found });
  }
  const load = { before: loadBefore, after: loadavg()[0] };
  const machine = { node: process.version, cores: availableParallelism(), load, rounds };
  console.log(traps.map((trap) => `- ${trap}\n`).join(''));
  console.log(
    `Milliseconds; ${rounds} rounds, Node ${machine.node}, ${machine.cores} cores, load average before ${load.before} and after ${load.after}.`,
  );
  console.table(cells.flatMap(rowsOf));
  console.log('A recall in the middle of a stream: p50 / p95 in milliseconds.');
  console.table(recallTable(recalls, rounds));
  report({ ...machine, traps, cells, recalls });
}

/** Empty when the gateway does not serve the format. */
async function measureFormat(format: Format, rounds: number): Promise<readonly Cell[]> {
  const cells: Cell[] = [];
  for (const { request, size, renumbered } of kinds) {
    const body = bodyOf(format, size);
    const found = await within('--provider', (processes) =>
      measure(processes, { format, body, renumbered, rounds }),
    );
    if (!found) return [];
    cells.push({ format, request, bytes: body.bytes.length, ...found });
  }
  return cells;
}

async function within<T>(provider: string, run: (processes: Processes) => Promise<T>): Promise<T> {
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
