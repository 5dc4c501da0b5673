/**
 * Recorded conversations replayed through the real engine, beside what else is done about long contexts: what each costs under three
 * price tables, how large contexts get, and what becomes of the values that the recorded calls used. Run
 * `node bench/replay.ts [--source NAME] [--limit N] [--engine NAME=SETTINGS]... [--engines-only]`; it reads ../shared/data, prints a
 * table for each source, and, when it ran on everything, writes bench/results/replay.json and replay.html. Some minutes on two cores.
 *
 * `--engine` adds an engine with other settings (JSON, as in docs/configuration.md) to the default one, so that an ablation is data:
 * `--engine 'no budget={"triggers":{"tokenBudget":false}}'`.
 *
 * Traps: (1) The recording does not react: a model that saw less might have gone another way, and what it needed is reckoned by the
 * values of its calls (src/replay/needs.ts), which is neither all it needed nor needed at every occurrence. (2) The model of this replay
 * always knows which original to ask, and asks only for what it will use: real recalls may be more, or larger. (3) No cache expires here;
 * in the recordings a pause now and then let it. (4) Tools and system text are a filler of 15,000 tokens, for recordings lack theirs; the
 * smaller it is the dearer a rewritten history. (5) One repository's sessions in one client are nine tenths of all tokens.
 */
import { parseArgs } from 'node:util';
import { figuresTable } from '../src/cli/replay/figures-table.ts';
import { priceTables } from '../src/cli/replay/price-tables.ts';
import { figuresOf } from '../src/replay/figures.ts';
import type { FoldSettings } from '../src/compact/default-engine.ts';
import { longHorizon, readConversations } from './replay/data.ts';
import type { BenchOptions, EngineChoice } from './replay/policies.ts';
import { replayInProcesses } from './replay/processes.ts';

const { values } = parseArgs({
  options: {
    source: { type: 'string' },
    limit: { type: 'string' },
    engine: { type: 'string', multiple: true },
    'engines-only': { type: 'boolean' },
    window: { type: 'string' },
    prefix: { type: 'string' },
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
  const all = [...records, ...longHorizon(records)].filter((record) => record.source.startsWith(source));
  const bySource = Map.groupBy(all, (record) => record.source);
  const chosen = [...bySource.values()].flatMap((group) => group.slice(0, Number(limit)));
  if (chosen.length === 0) throw new Error(`There are no conversations of ${source}.`);
  const sizes = new Map(chosen.map((record) => [record.id, JSON.stringify(record.messages).length]));
  const ids = chosen.map(({ id }) => id).toSorted((a, b) => sizes.get(b)! - sizes.get(a)!);
  const options: BenchOptions = {
    engines: [{ name: 'Leporello', settings: {} }, ...(values.engine ?? []).map(engineChoice)],
    enginesOnly: values['engines-only'] ?? false,
    window: Number(values.window ?? 200_000),
    prefix: Number(values.prefix ?? 15_000),
  };
  const played = await replayInProcesses(ids, options);
  const byId = new Map(played.map((one) => [one.id, one]));
  const figures = figuresOf(
    chosen.map(({ id }) => byId.get(id)!),
    priceTables,
  );
  console.log(figuresTable(figures));
}

function engineChoice(text: string): EngineChoice {
  const [, name, json] = /^([^={]*)=?(.*)$/s.exec(text) ?? [];
  const settings = JSON.parse(json ?? '{}') as FoldSettings;
  return { name: name || json!, settings };
}
