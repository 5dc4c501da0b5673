/**
 * Recorded conversations replayed through the real engine, beside what else is done about long contexts: what each costs under three
 * price tables, how large contexts get, and what becomes of the values that the recorded calls used. Run
 * `node bench/replay.ts [--source NAME] [--limit N] [--engine NAME=SETTINGS]... [--engines-only] [--pauses]`; it reads ../shared/data, prints a
 * table for each source, and, when it ran on everything, writes bench/results/replay.json and replay.html. Some minutes on two cores.
 *
 * `--engine` adds an engine with other settings (JSON, as in docs/configuration.md) to the default one, so that an ablation is data:
 * `--engine 'no budget={"triggers":{"tokenBudget":false}}'`. With `--pauses` nothing is cached, for any policy, where less than half of a
 * prompt was in the recording (3 % of the requests of coding sessions).
 *
 * Traps: (1) The recording does not react: a model that saw less might have gone another way, and what it needed is reckoned by the
 * values of its calls (src/replay/needs.ts), which is neither all it needed nor needed at every occurrence. (2) The model of this replay
 * always knows which original to ask, and asks only for what it will use: real recalls may be more, or larger. (3) No cache expires here
 * without `--pauses`. (4) Tools and system text are a filler of 15,000 tokens, for recordings lack theirs; the
 * smaller it is the dearer a rewritten history. (5) One repository's sessions in one client are nine tenths of all tokens.
 * (6) All conversations of a source are taken for those of one agent, in their order: from the first on that is folded, the next ones are offered the recall
 * tool with their first request.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { engineChoice } from '../src/cli/replay/engine-choices.ts';
import { figuresTable } from '../src/cli/replay/figures-table.ts';
import { htmlReport } from '../src/cli/replay/html-report.ts';
import { priceTables, pricesIn } from '../src/cli/replay/price-tables.ts';
import { figuresOf, type SourceFigures } from '../src/replay/figures.ts';
import type { Played } from '../src/replay/replay.ts';
import { codingSessions, longHorizon, longHorizonId, readConversations } from './replay/data.ts';
import type { BenchOptions } from './replay/policies.ts';
import { replayInProcesses } from './replay/processes.ts';

const results = new URL('./results/', import.meta.url);

const { values } = parseArgs({
  options: {
    source: { type: 'string' },
    limit: { type: 'string' },
    engine: { type: 'string', multiple: true },
    'engines-only': { type: 'boolean' },
    window: { type: 'string' },
    prefix: { type: 'string' },
    pauses: { type: 'boolean' },
  },
});

await main();

async function main(): Promise<void> {
  const records = readConversations();
  if (records === undefined) {
    console.log('bench/replay.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const { source = '', limit = 'Infinity' } = values;
  const bySource = Map.groupBy([...longHorizon(records), ...records], (record) => record.source);
  const chosen = [...bySource]
    .filter(([name]) => name.startsWith(source))
    .flatMap(([, group]) => group.slice(0, Number(limit)));
  if (chosen.length === 0)
    throw new Error(`--source is ${source}, but must begin one of ${[...bySource.keys()].join(', ')}.`);
  const options: BenchOptions = {
    engines: [
      { name: 'Leporello', settings: {} },
      { name: 'Leporello, no cache', settings: { prices: pricesIn('uncached') } },
      ...(values.engine ?? []).map(engineChoice),
    ],
    enginesOnly: values['engines-only'] ?? false,
    window: Number(values.window ?? 200_000),
    prefix: Number(values.prefix ?? 15_000),
    pauses: values.pauses ?? false,
  };
  const played = await replayInProcesses(chosen, options);
  const figures = figuresOf([...played, ...together(played)], priceTables);
  console.log(figuresTable(figures));
  if (Object.keys(values).length === 0) writeResults(figures, played, options);
}

/** Recorded conversations of all sources as one more source. What was joined of some of them is none. */
function together(played: readonly Played[]): readonly Played[] {
  const recorded = played.filter(({ id }) => id !== longHorizonId);
  const isOne = new Set(recorded.map(({ source }) => source)).size < 2;
  return isOne ? [] : recorded.map((one) => ({ ...one, source: 'all sources' }));
}

function writeResults(
  figures: readonly SourceFigures[],
  played: readonly Played[],
  { window, prefix }: BenchOptions,
): void {
  const settings = { node: process.version, window, prefix, prices: priceTables };
  mkdirSync(results, { recursive: true });
  const json = JSON.stringify({ ...settings, sources: figures }, null, 2);
  writeFileSync(new URL('replay.json', results), `${json}\n`);
  const subtitle = `${played.length - 1} recorded conversations, and eight of ${codingSessions} joined end to end (${longHorizonId}); window ${window}, ${prefix} tokens in front of the messages.`;
  const session = played.find(({ id }) => id === longHorizonId);
  writeFileSync(new URL('replay.html', results), htmlReport({ subtitle, figures, session, window }));
}
